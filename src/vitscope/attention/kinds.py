"""What kind of head is it? An automatic taxonomy, from the statistics alone.

Local kinds come from the count-normalised aligned map: its value at an offset is the mean attention that a source puts
there, over the sources that can reach it, so that image borders neither add nor remove anything. Late kinds come
from the look of the maps of the last quarter of the layers.

Rules are tried in this order; the first that fits names the head:

| kind         | rule                                                                                        |
|--------------|---------------------------------------------------------------------------------------------|
| cls-bound    | spatial tokens put at least `prefix_mass` of their attention on prefix tokens                |
| offset local | the peak is not the token itself, exceeds it by `offset_margin`, and holds `offset_peak`      |
| strict local | the token itself holds `strict_peak`; or `strict_alone`, and `strict_core` of what is within  |
|              | one step: a single dark cell, whatever lies far away                                        |
| axial local  | the token's own row or column holds `axial_band`, `axial_lift` times a uniform share, and is   |
|              | `axial_ratio` times heavier than the other axis, with no more than `axial_core` within a step |
| soft local   | within `soft_radius` of the token `soft_mass`, or within `wide_radius` `wide_mass`; either    |
|              | `soft_lift` times a uniform share                                                           |
| global       | everything else                                                                             |

| late kind        | rule                                                                                    |
|------------------|-----------------------------------------------------------------------------------------|
| object-centred   | more mass in the middle than an even map (`centred_lift`), in few pieces (`compact`)     |
| sparse-repeating | few tokens (`sparse_gini`), the same as those of the other late maps (`repeating`)       |
| diverse          | everything else                                                                         |

Thresholds were held against the maps of two trained networks, head by head (docs/real-networks.md); where the eye
disagreed they were changed, and say what they were and why.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vitscope.attention.aligned import sources_per_offset
from vitscope.models.layout import Grid

KINDS = ("cls-bound", "offset local", "strict local", "axial local", "soft local", "global")
LATE_KINDS = ("sparse-repeating", "object-centred", "diverse")


@dataclass(frozen=True)
class Thresholds:
    """The one table of thresholds, each with its reason."""

    prefix_mass: float = 0.5  # the majority: what is left for images is the smaller part
    offset_margin: float = 1.5  # half as much again as on the token itself: beyond the wobble of a few hundred images
    # Of all attention on one exact offset. 0.15 until it was seen that heads with 0.12 and 0.14 there, and with a half
    # or a fifth of that on the token itself, look like offset heads; what an evenly shared 3 x 3 neighbourhood gives
    # each of its offsets, 0.11, exceeds the token itself by nothing.
    offset_peak: float = 0.1
    offset_lift: float = 4.0  # against uniform attention: on small grids 0.1 alone is not much
    strict_peak: float = 0.5  # the majority of attention on the token itself
    # A quarter on the token itself, if its neighbours get little: such maps are one dark cell on an even ground, and
    # were called soft local, though there is no neighbourhood in them.
    strict_alone: float = 0.25
    strict_core: float = 2 / 3  # of what is within one step, diagonals included, on the token itself
    # Of all attention in one row or column; evenly spread attention gives 1/K: 0.07 (K=14), 0.14 (K=7). 0.4 until a
    # band of three rows across the whole image, with 0.37 in the token's own, was called global.
    axial_band: float = 0.35
    axial_lift: float = 2.5  # the same relative to uniform attention, for small grids
    # One axis clearly before the other. 2.0 until 0.39 against 0.19 was seen to be an ellipse, not a line; lines have
    # 2.8 and more.
    axial_ratio: float = 2.5
    axial_core: float = 0.75  # at most so much within one step: a head that hardly leaves the token is local, not axial
    soft_radius: float = 1 / 6  # of the longer grid edge (at least 1.5 steps): 2.3 steps for K=14, 4.7 for K=28
    soft_mass: float = 0.35  # a third of the attention in a neighbourhood that is a tenth of the image or less
    # Half of the attention within three tenths of the longer edge, where uniform attention has a quarter. Wide blobs
    # around the token were called global; the paper's own example of a soft local head is one (supervised B/16, layer
    # 3, head 6: 0.26 within `soft_radius`, 0.51 within `wide_radius`). Real heads lie without a gap on either side of
    # any such cut: some are near it, and their stability says so.
    wide_radius: float = 0.3
    wide_mass: float = 0.5
    soft_lift: float = 2.0  # for small grids, where the neighbourhood is a larger part of the image
    reach: float = 0.25  # offsets that fewer than a quarter of the sources can reach cannot be a peak: they are noise
    sparse_gini: float = (
        0.6  # of per-image maps; a map spread evenly over a quarter of the tokens has 0.75, over half 0.5
    )
    repeating: float = 0.4  # mean correlation with the other late maps of the same image
    centred_lift: float = 1.15  # more mass in the middle than evenly spread attention
    # Neighbours of a salient token that are salient: a blob, not scattered points. 0.5 until it was seen that maps
    # which show the object have 0.41-0.59, and scattered tokens 0.19-0.36. For the same reason the rule of
    # object-centred maps comes first: maps of one object repeat over heads as well.
    compact: float = 0.4

    @staticmethod
    def steps(radius: float, grid: Grid) -> float:
        """A share of the longer grid edge in steps, at least one step with its diagonals."""
        return max(1.5, radius * max(grid))


THRESHOLDS = Thresholds()


@dataclass(frozen=True)
class LocalShape:
    """Numbers of an aligned map (..., 2h-1, 2w-1) that tell its kind; each (...)."""

    peak: Tensor  # attention at the peak offset
    offset: Tensor  # (..., 2) where the peak is: steps down, steps across
    itself: Tensor  # attention on the token itself
    near: Tensor  # attention within the soft radius of the token
    wide: Tensor  # ... and within the wide one
    core: Tensor  # ... and within one step, diagonals included
    row: Tensor  # attention in the token's own row
    column: Tensor  # ... and column
    anisotropy: Tensor  # ratio of the larger to the smaller principal second moment


def local_shape(corrected: Tensor, grid: Grid, thresholds: Thresholds = THRESHOLDS) -> LocalShape:
    """Describe count-normalised aligned maps (..., 2h-1, 2w-1)."""
    h, w = grid
    counts = sources_per_offset(grid).to(corrected)
    down = torch.arange(-(h - 1), h).to(corrected)
    across = torch.arange(-(w - 1), w).to(corrected)
    reachable = counts >= thresholds.reach * h * w
    flat = corrected.masked_fill(~reachable, -1).flatten(-2)
    peak, where = flat.max(-1)
    offset = torch.stack([where // (2 * w - 1) - (h - 1), where % (2 * w - 1) - (w - 1)], dim=-1)
    mass = corrected * counts / (h * w)  # share of attention by offset, sums to about 1
    total = mass.sum((-1, -2)).clamp_min(1e-30)
    squared = down[:, None].square() + across[None, :].square()

    def within(radius: float) -> Tensor:
        found: Tensor = (mass * (squared <= radius**2)).sum((-1, -2)) / total
        return found

    row, column = mass[..., h - 1, :].sum(-1) / total, mass[..., :, w - 1].sum(-1) / total
    return LocalShape(
        peak=peak,
        offset=offset,
        itself=corrected[..., h - 1, w - 1],
        near=within(thresholds.steps(thresholds.soft_radius, grid)),
        wide=within(thresholds.steps(thresholds.wide_radius, grid)),
        core=within(1.5),
        row=row,
        column=column,
        anisotropy=_anisotropy(mass / total[..., None, None], down, across),
    )


def _anisotropy(mass: Tensor, down: Tensor, across: Tensor) -> Tensor:
    rows, columns = mass.sum(-1), mass.sum(-2)
    mean_i, mean_j = (rows * down).sum(-1), (columns * across).sum(-1)
    var_i = (rows * down.square()).sum(-1) - mean_i.square()
    var_j = (columns * across.square()).sum(-1) - mean_j.square()
    cov = (mass * down[:, None] * across[None, :]).sum((-1, -2)) - mean_i * mean_j
    middle, spread = (var_i + var_j) / 2, ((var_i - var_j).square() / 4 + cov.square()).sqrt()
    return (middle + spread) / (middle - spread).clamp_min(1e-6)


def uniform_near(grid: Grid, radius: float) -> float:
    """Share of uniform attention within `radius` steps of the token, averaged over tokens (borders cut it off)."""
    h, w = grid
    down, across = torch.arange(-(h - 1), h).double(), torch.arange(-(w - 1), w).double()
    inside = (down[:, None].square() + across[None, :].square()) <= radius**2
    return float((sources_per_offset(grid) * inside).sum() / (h * w) ** 2)


def local_kind(corrected: Tensor, prefix_mass: Tensor, grid: Grid, thresholds: Thresholds = THRESHOLDS) -> Tensor:
    """Index into KINDS for each aligned map (..., 2h-1, 2w-1) and prefix mass (...)."""
    t, (h, w) = thresholds, grid
    shape = local_shape(corrected, grid, thresholds)
    moved = shape.offset.ne(0).any(-1)
    concentrated = (shape.peak >= t.offset_peak) & (shape.peak >= t.offset_lift / (h * w))
    offset = moved & concentrated & (shape.peak >= t.offset_margin * shape.itself)
    alone = (shape.itself >= t.strict_alone) & (shape.itself >= t.strict_core * shape.core)
    strict = (shape.itself >= t.strict_peak) | alone
    ratio = torch.maximum(shape.row, shape.column) / torch.minimum(shape.row, shape.column).clamp_min(1e-9)
    row = (shape.row >= max(t.axial_band, t.axial_lift / h)) & (shape.row >= shape.column)
    column = (shape.column >= max(t.axial_band, t.axial_lift / w)) & (shape.column >= shape.row)
    axial = (row | column) & (ratio >= t.axial_ratio) & (shape.core <= t.axial_core)
    soft = torch.zeros_like(moved)
    for share, least, radius in ((shape.near, t.soft_mass, t.soft_radius), (shape.wide, t.wide_mass, t.wide_radius)):
        soft |= (share >= least) & (share >= t.soft_lift * uniform_near(grid, t.steps(radius, grid)))
    empty = corrected.sum((-1, -2)) <= 0
    kind = torch.full(shape.peak.shape, KINDS.index("global"))
    rules = (("soft local", soft), ("axial local", axial), ("strict local", strict), ("offset local", offset))
    for name, fits in rules:  # later rules take precedence
        kind[fits] = KINDS.index(name)
    kind[(prefix_mass >= t.prefix_mass) | empty] = KINDS.index("cls-bound")
    return kind


def late_kind(looks: dict[str, Tensor], thresholds: Thresholds = THRESHOLDS) -> Tensor:
    """Index into LATE_KINDS from mean gini, repetition, centre_lift and compactness; -1 before the late layers."""
    t = thresholds
    kind = torch.full(looks["gini"].shape, LATE_KINDS.index("diverse"))
    repeats = (looks["gini"] >= t.sparse_gini) & (looks["repetition"] >= t.repeating)
    kind[repeats] = LATE_KINDS.index("sparse-repeating")
    centred = (looks["centre_lift"] >= t.centred_lift) & (looks["compactness"] >= t.compact)
    kind[centred] = LATE_KINDS.index("object-centred")
    kind[looks["repetition"].isnan()] = -1
    return kind
