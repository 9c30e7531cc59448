"""k-NN classification: what a picture shows is voted by the labelled pictures whose features are most alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import torch
from torch import Tensor

from vitscope.errors import BadData
from vitscope.models.backbone import Backbone
from vitscope.progress import Progress, silent
from vitscope.results import Label, tidy
from vitscope.tasks.confidence import proportion_interval
from vitscope.tasks.labelled import LabelledFeatures, LabelledSet, extract
from vitscope.tasks.nearest import CPU, QUERY_BLOCK, Array, nearest

# -- protocol: the same in `paper` and `corrected` -----------------------------------------------------------

KS = (10, 20, 100, 200)
HEADLINE_K = 20  # stands in the table
TEMPERATURE = 0.07  # a neighbour's vote counts exp(cosine / temperature)


@dataclass(frozen=True)
class KnnConfig:
    ks: tuple[int, ...] = KS  # numbers of neighbours, all from one search


DEFAULT = KnnConfig()


# -- scores --------------------------------------------------------------------------------------------------


def votes(cosines: Tensor, labels: Tensor, classes: int, temperature: float = TEMPERATURE) -> Tensor:
    """Votes of k neighbours for each class: cosines (q, k), labels (q, k) -> (q, classes).

    Only the ratio of votes matters, so the strongest neighbour counts 1: exp(cosine / 0.07) itself reaches 1.6 million.
    """
    weights = ((cosines - cosines[:, :1]) / temperature).exp()
    return torch.zeros(len(cosines), classes).scatter_add_(1, labels, weights)


def within_top(scores: Tensor, truth: Tensor, k: int) -> Tensor:
    """Is the true class among the k best? scores: (q, C), truth: (q,) -> bool (q,).

    Of equal scores the first class wins; a class without a single vote is never among the best.
    """
    own = scores.gather(1, truth.unsqueeze(1))  # (q, 1)
    earlier = torch.arange(scores.shape[1]) < truth.unsqueeze(1)
    better = (scores > own) | ((scores == own) & earlier)
    return (better.sum(1) < k) & (own.squeeze(1) > 0)


def classify(cosines: Tensor, labels: Tensor, truth: Tensor, classes: int, ks: Sequence[int]) -> Tensor:
    """Right or wrong for every number of neighbours: cosines and labels (q, k), truth (q,) -> bool (2, q, len(ks)).

    The first axis is top-1 and top-5. A block of queries at a time: 50,000 queries and 1,000 classes are 200 MB.
    """
    blocks = []
    for start in range(0, len(truth), QUERY_BLOCK):
        part = slice(start, start + QUERY_BLOCK)
        scores = [votes(cosines[part, :k], labels[part, :k], classes) for k in ks]
        blocks.append(
            torch.stack([torch.stack([within_top(s, truth[part], top) for s in scores], 1) for top in (1, 5)])
        )
    return torch.cat(blocks, 1)


@dataclass(frozen=True)
class KnnScores:
    """Right or wrong for each query: bool (q, L, number of ks)."""

    ks: tuple[int, ...]
    top1: Tensor
    top5: Tensor
    neighbours: Tensor  # (q, L, 10): positions of the nearest labelled pictures

    def rows(self, label: Label, variant: str, protocol: str) -> list[pl.DataFrame]:
        tables = []
        for measure, hits in (("knn_top1", self.top1), ("knn_top5", self.top5)):
            low, high = proportion_interval(hits)
            value = hits.double().mean(0)  # (L, K)
            for i, k in enumerate(self.ks):
                options: dict[str, Any] = {"low": low[:, i], "high": high[:, i], "n": len(hits), "protocol": protocol}
                tables.append(tidy(label, measure, value[:, i], axes=("layer",), variant=f"{variant} k={k}", **options))
        return tables


# -- evaluation on features ----------------------------------------------------------------------------------


def evaluate(
    train: Sequence[Array],
    train_labels: Tensor,
    test: Sequence[Array],
    test_labels: Tensor,
    *,
    config: KnnConfig = DEFAULT,
    device: torch.device = CPU,
    progress: Progress = silent,
) -> KnnScores:
    """Classify `test` by `train` at every layer. train: L of (n, D), test: L of (q, D), labels: int64 (n,) and (q,)."""
    classes = int(train_labels.max()) + 1
    if absent := sorted(set(test_labels.tolist()) - set(train_labels.tolist())):
        raise BadData(
            f"{len(absent)} of the classes asked for (first: number {absent[0]}) have no labelled picture to be "
            "recognised by: add some, or leave these classes out"
        )
    ks = tuple(k for k in config.ks if k <= len(train_labels)) or (len(train_labels),)
    top1, top5, neighbours = [], [], []
    with progress("k-NN", len(train)) as advance:
        for bank, queries in zip(train, test, strict=True):
            cosines, positions = nearest(queries, bank, max(ks), device=device)
            hits = classify(cosines, train_labels[positions], test_labels, classes, ks)
            top1.append(hits[0])
            top5.append(hits[1])
            neighbours.append(positions[:, :10])
            advance(1)
    return KnnScores(ks, torch.stack(top1, 1), torch.stack(top5, 1), torch.stack(neighbours, 1))


# -- evaluation of a model -----------------------------------------------------------------------------------


def run(
    backbone: Backbone,
    dataset: LabelledSet,
    config: KnnConfig = DEFAULT,
    *,
    features: LabelledFeatures | None = None,
    progress: Progress = silent,
) -> dict[str, KnnScores]:
    """Scores by kind of feature: `cls` (if the model has one) and `mean`, the mean spatial token.

    features: what `extract` gave before, if another task has had it already.
    """
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
