"""Object discovery: TokenCut finds the object of an image by cutting the graph of its patch tokens, without labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg
import scipy.ndimage
import torch
from torch import Tensor
from torch.nn import functional as F

from vitscope.core.analysis import Analysis, Found, Headline, Measure, Outcome, Stream, Watch
from vitscope.core.results import NOBODY, tidy_mean
from vitscope.core.statistic import Statistic
from vitscope.data.dataset import PARTS
from vitscope.models.layout import Grid, TokenLayout
from vitscope.tasks.units import chance_row, kept_units

if TYPE_CHECKING:
    from vitscope.data.batches import Batch
    from vitscope.data.dataset import MaskSet
    from vitscope.models.shape import ModelShape

# -- protocol (TokenCut, Wang et al., 2202.11539) ----------------------------------------------------------------

TAU = 0.2  # two patches are connected if their cosine exceeds it
WEAK = 1e-5  # weight of all other pairs, so that the graph hangs together
TIE = 1e-6  # patches whose values differ by no more have the same: tokens with the same neighbours do
FOUND = 0.5  # a box whose IoU with a true one is at least this has found the object
HALF = 128  # of 255: a region holds a pixel of which it covers a half


# -- scores --------------------------------------------------------------------------------------------------


def token_cut(patches: Tensor, grid: Grid, tau: float = TAU) -> np.ndarray:
    """The object among patch tokens (N, D), as patches of the grid: bool (h, w).

    Second smallest generalised eigenvector of (D - W, D), W = [cosine > tau] (else 1e-5), D its row sums; split at its
    mean; the side of its largest absolute value is the object, of which the part around that value is taken.
    """
    units = F.normalize(patches.float(), dim=1)
    cosines = (units @ units.T).cpu().numpy().astype(np.float64)
    weights = np.where(cosines > tau, 1.0, WEAK)
    root = np.sqrt(weights.sum(1))
    # D^-1/2 W D^-1/2 has the same vectors times D^1/2, and 1 - lambda for lambda: its second largest is wanted
    last = len(weights) - 1
    if last < 1:
        return np.ones(grid, bool)
    _, vectors = scipy.linalg.eigh(weights / root[:, None] / root[None, :], subset_by_index=[last - 1, last])
    vector = vectors[:, 0] / root
    size = np.abs(vector)
    seed = int((size >= (1 - TIE) * size.max()).argmax())  # the first of equals, whatever rounding says
    vector = vector * np.sign(vector[seed])  # the sign of an eigenvector is nobody's: the seed is above the mean
    side = vector > vector.mean() + TIE * size.max()
    side[seed] = True
    pieces, _ = scipy.ndimage.label(side.reshape(grid))
    found: np.ndarray = pieces == pieces.flat[seed]
    return found


def box_of(mask: np.ndarray) -> tuple[int, int, int, int]:
    """Top, bottom, left, right of a mask that is not empty; ends exclusive.

    >>> box_of(np.array([[0, 0, 0], [0, 1, 1]], bool))
    (1, 2, 1, 3)
    """
    rows, columns = mask.any(1).nonzero()[0], mask.any(0).nonzero()[0]
    return int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1


def box_iou(a: tuple[int, int, int, int], b: tuple[int, int, int, int]) -> float:
    """
    >>> box_iou((0, 2, 0, 2), (0, 2, 1, 3))  # 2 of 6 cells
    0.3333333333333333
    """
    high, wide = min(a[1], b[1]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[2], b[2])
    both = max(high, 0) * max(wide, 0)
    areas = [(c[1] - c[0]) * (c[3] - c[2]) for c in (a, b)]
    return both / (sum(areas) - both)


def discovery_scores(found: np.ndarray, objects: np.ndarray) -> tuple[float, float]:
    """Whether the box of what was found fits a true one (1 or 0), and the best IoU of masks.

    found: bool (h, w) on the grid; objects: bool (n, h_px, w_px). Patches are enlarged to pixels.
    """
    high, wide = objects.shape[1] // found.shape[0], objects.shape[2] // found.shape[1]
    mask = np.zeros(objects.shape[1:], bool)
    large = found.repeat(high, 0).repeat(wide, 1)
    mask[: large.shape[0], : large.shape[1]] = large
    box = box_of(mask)
    hit = max(box_iou(box, box_of(one)) for one in objects) >= FOUND
    shared = (objects & mask).sum((1, 2)) / (objects | mask).sum((1, 2))
    return float(hit), float(shared.max())


@dataclass(frozen=True)
class Discoveries:
    """Per image, (n, L) each; NaN where no object lies inside the crop."""

    corloc: Tensor
    mask_iou: Tensor
    whole: Tensor  # (n,): whether the box of the whole image would do


class DiscoveryStatistic(Statistic):
    """TokenCut of every image and layer against its regions. whole: all regions of an image are parts of one object."""

    name = "discovery"
    wants = frozenset({"tokens"})
    needs_annotations = True

    def __init__(self, layout: TokenLayout, depth: int, *, tau: float = TAU, whole: bool = False) -> None:
        super().__init__()
        self.layout, self.depth, self.tau, self.whole = layout, depth, tau, whole
        self._objects: list[np.ndarray] = []
        self._scores: list[Tensor] = []
        self._waiting: list[Tensor] = []  # patch tokens of the layers that a device showed

    def begin(self, batch: Batch) -> None:
        super().begin(batch)
        assert batch.annotations is not None, "discovery needs masks"
        self._objects = []
        for regions in batch.annotations:
            held = regions.coverage >= HALF
            held = held.any(0, keepdim=True) if self.whole and len(held) else held
            self._objects.append(held[held.flatten(1).any(1)].numpy())

    def tokens(self, layer: int, x: Tensor) -> None:
        patches = x[:, self.layout.prefix :]
        if x.device.type == "cpu":
            self._cut(patches)
        else:  # cuts are made on the host: not while the device is busy
            self._waiting.append(patches.clone())

    def _cut(self, patches: Tensor) -> None:
        nowhere = (float("nan"), float("nan"))
        scores = [
            discovery_scores(token_cut(image, self.layout.grid, self.tau), objects) if len(objects) else nowhere
            for image, objects in zip(patches, self._objects, strict=True)
        ]
        self._scores.append(torch.tensor(scores, dtype=torch.float64))  # (B, 2)

    def end(self) -> None:
        for patches in self._waiting:
            self._cut(patches.cpu())
        self._waiting.clear()
        for name, values in zip(("corloc", "mask_iou"), torch.stack(self._scores, 1).unbind(-1), strict=True):
            self.put(name, values)
        self._scores.clear()
        everything = np.ones(self.layout.grid, bool)
        hits = [discovery_scores(everything, o)[0] if len(o) else float("nan") for o in self._objects]
        self.put("whole", torch.tensor(hits, dtype=torch.float64))
        super().end()

    def result(self) -> Discoveries:
        return Discoveries(self.rows_of("corloc"), self.rows_of("mask_iou"), self.rows_of("whole"))


# -- the analysis ---------------------------------------------------------------------------------------------


class Discovery(Analysis):
    """Object discovery at every layer, without training and without labels (TokenCut on patch tokens).

    CorLoc: share of images in which the box that was found overlaps a true one by half or more.
    """

    name = "discovery"
    title = "object discovery"
    domain = "why"
    kind = "masks"
    measures = (
        Measure(
            "discovery_corloc", "object discovery", "share of images whose object's box TokenCut finds (IoU >= 0.5)"
        ),
        Measure("discovery_iou", "object discovery, masks", "IoU of what TokenCut finds with the true mask"),
    )
    headline = Headline("discovery_corloc", "CorLoc %", percent=True, chance="the box of the whole image")

    tau: float = TAU

    def passes(self, dataset: MaskSet, shape: ModelShape) -> Sequence[Stream]:
        whole = dataset.layout == PARTS
        return [Stream(dataset.shuffled, (Watch.by(DiscoveryStatistic, tau=self.tau, whole=whole),))]

    def reduce(self, dataset: MaskSet, found: Found) -> Outcome:
        seen: DiscoveryStatistic = found.statistic("discovery")
        outcome = Outcome()
        rows = seen.result()
        there = ~rows.corloc[:, 0].isnan()
        if nowhere := int((~there).sum()):
            outcome.notes.append(f"{nowhere} images have no object inside the crop: nothing to discover in them")
        if not there.any():
            return outcome
        for measure, values in (("discovery_corloc", rows.corloc), ("discovery_iou", rows.mask_iou)):
            outcome.tables.append(tidy_mean(NOBODY, measure, values[there], axes=("layer",)))
        whole, ids = rows.whole[there], seen.indices.sort().values[there]
        outcome.maps |= kept_units(self.name, rows.corloc[there] > 0, whole, ids, len(dataset.shuffled))
        outcome.tables.append(chance_row("discovery_corloc", whole))
        return outcome
