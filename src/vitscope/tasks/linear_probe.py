"""Linear probe: how well a linear classifier reads the class off frozen features, at every layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
import torch
from pydantic import Field
from torch import Tensor

from vitscope.core.analysis import Analysis, Found, Headline, Measure, Outcome, Stream
from vitscope.core.device import choose_device
from vitscope.core.errors import BadData
from vitscope.core.progress import Progress, silent
from vitscope.core.results import NOBODY, Label, tidy
from vitscope.tasks.confidence import proportion_interval
from vitscope.tasks.knn import within_top
from vitscope.tasks.logistic import LogisticModel, fit
from vitscope.tasks.nearest import BANK_BLOCK, CPU, Array, read_rows
from vitscope.tasks.units import chance_row, kept_units
from vitscope.tasks.whole_images import COMMONEST, LabelledFeatures, labelled_streams, no_cls_note

if TYPE_CHECKING:
    from vitscope.data.dataset import LabelledSet
    from vitscope.models.shape import ModelShape

# -- protocol (not in the paper) -----------------------------------------------------------------------------

PENALTIES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)  # candidates, strongest first: each fit starts from the one before
ROUNDS = 60  # of a fit, about
HELD_OUT = 0.2  # share of the labelled images on which the penalty is chosen, layer by layer


@dataclass(frozen=True)
class ProbeConfig:
    penalties: tuple[float, ...] = PENALTIES
    seed: int = 0  # of the held-out share
    tolerance: float = 1e-4  # largest partial derivative of a finished fit
    memory: int = 1 << 29  # bytes of features that are fitted at once; more layers than that take turns
    most: int = 2 << 30  # bytes of a fit: of more images than fit in, a seeded choice is fitted


DEFAULT = ProbeConfig()


# -- scores --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProbeScores:
    """Right or wrong for each query, bool (q, L); the penalty that was chosen, (L,); and on how many images."""

    top1: Tensor
    top5: Tensor
    penalty: Tensor
    fitted: int

    def rows(self, label: Label, variant: str, protocol: str) -> list[pl.DataFrame]:
        tables = []
        for measure, hits in (("probe_top1", self.top1), ("probe_top5", self.top5)):
            low, high = proportion_interval(hits)
            value = hits.double().mean(0)
            options: dict[str, Any] = {
                "low": low,
                "high": high,
                "n": len(hits),
                "variant": variant,
                "protocol": protocol,
            }
            tables.append(tidy(label, measure, value, axes=("layer",), **options))
        return [
            *tables,
            tidy(label, "probe_penalty", self.penalty, axes=("layer",), variant=variant, protocol=protocol),
        ]


def held_out(labels: Tensor, share: float, seed: int) -> Tensor:
    """A seeded choice of `share` of each class: bool (n,). A class keeps at least one image to learn from."""
    generator = np.random.default_rng(seed)
    chosen = torch.zeros(len(labels), dtype=torch.bool)
    for label in labels.unique().tolist():
        members = (labels == label).nonzero().flatten().numpy()
        chosen[generator.permutation(members)[: min(round(len(members) * share), len(members) - 1)]] = True
    return chosen


def read_some(array: Array, rows: Tensor | None) -> Tensor:
    """Chosen rows (ascending), or all, as float32; no more than a block of the others is ever in memory."""
    if rows is None:
        return read_rows(array, 0, len(array))
    starts = range(0, len(array), BANK_BLOCK)
    edges = torch.searchsorted(rows, torch.tensor([*starts, len(array)]))
    return torch.cat(
        [
            read_rows(array, start, start + BANK_BLOCK)[rows[low:high] - start]
            for start, low, high in zip(starts, edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        ]
    )


# -- evaluation on features ----------------------------------------------------------------------------------


def evaluate(
    train: Sequence[Array],
    train_labels: Tensor,
    test: Sequence[Array],
    test_labels: Tensor,
    *,
    config: ProbeConfig = DEFAULT,
    device: torch.device = CPU,
    progress: Progress = silent,
) -> ProbeScores:
    """Fit on `train`, ask about `test`, at every layer. train: L of (n, D); test: L of (q, D); labels (n,), (q,)."""
    if len(train_labels.unique()) < 2:
        raise BadData("a classifier needs two or more classes to tell apart: add images of another class")
    width, classes = read_rows(train[0], 0, 1).shape[1], int(train_labels.max()) + 1
    rows = fitted(train_labels, most_fitted(width, classes, config.most), config.seed)
    labels = train_labels if rows is None else train_labels[rows]
    layers = max(config.memory // (4 * len(labels) * width), 1)
    parts = []
    with progress("linear probe", len(train)) as advance:
        for start in range(0, len(train), layers):
            some = slice(start, start + layers)
            known = torch.stack([read_some(layer, rows).to(device) for layer in train[some]])  # (B, n, D)
            asked = torch.stack([read_some(layer, None).to(device) for layer in test[some]])
            parts.append(_probe(known, labels.to(device), asked, test_labels, config))
            advance(len(known))
    top1, top5, penalty = (torch.cat(part, -1) for part in zip(*parts, strict=True))
    return ProbeScores(top1, top5, penalty, len(labels))


def most_fitted(width: int, classes: int, memory: int) -> int:
    """Images whose fit has room in so many bytes: it holds the features twice and four numbers per image and class."""
    return memory // (4 * (2 * width + 4 * classes))


def fitted(labels: Tensor, most: int, seed: int) -> Tensor | None:
    """Which images are fitted: None for all, or a seeded choice of at most so many, ascending."""
    if len(labels) <= most:
        return None
    chosen = np.random.default_rng(seed).choice(len(labels), most, replace=False)
    return torch.from_numpy(np.sort(chosen))


def _probe(
    known: Tensor, labels: Tensor, asked: Tensor, truth: Tensor, config: ProbeConfig
) -> tuple[Tensor, Tensor, Tensor]:
    """Some layers together. known: (B, n, D), asked: (B, q, D) -> top-1 (q, B), top-5 (q, B), penalty (B,)."""
    mean, spread = known.mean(1, keepdim=True), known.std(1, keepdim=True).clamp_min(1e-6)
    known, asked = (known - mean) / spread, (asked - mean) / spread
    classes = int(max(labels.max(), truth.max())) + 1
    aside = held_out(labels.cpu(), HELD_OUT, config.seed).to(labels.device)
    penalty, model = _choose(known, labels, aside, classes, config)
    model = fit(known, labels, classes, penalty, start=model, tolerance=config.tolerance)
    scores = model.scores(asked).softmax(-1).cpu()
    top1 = torch.stack([within_top(s, truth, 1) for s in scores], 1)
    top5 = torch.stack([within_top(s, truth, 5) for s in scores], 1)
    return top1, top5, penalty.cpu().double()


def _choose(
    known: Tensor, labels: Tensor, aside: Tensor, classes: int, config: ProbeConfig
) -> tuple[Tensor, LogisticModel | None]:
    """The penalty (B,) that does best on the images set aside, the stronger of equals; and the fit it gave."""
    if len(config.penalties) == 1 or not aside.any():
        return known.new_full((len(known),), config.penalties[0]), None
    learn, check = known[:, ~aside], known[:, aside]
    best, penalty = known.new_full((len(known),), -1.0), known.new_zeros(len(known))
    model, chosen = None, None
    for candidate in config.penalties:
        model = fit(
            learn,
            labels[~aside],
            classes,
            known.new_full((len(known),), candidate),
            start=model,
            tolerance=config.tolerance,
        )
        share = (model.scores(check).argmax(-1) == labels[aside]).float().mean(1)  # (B,)
        better = share > best
        best, penalty = torch.where(better, share, best), torch.where(better, candidate, penalty)
        chosen = model if chosen is None else _mixed(better, model, chosen)
    return penalty, chosen


def _mixed(first: Tensor, a: LogisticModel, b: LogisticModel) -> LogisticModel:
    """Problem by problem, `a` where `first` says so, otherwise `b`."""
    return LogisticModel(
        torch.where(first.view(-1, 1, 1), a.weights, b.weights),
        torch.where(first.view(-1, 1), a.bias, b.bias),
        torch.where(first, a.converged, b.converged),
    )


# -- the analysis ---------------------------------------------------------------------------------------------


class Probe(Analysis):
    """Linear probe: how well a linear classifier reads the class off frozen features."""

    name = "probe"
    title = "linear probe"
    domain = "why"
    kind = "labelled"
    measures = (
        Measure(
            "probe_top1", "probe accuracy", "share of test images whose class a linear classifier reads off features"
        ),
        Measure(
            "probe_top5", "probe accuracy, top 5", "share of test images whose class is among its five best guesses"
        ),
    )
    headline = Headline(
        "probe_top1", "top-1 %", variants=("cls", "mean"), percent=True, unit="test image", chance=COMMONEST
    )

    penalties: tuple[float, ...] = Field(PENALTIES, description="Candidates for the penalty, strongest first")
    seed: int = Field(0, description="Of the images on which the penalty is chosen")
    dtype: Literal["auto", "float16", "float32"] = Field("auto", description="Of stored features")

    def passes(self, dataset: LabelledSet, shape: ModelShape) -> Sequence[Stream]:
        return labelled_streams(dataset, self.dtype)

    def operations(self, dataset: LabelledSet, shape: ModelShape) -> float:
        classes = len(dataset.train.classes)
        points = min(len(dataset.train), most_fitted(shape.width, classes, DEFAULT.most))
        fits = ROUNDS * (1 + len(self.penalties)) * (1 + shape.layout.has_cls) * shape.depth
        return 2.0 * points * classes * shape.width * fits

    def reduce(self, dataset: LabelledSet, found: Found) -> Outcome:
        labelled = LabelledFeatures.of(dataset, found)
        outcome = Outcome(notes=no_cls_note(found))
        for kind in labelled.kinds:
            scores = evaluate(
                labelled.train.layers(kind),
                labelled.train_labels,
                labelled.test.layers(kind),
                labelled.test_labels,
                config=ProbeConfig(self.penalties, self.seed),
                device=choose_device(found.device),
            )
            outcome.tables += scores.rows(NOBODY, kind, "corrected")
            if kind == labelled.kinds[0]:
                outcome.maps |= kept_units(self.name, scores.top1, labelled.chance, *labelled.asked)
        outcome.tables.append(chance_row("probe_top1", labelled.chance))
        if scores.fitted < len(labelled.train_labels):
            of_all = f"{scores.fitted:,} of {len(labelled.train_labels):,}"
            outcome.notes.append(f"{{model}}: linear probes were fitted on a seeded choice of {of_all} labelled images")
        return outcome
