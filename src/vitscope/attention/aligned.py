"""Aligned Aggregated Attention Maps (AAAM): attention as a function of the offset from the token that looks.

Every source's renormalised map is shifted so that the source lies at the centre of a canvas of (2h-1) x (2w-1).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from vitscope.attention.view import AttentionPart, AttentionStatistic, AttentionView
from vitscope.core.device import accumulation_dtype
from vitscope.data.batches import Batch
from vitscope.models.layout import Grid, TokenLayout

GROUPS = 16  # images are dealt into groups; the bootstrap over groups gives each head kind's stability
DEAL = 4  # images dealt at a time: neighbours share a group, so that a batch is folded a few times, not per image


def group_of(indices: Tensor) -> Tensor:
    """The group of each image, by its index in the sample list."""
    return indices.div(DEAL, rounding_mode="floor") % GROUPS


def align(attention: Tensor, grid: Grid) -> Tensor:
    """Sum attention over sources by offset.

    attention: (..., N, N) from source to destination. Returns (..., 2h-1, 2w-1); the centre is offset (0, 0).

    >>> align(torch.eye(4), (2, 2))
    tensor([[0., 0., 0.],
            [0., 4., 0.],
            [0., 0., 0.]])
    """
    h, w = grid
    lead = attention.shape[:-2]
    maps = attention.reshape(-1, h, w, h, w).transpose(2, 3)  # (X, i, k, j, l): source (i, j), destination (k, l)
    across = _sum_diagonals(maps)  # (X, i, k, 2w-1)
    down = _sum_diagonals(across.permute(0, 3, 1, 2))  # (X, 2w-1, 2h-1)
    return down.transpose(1, 2).reshape(*lead, 2 * h - 1, 2 * w - 1)


def _sum_diagonals(maps: Tensor) -> Tensor:
    """(..., n, n) -> (..., 2n-1): entry d is the sum over column - row = d - (n - 1).

    Rows are reversed, padded to 2n and re-cut into rows of 2n-1: each row then starts one further to the left, so
    that diagonals stand upright and can be summed as columns.
    """
    n = maps.shape[-1]
    sheared = F.pad(maps.flip(-2), (0, n)).flatten(-2)[..., :-n]  # n * 2n - n = n * (2n - 1)
    found: Tensor = sheared.unflatten(-1, (n, 2 * n - 1)).sum(-2)
    return found


def sources_per_offset(grid: Grid) -> Tensor:
    """How many sources can reach each offset: (2h-1, 2w-1), float64.

    >>> sources_per_offset((14, 14))[13, 13].item(), sources_per_offset((14, 14))[0, 0].item()
    (196.0, 1.0)
    """
    h, w = grid
    down = h - torch.arange(-(h - 1), h).abs()
    across = w - torch.arange(-(w - 1), w).abs()
    return (down[:, None] * across[None, :]).double()


def centroid(aligned: Tensor, grid: Grid) -> Tensor:
    """Centre of mass of aligned maps (..., 2h-1, 2w-1): (..., 2), down and across, in longer grid edges minus one."""
    h, w = grid
    total = aligned.sum((-1, -2)).clamp_min(1e-300)
    down = (aligned.sum(-1) * torch.arange(-(h - 1), h).to(aligned)).sum(-1)
    across = (aligned.sum(-2) * torch.arange(-(w - 1), w).to(aligned)).sum(-1)
    return torch.stack([down / total, across / total], dim=-1) / (max(h, w, 2) - 1)


@dataclass(frozen=True)
class Aligned:
    """Aligned maps (L, H, 2h-1, 2w-1), mean over images, in both protocols; and for groups of images."""

    paper: Tensor  # divided by the number of tokens
    corrected: Tensor  # divided by the number of sources that reach the offset
    groups: Tensor  # (G, L, H, 2h-1, 2w-1), sums as in `paper`, over each group's images
    group_sizes: Tensor  # (G,)
    grid: Grid

    def offset(self, protocol: str) -> Tensor:
        """(L, H, 2): centroid, down and across, in units of the longer grid edge minus one."""
        return centroid(self.paper if protocol == "paper" else self.corrected, self.grid)


class AlignedStatistic(AttentionStatistic):
    """Sums of aligned maps per group of images; folded to the canvas batch by batch, never stored as (N, N)."""

    name = "aligned"

    def __init__(self, layout: TokenLayout, depth: int) -> None:
        super().__init__(layout, depth)
        self._folded: list[Tensor] = []
        self._groups: list[int] = []  # of the batch's images
        self._swept = 0  # of them, at the current layer
        self._canvas: Tensor | None = None  # of the current layer, (G, H, 2h-1, 2w-1)

    def begin(self, batch: Batch) -> None:
        super().begin(batch)
        self._groups = group_of(batch.indices).tolist()
        self._swept, self._canvas = 0, None

    def stream(self, layer: int, part: AttentionPart) -> None:
        prefix = self.layout.prefix
        groups = self._groups[self._swept : self._swept + len(part.probs)]
        self._swept += len(groups)
        scale = F.pad(part.renormaliser, (prefix, 0)).unsqueeze(-1)  # (b, H, T, 1)
        if part.probs.device.type != "cpu":  # few operations instead of little work
            canvases = align((part.probs * scale)[:, :, prefix:, prefix:], self.layout.grid)
            self._add(torch.tensor(groups, device=canvases.device), canvases)
            return
        for group in sorted(set(groups)):
            where = [place for place, of in enumerate(groups) if of == group]
            weighted = part.probs[where[0]] * scale[where[0]]  # (H, T, T)
            for place in where[1:]:
                weighted.addcmul_(part.probs[place], scale[place])
            canvas = align(weighted[:, prefix:, prefix:], self.layout.grid)  # (H, 2h-1, 2w-1)
            self._add(torch.tensor([group]), canvas.unsqueeze(0))

    def _add(self, groups: Tensor, canvases: Tensor) -> None:
        """groups: (n,); canvases: (n, H, 2h-1, 2w-1)."""
        if self._canvas is None:
            dtype = accumulation_dtype(canvases.device)
            self._canvas = torch.zeros(GROUPS, *canvases.shape[1:], dtype=dtype, device=canvases.device)
        self._canvas.index_add_(0, groups, canvases.to(self._canvas.dtype))

    def see(self, layer: int, view: AttentionView) -> None:
        assert self._canvas is not None, "a batch has images"
        self._folded.append(self._canvas)
        self._swept, self._canvas = 0, None

    def end(self) -> None:
        self.add("canvas", torch.stack(self._folded, dim=1))  # (G, L, H, 2h-1, 2w-1)
        self.add("sizes", torch.bincount(group_of(self.batch.indices), minlength=GROUPS))
        self._folded.clear()
        super().end()

    def result(self) -> Aligned:
        canvas, sizes = self.sum_of("canvas"), self.sum_of("sizes")
        mean = canvas.sum(0) / self.count
        return Aligned(
            paper=mean / self.layout.spatial,
            corrected=mean / sources_per_offset(self.layout.grid),
            groups=canvas / self.layout.spatial,
            group_sizes=sizes,
            grid=self.layout.grid,
        )
