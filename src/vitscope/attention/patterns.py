"""The look of attention maps in late layers: sparse, repeating, centred on the object, in one piece.

Measured on the map that a head shows for each image: the CLS row, or the mean over spatial sources where there is
no CLS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from vitscope.attention.aligned import GROUPS, group_of
from vitscope.attention.ranking import rank
from vitscope.attention.saliency import top_mass_mask
from vitscope.attention.view import AttentionStatistic, AttentionView
from vitscope.core.bootstrap import percentile_interval, resampling_counts
from vitscope.data.batches import Batch
from vitscope.models.layout import Grid

TOP = 5  # tokens whose share of the mass measures sparsity


def late_from(depth: int) -> int:
    """First layer (0-based) of the last quarter: layers 10-12 of 12.

    >>> late_from(12), late_from(24), late_from(3)
    (9, 18, 2)
    """
    return depth - math.ceil(depth / 4)


def gini(maps: Tensor) -> Tensor:
    """Gini coefficient over the last axis: 0 for a uniform map, towards 1 for a single token. maps: (..., N) >= 0.

    A map of zeros (all attention on prefix tokens) is as even as a uniform one.

    >>> gini(torch.tensor([0.0, 0.0, 0.0, 1.0])).item()  # 1 - 1 / N
    0.75
    """
    n = maps.shape[-1]
    ranks = torch.arange(1, n + 1, device=maps.device).to(maps)
    values = rank(maps).values.flip(-1)
    total = values.sum(-1)
    coefficient = (2 * (values * ranks).sum(-1) / total.clamp_min(1e-30) - (n + 1)) / n
    return torch.where(total > 0, coefficient, torch.zeros_like(total))


def top_share(maps: Tensor, top: int = TOP) -> Tensor:
    """Share of the mass on the `top` most attended tokens."""
    return rank(maps).values[..., :top].sum(-1) / maps.sum(-1).clamp_min(1e-30)


def centre_lift(maps: Tensor, grid: Grid) -> Tensor:
    """Mass within the central half of the height and width, over what a uniform map has there. (..., N) -> (...)."""
    h, w = grid
    rows = ((torch.arange(h) + 0.5) / h - 0.5).abs() <= 0.25
    columns = ((torch.arange(w) + 0.5) / w - 0.5).abs() <= 0.25
    inside = (rows[:, None] & columns[None, :]).flatten().to(maps)
    share = (maps * inside).sum(-1) / maps.sum(-1).clamp_min(1e-30)
    return share / inside.mean().clamp_min(1e-30)


def compactness(mask: Tensor, grid: Grid) -> Tensor:
    """How much of a mask hangs together: the share of its tokens' 4-neighbours inside the grid that are in it too.

    mask: bool (..., N). 1 for the whole grid, 0 for isolated tokens; 0 for an empty mask.
    """
    cells = mask.unflatten(-1, grid).float()
    down, across = cells[..., :-1, :] * cells[..., 1:, :], cells[..., :, :-1] * cells[..., :, 1:]
    together = 2 * (down.sum((-1, -2)) + across.sum((-1, -2)))
    degree = torch.full(grid, 4.0, device=mask.device)
    degree[0] -= 1
    degree[-1] -= 1
    degree[:, 0] -= 1
    degree[:, -1] -= 1
    found: Tensor = together / (cells * degree).sum((-1, -2)).clamp_min(1)
    return found


def unit_maps(maps: Tensor) -> Tensor:
    """Maps (..., N) less their mean, of length 1, so that products are correlations; zero for a constant map."""
    centred = maps - maps.mean(-1, keepdim=True)
    unit: Tensor = centred / centred.norm(dim=-1, keepdim=True).clamp_min(1e-12)
    return unit


def repetition(maps: Tensor) -> Tensor:
    """Mean correlation of each map with all others of the same image. maps: (B, M, N) -> (B, M).

    NaN for a single map; a constant map correlates with nothing (0).
    """
    unit = unit_maps(maps)
    alike = (unit * unit.sum(1, keepdim=True)).sum(-1) - unit.square().sum(-1)
    return alike / (maps.shape[1] - 1) if maps.shape[1] > 1 else torch.full_like(alike, torch.nan)


def looks(maps: Tensor, grid: Grid) -> dict[str, Tensor]:
    """What tells of each map by itself, by name: maps (..., N) -> (...)."""
    return {
        "gini": gini(maps),
        "top_share": top_share(maps),
        "centre_lift": centre_lift(maps, grid),
        "compactness": compactness(top_mass_mask(maps), grid),
    }


@dataclass(frozen=True)
class Patterns:
    """Per image, (n, L, H) each.

    repetition: with all late maps of the image, NaN before the last quarter of the layers; repetition_in_layer: with
    the other heads of the same layer, NaN for a single head.
    """

    gini: Tensor
    top_share: Tensor
    centre_lift: Tensor
    compactness: Tensor
    repetition: Tensor
    repetition_in_layer: Tensor


@dataclass(frozen=True)
class ImageRepetition:
    """Mean correlation of a head's map of one image with its map of another, (L, H) each: 1 if it always looks at the
    same places, 0 if where it looks follows the image. low, high: 95 % interval, by resampling groups of images."""

    mean: Tensor
    low: Tensor
    high: Tensor


def image_repetition(sums: Tensor, squares: Tensor, sizes: Tensor, *, resamples: int = 200) -> ImageRepetition:
    """From sums of unit maps of each group of images: sums (G, L, H, N), squares (L, H), sizes (G,).

    The mean over all pairs of images is (|sum of all|^2 - sum of squares) / (n (n - 1)); resamples take pairs of
    different groups only, since an image drawn twice would be alike itself. NaN where there is no pair.
    """
    n = float(sizes.sum())
    nowhere = torch.full(squares.shape, torch.nan, dtype=torch.float64)
    if n < 2:
        return ImageRepetition(nowhere, nowhere, nowhere)
    mean = (sums.sum(0).square().sum(-1) - squares) / (n * (n - 1))
    present = sizes > 0
    if int(present.sum()) < 4:  # too few groups to be drawn from
        return ImageRepetition(mean, nowhere, nowhere)
    products = torch.einsum("glhn,klhn->lhgk", sums[present], sums[present])
    apart = 1 - torch.eye(int(present.sum()), dtype=torch.float64)
    counts = resampling_counts(int(present.sum()), resamples, seed=0)  # (R, G)
    pairs = torch.einsum("rg,gk,rk->r", counts * sizes[present], apart, counts * sizes[present])
    again = torch.einsum("rg,lhgk,rk->rlh", counts, products * apart, counts)[pairs > 0]
    low, high = percentile_interval(again / pairs[pairs > 0].view(-1, 1, 1))
    return ImageRepetition(mean, low, high)


class PatternStatistic(AttentionStatistic):
    """Sparsity, place and shape of each image's maps, and how they repeat over heads, layers and images."""

    name = "patterns"

    def begin(self, batch: Batch) -> None:
        super().begin(batch)
        self._late: list[Tensor] = []
        self._units: list[Tensor] = []

    def see(self, layer: int, view: AttentionView) -> None:
        maps = view.cls_map if view.cls_map is not None else view.column_means[2][..., self.layout.prefix :]
        for name, value in looks(maps, self.layout.grid).items():
            self.note(name, value)
        self.note("repetition_in_layer", repetition(maps))
        self._units.append(unit_maps(maps))
        if layer >= late_from(self.depth):
            self._late.append(maps)

    def end(self) -> None:
        late = torch.stack(self._late, dim=1)  # (B, late L, H, N)
        repeated = repetition(late.flatten(1, 2)).unflatten(1, late.shape[1:3])
        early = repeated.new_full((len(repeated), self.depth - late.shape[1], late.shape[2]), torch.nan)
        self.put("repetition", torch.cat([early, repeated], dim=1).float())
        units = torch.stack(self._units, dim=1).double()  # (B, L, H, N)
        groups = group_of(self.batch.indices)
        self.add("units", units.new_zeros(GROUPS, *units.shape[1:]).index_add_(0, groups.to(units.device), units))
        self.add("squares", units.square().sum((0, -1)))
        self.add("sizes", torch.bincount(groups, minlength=GROUPS))
        super().end()

    def result(self) -> Patterns:
        return Patterns(**{name: self.rows_of(name).double() for name in Patterns.__dataclass_fields__})

    def across_images(self) -> ImageRepetition:
        return image_repetition(self.sum_of("units"), self.sum_of("squares"), self.sum_of("sizes"))
