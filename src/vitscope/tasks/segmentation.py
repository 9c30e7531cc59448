"""Segmentation: what a patch shows is voted by labelled patches that are most alike, or told by a linear classifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
import torch
from pydantic import Field
from torch import Tensor

from vitscope.core.analysis import Analysis, Found, Headline, Measure, Outcome, Stream, Watch
from vitscope.core.bootstrap import RESAMPLES, percentile_interval, resampling_counts
from vitscope.core.device import choose_device
from vitscope.core.errors import BadData
from vitscope.core.results import NOBODY, tidy
from vitscope.data.segmentation import VOID
from vitscope.tasks.knn import TEMPERATURE, votes
from vitscope.tasks.labelled_patches import Patches, PatchStatistic
from vitscope.tasks.logistic import fit
from vitscope.tasks.nearest import CPU, nearest
from vitscope.tasks.units import chance_row, kept_units, linearised

if TYPE_CHECKING:
    from vitscope.data.segmentation import SegmentationSet
    from vitscope.models.shape import ModelShape

# -- protocol ------------------------------------------------------------------------------------------------

NEIGHBOURS = 30
PENALTY = 1e-3  # of the linear classifier, on standardised features
TOLERANCE = 1e-3  # largest partial derivative of a finished fit: finer ones change no label
NORMAL = 1.959964  # of the 95 % interval
BLOCK = 4096  # patches that are asked about at once

Method = Literal["knn", "linear"]
METHODS: tuple[Method, ...] = ("knn", "linear")


# -- scores --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SegmentationScores:
    """Pixels of every image, layer and class: (n, L, C) float64. right: told right; told: told to be of the class;
    true: of the class, (n, C)."""

    right: Tensor
    told: Tensor
    true: Tensor

    @property
    def present(self) -> Tensor:
        """Classes that some image shows: bool (C,). The others have no IoU."""
        return self.true.sum(0) > 0

    def iou(self) -> Tensor:
        """Of every layer and class, (L, C): right / (told or true); NaN for classes that nobody shows."""
        right, told, true = (side.sum(0) for side in (self.right, self.told, self.true))
        return right / (told + true - right).where(true > 0, torch.nan)

    def miou(self) -> tuple[Tensor, Tensor]:
        """Mean over the classes, (L,), and its 95 % interval over images (2, L).

        The interval is linearised: a resample in which a rare class does not occur has another mean altogether.
        """
        iou, n = self.iou()[:, self.present], len(self.true)  # (L, c)
        value = iou.mean(-1)
        union = (self.told + self.true.unsqueeze(1) - self.right)[..., self.present]  # (n, L, c)
        pull = (self.right[..., self.present] - iou * union) / union.sum(0)
        reach = NORMAL * (pull.mean(-1).square().sum(0) * n / (n - 1)).sqrt() if n > 1 else value * torch.nan
        return value, torch.stack([value - reach, value + reach]).clamp(0, 1)

    def units(self) -> Tensor:
        """What each image adds to the mean IoU: (n, L)."""
        true = self.true.unsqueeze(1).where(self.present, 0.0)
        return linearised(self.right, (self.told + true - self.right).where(self.present, 0.0))

    def of_commonest(self) -> SegmentationScores:
        """The scores of telling every pixel to be of the commonest class, as those of a network of one layer."""
        common = torch.nn.functional.one_hot(self.true.sum(0).argmax(), self.true.shape[1])
        right, told = self.true * common, self.true.sum(1, keepdim=True) * common
        return SegmentationScores(right.unsqueeze(1), told.unsqueeze(1), self.true)

    def accuracy(self) -> tuple[Tensor, Tensor]:
        """Share of pixels told right, (L,), and its interval (2, L)."""
        right, total = self.right.sum(-1), self.true.sum(-1)  # (n, L), (n,)
        counts = resampling_counts(len(self.true), RESAMPLES)
        interval = percentile_interval((counts @ right) / (counts @ total)[:, None])
        return right.sum(0) / total.sum(), interval


def count_pixels(answers: Tensor, asked: Patches, classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Right, told and true pixels of every image, (n, C) each, if every pixel has its patch's label. answers: (P,)."""
    _, image = asked.image.unique(return_inverse=True)
    n = int(image.max()) + 1
    pixels = asked.counts.double()  # (P, C); void pixels are in none
    own = torch.zeros(n, classes, dtype=torch.float64)
    own.index_add_(0, image, pixels)
    where = image * classes + answers
    told = torch.zeros(n * classes, dtype=torch.float64).index_add_(0, where, pixels.sum(1))
    hits = pixels.gather(1, answers.unsqueeze(1)).squeeze(1)
    right = torch.zeros(n * classes, dtype=torch.float64).index_add_(0, where, hits)
    return right.reshape(n, classes), told.reshape(n, classes), own


# -- evaluation on features ----------------------------------------------------------------------------------


def answer_by_neighbours(
    known: Tensor, labels: Tensor, asked: Tensor, classes: int, *, k: int = NEIGHBOURS, device: torch.device = CPU
) -> Tensor:
    """The class of every patch: known (m, D), labels (m,), asked (P, D) -> (P,). Votes weigh exp(cosine / 0.07)."""
    k = min(k, len(labels))
    cosines, positions = nearest(asked, known, k, device=device)
    found = [
        votes(cosines[start : start + BLOCK], labels[positions[start : start + BLOCK]], classes, TEMPERATURE).argmax(1)
        for start in range(0, len(asked), BLOCK)
    ]
    return torch.cat(found)


def answer_linearly(known: Tensor, labels: Tensor, asked: Tensor, classes: int, *, penalty: float = PENALTY) -> Tensor:
    """The same by one multinomial logistic regression on features standardised by the known ones."""
    mean, spread = known.mean(0), known.std(0).clamp_min(1e-6)
    model = fit(((known - mean) / spread).unsqueeze(0), labels, classes, torch.tensor([penalty]), tolerance=TOLERANCE)
    found: Tensor = model.scores(((asked - mean) / spread).unsqueeze(0))[0].argmax(1)
    return found


def evaluate(
    known: Patches,
    asked: Patches,
    classes: int,
    *,
    methods: Sequence[str] = METHODS,
    k: int = NEIGHBOURS,
    device: torch.device = CPU,
) -> dict[str, SegmentationScores]:
    """Scores of every method at every layer."""
    usable = known.classes != VOID
    labels = known.classes[usable]
    if not len(labels):
        raise BadData("no labelled patch is left to learn from: all of them are void")
    if not len(asked.image) or not asked.counts.sum():
        raise BadData("no labelled patch is left to ask about: all of them are void")
    found: dict[str, list[tuple[Tensor, Tensor, Tensor]]] = {method: [] for method in methods}
    for layer in range(len(known.layers)):
        bank, queries = known.layers[layer][usable], asked.layers[layer]
        for method in methods:
            if method == "knn":
                answers = answer_by_neighbours(bank, labels, queries, classes, k=k, device=device)
            else:
                answers = answer_linearly(bank, labels, queries, classes)
            found[method].append(count_pixels(answers, asked, classes))
    scores = {}
    for method, layers in found.items():
        right, told, true = (torch.stack(part, 1) for part in zip(*layers, strict=True))
        scores[method] = SegmentationScores(right, told, true[:, 0])
    return scores


# -- the analysis ---------------------------------------------------------------------------------------------


class Segmentation(Analysis):
    """Semantic segmentation from patch tokens of every layer, all from one pass over each image.

    A patch's label is that of most of its pixels; a told label counts for all pixels of the patch. Labelled patches
    are chosen evenly over images and over the classes of each image.
    """

    name = "segmentation"
    title = "segmentation"
    domain = "why"
    kind = "segmentation"
    measures = (
        Measure(
            "segmentation_miou", "segmentation mIoU", "intersection over union of told and true pixels, over classes"
        ),
        Measure("segmentation_accuracy", "segmentation accuracy", "share of pixels whose class is told right"),
        Measure("segmentation_iou", "segmentation IoU by class", "the same for one class"),
    )
    headline = Headline(
        "segmentation_miou", "mIoU %", variants=METHODS, percent=True, chance="the commonest class everywhere"
    )

    methods: tuple[Method, ...] = Field(METHODS, description="Voting neighbours, linear classifier")
    k: int = Field(NEIGHBOURS, ge=1, description="Neighbours that vote")
    bank: int = Field(8192, ge=1, description="Labelled patches to learn from, at most about")
    asked: int = Field(256, ge=1, description="Images to ask about, at most: all of their patches are kept")

    def passes(self, dataset: SegmentationSet, shape: ModelShape) -> Sequence[Stream]:
        settings: dict[str, Any] = {"classes": len(dataset.classes), "background": dataset.background}
        known, asked = self.lists(dataset)
        each = max(self.bank // len(known), 1)
        return [
            Stream(known, (Watch.by(PatchStatistic, images=len(known), each=each, **settings),), name="train"),
            Stream(asked, (Watch.by(PatchStatistic, images=len(asked), each=None, **settings),), name="test"),
        ]

    def lists(self, dataset: SegmentationSet) -> tuple[Any, Any]:
        """Images that are learned from and asked about: no more than one patch of each, and as many as are asked."""
        return dataset.train.limit(self.bank), dataset.test.limit(self.asked)

    def reduce(self, dataset: SegmentationSet, found: Found) -> Outcome:
        known, asked = (found.statistic("labelled_patches", stream).result() for stream in ("train", "test"))
        names = dataset.classes
        device = choose_device(found.device)
        scores = evaluate(known, asked, len(names), methods=self.methods, k=self.k, device=device)
        outcome = Outcome(facts={"classes": list(names), "patches": int((known.classes != VOID).sum())})
        if len(dataset.test) > self.asked:
            outcome.notes.append(f"segmentation asks about {self.asked} of the {len(dataset.test):,} images")
        for method, one in scores.items():
            outcome.tables += score_tables(one, method, names)
        shown = scores[next(method for method in METHODS if method in scores)]
        floor = shown.of_commonest().units()[:, 0]
        outcome.maps |= kept_units(self.name, shown.units(), floor, asked.image.unique(), self.asked)
        outcome.tables.append(chance_row("segmentation_miou", floor))
        return outcome


def score_tables(scores: SegmentationScores, method: str, names: Sequence[str]) -> list[pl.DataFrame]:
    options: dict[str, Any] = {"axes": ("layer",), "n": len(scores.true)}
    tables = []
    for measure, (value, (low, high)) in (
        ("segmentation_miou", scores.miou()),
        ("segmentation_accuracy", scores.accuracy()),
    ):
        tables.append(tidy(NOBODY, measure, value, low=low, high=high, variant=method, **options))
    iou = scores.iou()  # (L, C)
    shown = scores.present.nonzero().flatten().tolist()
    by_class = ((f"{method}, {names[number]}", iou[:, number]) for number in shown)
    return [*tables, *(tidy(NOBODY, "segmentation_iou", v, variant=name, **options) for name, v in by_class)]
