"""The look of attention maps in late layers: sparse, repeating, centred on the object, in one piece.

Measured on the map that a head shows for each image: the CLS row, or the mean over spatial sources where there is
no CLS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from vitscope.attention.saliency import top_mass_mask
from vitscope.attention.view import AttentionStatistic, AttentionView
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
    ranks = torch.arange(1, n + 1).to(maps)
    values = maps.sort(-1).values
    total = values.sum(-1)
    coefficient = (2 * (values * ranks).sum(-1) / total.clamp_min(1e-30) - (n + 1)) / n
    return torch.where(total > 0, coefficient, torch.zeros_like(total))


def top_share(maps: Tensor, top: int = TOP) -> Tensor:
    """Share of the mass on the `top` most attended tokens."""
    top = min(top, maps.shape[-1])
    return maps.topk(top, dim=-1).values.sum(-1) / maps.sum(-1).clamp_min(1e-30)


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


def repetition(maps: Tensor) -> Tensor:
    """Mean correlation of each map with all others of the same image. maps: (B, M, N) -> (B, M).

    NaN for a single map; a constant map correlates with nothing (0).
    """
    centred = maps - maps.mean(-1, keepdim=True)
    unit = centred / centred.norm(dim=-1, keepdim=True).clamp_min(1e-12)
    alike = (unit * unit.sum(1, keepdim=True)).sum(-1) - unit.square().sum(-1)
    return alike / (maps.shape[1] - 1) if maps.shape[1] > 1 else torch.full_like(alike, torch.nan)


@dataclass(frozen=True)
class Patterns:
    """Per image, (n, L, H) each; `repetition` is NaN before the last quarter of the layers."""

    gini: Tensor
    top_share: Tensor
    centre_lift: Tensor
    compactness: Tensor
    repetition: Tensor


class PatternStatistic(AttentionStatistic):
    """Sparsity, place and shape of each image's maps, and how late maps repeat over heads and layers."""

    name = "patterns"

    def begin(self, batch: Batch) -> None:
        super().begin(batch)
        self._late: list[Tensor] = []

    def see(self, layer: int, view: AttentionView) -> None:
        maps = view.cls_map if view.cls_map is not None else view.column_means[2][..., self.layout.prefix :]
        self.note("gini", gini(maps))
        self.note("top_share", top_share(maps))
        self.note("centre_lift", centre_lift(maps, self.layout.grid))
        self.note("compactness", compactness(top_mass_mask(maps), self.layout.grid))
        if layer >= late_from(self.depth):
            self._late.append(maps)

    def end(self) -> None:
        late = torch.stack(self._late, dim=1)  # (B, late L, H, N)
        repeated = repetition(late.flatten(1, 2)).unflatten(1, late.shape[1:3])
        early = repeated.new_full((len(repeated), self.depth - late.shape[1], late.shape[2]), torch.nan)
        self.put("repetition", torch.cat([early, repeated], dim=1).float())
        super().end()

    def result(self) -> Patterns:
        return Patterns(**{name: self.rows_of(name).double() for name in Patterns.__dataclass_fields__})
