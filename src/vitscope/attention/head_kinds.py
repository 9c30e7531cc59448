"""The kind of every head of a model, in words, and how firmly the images support it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vitscope.attention.aligned import Aligned, sources_per_offset
from vitscope.attention.kinds import (
    KINDS,
    LATE_KINDS,
    THRESHOLDS,
    LocalShape,
    Thresholds,
    late_kind,
    local_kind,
    local_shape,
)
from vitscope.attention.patterns import Patterns, late_from
from vitscope.core.bootstrap import resampling_counts

RESAMPLES = 200

DIRECTIONS = {
    (-1, 0): "up", (1, 0): "down", (0, -1): "left", (0, 1): "right",
    (-1, -1): "up-left", (-1, 1): "up-right", (1, -1): "down-left", (1, 1): "down-right",
}  # fmt: skip


def direction(down: int, across: int) -> str:
    """The name of an offset: one of the 8 neighbours, or how far along the main direction.

    >>> direction(0, -1), direction(3, 2)
    ('left', '3 down, 2 right')
    """
    if (down, across) in DIRECTIONS:
        return DIRECTIONS[down, across]
    vertical = f"{abs(down)} {'down' if down > 0 else 'up'}" if down else ""
    horizontal = f"{abs(across)} {'right' if across > 0 else 'left'}" if across else ""
    return ", ".join(part for part in (vertical, horizontal) if part) or "itself"


def describe(kind: str, offset: Sequence[int], column: bool) -> str:
    """A kind in words, with the direction of an offset head and the axis of an axial one.

    offset: of the peak, steps down and across; column: whether the token's column is heavier than its row.

    >>> describe("offset local", (0, -1), False), describe("axial local", (0, 0), True)
    ('offset local: left', 'axial local: column')
    """
    if kind == "offset local":
        return f"{kind}: {direction(*offset)}"
    return f"{kind}: {'column' if column else 'row'}" if kind == "axial local" else kind


@dataclass(frozen=True)
class HeadKinds:
    """The kind of every head, (L, H) each.

    stability: share of bootstrap resamples that agree; NaN where there are too few images.
    """

    kind: Tensor
    stability: Tensor
    shape: LocalShape
    late: Tensor
    late_stability: Tensor

    def name(self, layer: int, head: int) -> str:
        return KINDS[int(self.kind[layer, head])]

    def describe(self, layer: int, head: int) -> str:
        """The kind in words."""
        place = (layer, head)
        column = bool(self.shape.column[place] > self.shape.row[place])
        return describe(self.name(layer, head), self.shape.offset[place].tolist(), column)

    def late_name(self, layer: int, head: int) -> str | None:
        return LATE_KINDS[int(self.late[layer, head])] if self.late[layer, head] >= 0 else None


def head_kinds(
    aligned: Aligned,
    prefix_mass: Tensor,
    patterns: Patterns,
    groups: Tensor,
    *,
    sizes: Tensor | None = None,
    thresholds: Thresholds = THRESHOLDS,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> HeadKinds:
    """Name every head and say how firmly.

    prefix_mass, patterns: (n, L, H) per image; groups: (n,) the group each image was dealt to, as in `aligned.groups`.
    The bootstrap resamples groups of images for local kinds and images for late kinds. sizes: (n,) if each row is the
    mean of so many images.
    """
    grid = aligned.grid
    weights = torch.ones(len(groups), dtype=torch.float64) if sizes is None else sizes.double()

    def mean(rows: Tensor) -> Tensor:
        return torch.tensordot(weights / weights.sum(), rows, dims=1) if sizes is not None else rows.mean(0)

    kind = local_kind(aligned.corrected, mean(prefix_mass), grid, thresholds)
    looks = {name: getattr(patterns, name) for name in ("gini", "repetition", "centre_lift", "compactness")}
    late = late_kind({name: mean(value) for name, value in looks.items()}, thresholds)
    mass = prefix_mass * weights.view(-1, 1, 1)
    stability = _local_stability(aligned, mass, groups, kind, thresholds, resamples, seed)
    late_stability = _late_stability(looks, weights, late, thresholds, resamples, seed)
    return HeadKinds(kind, stability, local_shape(aligned.corrected, grid, thresholds), late, late_stability)


def _local_stability(
    aligned: Aligned, prefix_mass: Tensor, groups: Tensor, kind: Tensor, t: Thresholds, resamples: int, seed: int
) -> Tensor:
    present = aligned.group_sizes > 0
    if int(present.sum()) < 2:
        return torch.full(kind.shape, torch.nan, dtype=torch.float64)
    h, w = aligned.grid
    sizes = aligned.group_sizes[present]
    sums = aligned.groups[present] * (h * w) / sources_per_offset(aligned.grid)  # (G, L, H, 2h-1, 2w-1)
    mass = torch.stack([prefix_mass[groups == g].sum(0) for g in present.nonzero().flatten().tolist()])  # (G, L, H)
    agree = torch.zeros(kind.shape, dtype=torch.float64)
    for counts in resampling_counts(len(sizes), resamples, seed).split(max(1, 10_000_000 // sums[0].numel())):
        n = counts @ sizes  # (R,)
        maps = torch.tensordot(counts, sums, dims=1) / n.view(-1, 1, 1, 1, 1)
        again = local_kind(maps, torch.tensordot(counts, mass, dims=1) / n.view(-1, 1, 1), aligned.grid, t)
        agree += (again == kind).double().sum(0)
    return agree / resamples


def _late_stability(
    looks: dict[str, Tensor], weights: Tensor, late: Tensor, t: Thresholds, resamples: int, seed: int
) -> Tensor:
    n, depth, heads = looks["gini"].shape
    stability = torch.full((depth, heads), torch.nan, dtype=torch.float64)
    first = late_from(depth)
    if n >= 2:
        counts = resampling_counts(n, resamples, seed) * weights
        drawn = counts.sum(1).view(-1, 1, 1)
        again = {name: torch.tensordot(counts, value[:, first:], dims=1) / drawn for name, value in looks.items()}
        stability[first:] = (late_kind(again, t) == late[first:]).double().mean(0)
    return stability
