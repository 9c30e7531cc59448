"""Linear probe: how well a linear classifier reads the class off frozen features, at every layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from vitscope.errors import BadData
from vitscope.models.backbone import Backbone
from vitscope.progress import Progress, silent
from vitscope.results import Label, tidy
from vitscope.tasks.confidence import proportion_interval
from vitscope.tasks.knn import within_top
from vitscope.tasks.labelled import LabelledFeatures, LabelledSet, extract
from vitscope.tasks.logistic import LogisticModel, fit
from vitscope.tasks.nearest import CPU, Array, read_rows

# -- protocol (not in the paper) -----------------------------------------------------------------------------

PENALTIES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)  # candidates, strongest first: each fit starts from the one before
HELD_OUT = 0.2  # share of the labelled pictures on which the penalty is chosen, layer by layer


@dataclass(frozen=True)
class ProbeConfig:
    penalties: tuple[float, ...] = PENALTIES
    seed: int = 0  # of the held-out share
    tolerance: float = 1e-4  # largest partial derivative of a finished fit
    memory: int = 1 << 29  # bytes of features that are fitted at once; more layers than that take turns


DEFAULT = ProbeConfig()


# -- scores --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProbeScores:
    """Right or wrong for each query, bool (q, L); and the penalty that was chosen, (L,)."""

    top1: Tensor
    top5: Tensor
    penalty: Tensor

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
    """A seeded choice of `share` of each class: bool (n,). A class keeps at least one picture to learn from."""
    generator = np.random.default_rng(seed)
    chosen = torch.zeros(len(labels), dtype=torch.bool)
    for label in labels.unique().tolist():
        members = (labels == label).nonzero().flatten().numpy()
        chosen[generator.permutation(members)[: min(round(len(members) * share), len(members) - 1)]] = True
    return chosen


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
        raise BadData("a classifier needs two or more classes to tell apart: add pictures of another class")
    layers = max(config.memory // (4 * len(train[0]) * read_rows(train[0], 0, 1).shape[1]), 1)
    parts = []
    with progress("linear probe", len(train)) as advance:
        for start in range(0, len(train), layers):
            some = slice(start, start + layers)
            known = torch.stack([read_rows(layer, 0, len(layer)).to(device) for layer in train[some]])  # (B, n, D)
            asked = torch.stack([read_rows(layer, 0, len(layer)).to(device) for layer in test[some]])
            parts.append(_probe(known, train_labels.to(device), asked, test_labels, config))
            advance(len(known))
    return ProbeScores(*(torch.cat(part, -1) for part in zip(*parts, strict=True)))


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
    """The penalty (B,) that does best on the pictures set aside, the stronger of equals; and the fit it gave."""
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


# -- evaluation of a model -----------------------------------------------------------------------------------


def run(
    backbone: Backbone,
    dataset: LabelledSet,
    config: ProbeConfig = DEFAULT,
    *,
    features: LabelledFeatures | None = None,
    progress: Progress = silent,
) -> dict[str, ProbeScores]:
    """Scores by kind of feature: `cls` (if the model has one) and `mean`, the mean spatial token."""
    features = features or extract(backbone, dataset, progress=progress)
    return {
        kind: evaluate(
            features.train[kind],
            features.train_labels,
            features.test[kind],
            features.test_labels,
            config=config,
            device=backbone.device,
            progress=progress,
        )
        for kind in features.train
    }
