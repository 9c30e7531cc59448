"""k-NN classification: what a image shows is voted by the labelled images whose features are most alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
import torch
from pydantic import Field
from torch import Tensor

from vitscope.core.analysis import Analysis, Found, Headline, Measure, Outcome, Stream
from vitscope.core.device import choose_device
from vitscope.core.errors import BadData
from vitscope.core.progress import Progress, silent
from vitscope.core.results import NOBODY, Label, tidy
from vitscope.features.pooling import THUMBNAIL
from vitscope.tasks.confidence import proportion_interval
from vitscope.tasks.nearest import CPU, QUERY_BLOCK, Array, nearest
from vitscope.tasks.units import chance_row, kept_units
from vitscope.tasks.whole_images import COMMONEST, LabelledFeatures, labelled_streams, no_cls_note

if TYPE_CHECKING:
    from vitscope.data.dataset import LabelledSet
    from vitscope.models.shape import ModelShape

# -- protocol ------------------------------------------------------------------------------------------------

KS = (10, 20, 100, 200)
HEADLINE_K = 20  # stands in the table
TEMPERATURE = 0.07  # a neighbour's vote counts exp(cosine / temperature)


@dataclass(frozen=True)
class KnnConfig:
    """`paper`, as DINO's evaluation: if fewer than five classes have votes, the five best are filled up with classes
    that have none (which of them is undefined there; here the first). `corrected`: no vote, no place."""

    ks: tuple[int, ...] = KS  # numbers of neighbours, all from one search
    protocol: str = "corrected"


DEFAULT = KnnConfig()


# -- scores --------------------------------------------------------------------------------------------------


def votes(cosines: Tensor, labels: Tensor, classes: int, temperature: float = TEMPERATURE) -> Tensor:
    """Votes of k neighbours for each class: cosines (q, k), labels (q, k) -> (q, classes).

    Only the ratio of votes matters, so the strongest neighbour counts 1: exp(cosine / 0.07) itself reaches 1.6 million.
    """
    weights = ((cosines - cosines[:, :1]) / temperature).exp()
    return torch.zeros(len(cosines), classes).scatter_add_(1, labels, weights)


def within_top(scores: Tensor, truth: Tensor, k: int, *, without_votes: bool = False) -> Tensor:
    """Is the true class among the k best? scores: (q, C), truth: (q,) -> bool (q,).

    Of equal scores the first class wins. without_votes: whether a class without a single vote may be among the best.
    """
    own = scores.gather(1, truth.unsqueeze(1))  # (q, 1)
    earlier = torch.arange(scores.shape[1]) < truth.unsqueeze(1)
    better = (scores > own) | ((scores == own) & earlier)
    return (better.sum(1) < k) & (without_votes | (own.squeeze(1) > 0))


def classify(
    cosines: Tensor, labels: Tensor, truth: Tensor, classes: int, ks: Sequence[int], protocol: str = "corrected"
) -> Tensor:
    """Right or wrong for every number of neighbours: cosines and labels (q, k), truth (q,) -> bool (2, q, len(ks)).

    The first axis is top-1 and top-5. A block of queries at a time: 50,000 queries and 1,000 classes are 200 MB.
    """
    blocks = []
    for start in range(0, len(truth), QUERY_BLOCK):
        part = slice(start, start + QUERY_BLOCK)
        scores = [votes(cosines[part, :k], labels[part, :k], classes) for k in ks]
        paper = protocol == "paper"
        first = [within_top(s, truth[part], 1) for s in scores]
        five = [within_top(s, truth[part], min(5, k), without_votes=paper) for k, s in zip(ks, scores, strict=True)]
        blocks.append(torch.stack([torch.stack(first, 1), torch.stack(five, 1)]))
    return torch.cat(blocks, 1)


@dataclass(frozen=True)
class KnnScores:
    """Right or wrong for each query: bool (q, L, number of ks)."""

    ks: tuple[int, ...]
    top1: Tensor
    top5: Tensor
    neighbours: Tensor  # (q, L, 10): positions of the nearest labelled images

    def rows(self, label: Label, variant: str, protocol: str, first_layer: int = 1) -> list[pl.DataFrame]:
        tables = []
        for measure, hits in (("knn_top1", self.top1), ("knn_top5", self.top5)):
            low, high = proportion_interval(hits)
            value = hits.double().mean(0)  # (L, K)
            for i, k in enumerate(self.ks):
                options: dict[str, Any] = {"low": low[:, i], "high": high[:, i], "n": len(hits), "protocol": protocol}
                options |= {"variant": f"{variant} k={k}", "first_layer": first_layer}
                tables.append(tidy(label, measure, value[:, i], axes=("layer",), **options))
        return tables

    def rows_of_pixels(self, label: Label, protocol: str) -> list[pl.DataFrame]:
        """The same where the one layer is the images themselves."""
        low, high = proportion_interval(self.top1)  # (1, K)
        value, options = self.top1.double().mean(0), {"axes": (), "n": len(self.top1), "protocol": protocol}
        name = "knn_top1_pixels"
        return [
            tidy(label, name, value[0, i], low=low[0, i], high=high[0, i], variant=f"k={k}", **options)  # type: ignore[arg-type]
            for i, k in enumerate(self.ks)
        ]


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
            f"{len(absent)} of the classes asked for (first: number {absent[0]}) have no labelled image to be "
            "recognised by: add some, or leave these classes out"
        )
    ks = tuple(k for k in config.ks if k <= len(train_labels)) or (len(train_labels),)
    top1, top5, neighbours = [], [], []
    with progress("k-NN", len(train)) as advance:
        for bank, queries in zip(train, test, strict=True):
            cosines, positions = nearest(queries, bank, max(ks), device=device)
            hits = classify(cosines, train_labels[positions], test_labels, classes, ks, config.protocol)
            top1.append(hits[0])
            top5.append(hits[1])
            neighbours.append(positions[:, :10])
            advance(1)
    return KnnScores(ks, torch.stack(top1, 1), torch.stack(top5, 1), torch.stack(neighbours, 1))


# -- the analysis ---------------------------------------------------------------------------------------------


class Knn(Analysis):
    """k-NN classification: what an image shows is voted by the labelled images whose features are most alike.

    `paper`, as DINO's evaluation: classes without a vote fill up the five best if fewer than five have votes.
    `corrected`: a class without a vote is never among the best. Top-1 is the same.
    """

    name = "knn"
    title = "k-NN"
    domain = "why"
    kind = "labelled"
    measures = (
        Measure("knn_top1", "k-NN accuracy", "share of test images whose class the nearest training images vote for"),
        Measure("knn_top5", "k-NN accuracy, top 5", "share of test images whose class is among the five most voted"),
        Measure("knn_top1_pixels", "k-NN accuracy of pixels", "the same by the images themselves, 16 x 16, no network"),
        Measure("knn_bank", "labelled images", "how many training images vote"),
    )
    headline = Headline(
        "knn_top1",
        "top-1 %",
        variants=(f"cls k={HEADLINE_K}", f"mean k={HEADLINE_K}", "cls k=*", "mean k=*"),
        percent=True,
        unit="test image",
        chance=COMMONEST,
    )

    protocol: Literal["corrected", "paper"] = "corrected"
    ks: tuple[int, ...] = Field(KS, description="Numbers of neighbours, all from one search")
    dtype: Literal["auto", "float16", "float32"] = Field("auto", description="Of stored features")

    def passes(self, dataset: LabelledSet, shape: ModelShape) -> Sequence[Stream]:
        return labelled_streams(dataset, self.dtype)

    def operations(self, dataset: LabelledSet, shape: ModelShape) -> float:
        compared = float(len(dataset.train)) * len(dataset.test)
        return compared * ((1 + shape.layout.has_cls) * shape.width * shape.depth + 3 * THUMBNAIL**2)

    def reduce(self, dataset: LabelledSet, found: Found) -> Outcome:
        labelled = LabelledFeatures.of(dataset, found)
        outcome = Outcome(notes=no_cls_note(found))
        bank, n = torch.tensor(float(len(labelled.train_labels))), len(labelled.test_labels)
        outcome.tables.append(tidy(NOBODY, "knn_bank", bank, axes=(), n=n, protocol=self.protocol))
        config, device = KnnConfig(self.ks, self.protocol), choose_device(found.device)

        def of(train: Sequence[Array], test: Sequence[Array]) -> KnnScores:
            return evaluate(train, labelled.train_labels, test, labelled.test_labels, config=config, device=device)

        seen = of([labelled.train.pixels], [labelled.test.pixels])
        outcome.tables += seen.rows_of_pixels(NOBODY, self.protocol)
        for kind in labelled.kinds:
            scores = of(labelled.train.layers(kind), labelled.test.layers(kind))
            outcome.tables += scores.rows(NOBODY, kind, self.protocol)
            if kind == labelled.kinds[0]:
                outcome.maps |= labelled.examples(scores.neighbours)
                k = scores.ks.index(HEADLINE_K if HEADLINE_K in scores.ks else max(scores.ks))
                pixels, asked = seen.top1[:, 0, k], labelled.asked
                outcome.maps |= kept_units(self.name, scores.top1[..., k], labelled.chance, *asked, pixels=pixels)
        if labelled.train.pool is not None and labelled.test.pool is not None:
            scores = of([labelled.train.pool], [labelled.test.pool])
            outcome.tables += scores.rows(NOBODY, "pool", self.protocol, first_layer=labelled.train.depth)
        outcome.tables.append(chance_row("knn_top1", labelled.chance, self.protocol))
        return outcome
