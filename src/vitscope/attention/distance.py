"""How far spatial tokens look."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F

from vitscope.attention.view import AttentionPart, AttentionStatistic, AttentionView
from vitscope.models.layout import Grid, TokenLayout

if TYPE_CHECKING:
    from vitscope.models.shape import ModelShape


def displacements(grid: Grid) -> Tensor:
    """Destination minus source in grid steps: (2, N, N), down and across."""
    h, w = grid
    rows = torch.arange(h).repeat_interleave(w)
    columns = torch.arange(w).repeat(h)
    places = torch.stack([rows, columns]).double()  # (2, N)
    return places[:, None, :] - places[:, :, None]


def edge_steps(grid: Grid) -> int:
    """The unit of distances: the longer grid edge minus one (one, for a grid of a single token)."""
    return max(*grid, 2) - 1


def attention_distance(attention: Tensor, grid: Grid) -> Tensor:
    """Mean distance that spatial tokens look, weighted by attention.

    attention: (..., N, N), rows over spatial tokens that sum to 1 (or to 0); grid: (h, w), N = h * w.
    Returns (...) in units of the longer grid edge minus one.

    >>> round(attention_distance(torch.full((196, 196), 1 / 196), grid=(14, 14)).item(), 5)  # uniform attention
    0.56006
    """
    steps = displacements(grid).square().sum(0).sqrt().to(attention)  # (N, N)
    return (attention * steps).sum(-1).mean(-1) / edge_steps(grid)


@dataclass(frozen=True)
class Distance:
    """Mean attention distance of every image, (n, L, H) each."""

    grid: Tensor  # unit: longer grid edge minus one
    patch_free: Tensor  # the same, nearly independent of the patch size
    pixels: Tensor  # in pixels of the network's input


class DistanceStatistic(AttentionStatistic):
    """Attention distance per image, layer and head, of the renormalised spatial attention."""

    name = "distance"

    def __init__(self, layout: TokenLayout, depth: int, patch: tuple[int, int]) -> None:
        super().__init__(layout, depth)
        step = displacements(layout.grid)
        pixel = step * torch.tensor(patch, dtype=torch.float64).view(2, 1, 1)
        self.square_patches = patch[0] == patch[1]
        self.patch = patch
        before = (layout.prefix, 0, layout.prefix, 0)  # prefix tokens are at no distance
        self._steps = F.pad(step.square().sum(0).sqrt(), before).float()
        self._pixels = F.pad(pixel.square().sum(0).sqrt(), before).float()

    @classmethod
    def of(cls, shape: ModelShape, **settings: Any) -> DistanceStatistic:
        return cls(shape.layout, shape.depth, shape.patch, **settings)

    def stream(self, layer: int, part: AttentionPart) -> None:
        self._steps = self._steps.to(part.probs.device)
        self.gather("steps", self._mean(part, self._steps))
        if not self.square_patches:
            self._pixels = self._pixels.to(part.probs.device)
            self.gather("pixels", self._mean(part, self._pixels))

    def see(self, layer: int, view: AttentionView) -> None:
        for name in ("steps",) if self.square_patches else ("steps", "pixels"):
            self.note(name, self.gathered(name))

    def _mean(self, part: AttentionPart, functional: Tensor) -> Tensor:
        """Mean over spatial sources of sum_d probs[s, d] * functional[s, d], renormalised: (b, H)."""
        rows: Tensor = torch.linalg.vecdot(part.probs, functional)[:, :, self.layout.prefix :] * part.renormaliser
        return rows.mean(-1)

    def blocks(self, unit: str) -> Iterator[Tensor]:
        """Distances (m, L, H) in one of the units of `Distance`, block by block."""
        source = "steps" if unit != "pixels" or self.square_patches else "pixels"
        steps = {"grid": edge_steps(self.layout.grid), "patch_free": max(self.layout.grid), "pixels": 1}[unit]
        length = self.patch[0] if unit == "pixels" and self.square_patches else 1
        for rows in self.blocks_of(source):
            yield rows.double() * length / steps

    def result(self) -> Distance:
        return Distance(*(torch.cat(list(self.blocks(unit))) for unit in ("grid", "patch_free", "pixels")))
