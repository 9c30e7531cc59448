"""How much each head matters: what becomes of an image's feature, and of k-NN, if the head says the same of all images.

A head's output at each token is replaced by its mean over images, and the network runs on from there. Never by zero: no
later layer has ever met a head that says nothing, and what breaks for that reason alone overstates the head
(2604.14433).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import polars as pl
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from vitscope.core.analysis import BATCH, Analysis, Drive, Found, Measure, Outcome
from vitscope.core.device import accumulation_dtype
from vitscope.core.errors import BadData
from vitscope.core.results import NOBODY, tidy_mean
from vitscope.data.batches import Batch, SkippedImages, batches
from vitscope.features.pooling import pool
from vitscope.models.observe import Onlooker
from vitscope.models.trace import attention_module
from vitscope.tasks.knn import HEADLINE_K, classify
from vitscope.tasks.robustness import drift

if TYPE_CHECKING:
    from vitscope.data.dataset import ImageSet
    from vitscope.data.samples import SampleList
    from vitscope.models.backbone import Backbone
    from vitscope.models.layout import TokenLayout
    from vitscope.models.shape import ModelShape

TOGETHER = 3  # blocks of a job: they share the pass that takes the means

# -- the network without a head -------------------------------------------------------------------------------


@contextmanager
def mean_replacement(block: nn.Module, mean: Tensor) -> Iterator[None]:
    """While it lasts, images leave `block` in 1 + H versions each: whole, and with each head's output replaced in turn.

    mean: (T, H, d). Blocks before this one see an image once; it and those after it see all versions, side by side:
    (B, T, D) becomes (B * (1 + H), T, D).
    """
    heads = mean.shape[1]

    def fan_out(_block: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        return (args[0].repeat_interleave(1 + heads, 0), *args[1:])

    def replace(_projection: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        mixed = args[0].unflatten(0, (-1, 1 + heads)).unflatten(-1, (heads, -1)).clone()  # (B, 1 + H, T, H, d)
        for head in range(heads):
            mixed[:, 1 + head, :, head] = mean[:, head].to(mixed)
        return (mixed.flatten(-2).flatten(0, 1), *args[1:])

    projection: nn.Module = attention_module(block).proj  # type: ignore[assignment]
    handles = block.register_forward_pre_hook(fan_out), projection.register_forward_pre_hook(replace)
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


class MeanOutputs(Onlooker):
    """The mean over images of what the heads of some blocks put out at each token: `of(layer)` is (T, H * d)."""

    wants = frozenset({"writes"})

    def __init__(self, layers: range) -> None:
        self.layers, self.count = layers, 0
        self.sums: dict[int, Tensor] = {}

    def writes(self, layer: int, mixed: Tensor, weight: Tensor) -> None:
        if layer in self.layers:
            total = mixed.to(accumulation_dtype(mixed.device)).sum(0)
            self.sums[layer] = self.sums[layer] + total if layer in self.sums else total
            self.count += len(mixed) * (layer == self.layers[0])

    def of(self, layer: int) -> Tensor:
        return self.sums[layer] / self.count


class LastFeatures(Onlooker):
    """The feature of each image after the last block: CLS, or the mean patch where there is none."""

    wants = frozenset({"tokens"})

    def __init__(self, layout: TokenLayout, depth: int) -> None:
        self.layout, self.depth = layout, depth
        self.rows: list[Tensor] = []

    def tokens(self, layer: int, x: Tensor) -> None:
        if layer == self.depth - 1:
            self.rows.append(pool(x, self.layout, _pooling(self.layout)).float().cpu())


def replaced_features(backbone: Backbone, shown: Sequence[Batch], layer: int, mean: Tensor) -> Tensor:
    """Features of images after the last block: whole, and without each head of a block; (n, 1 + H, D).

    mean: (T, H * d), what replaces the heads' outputs; layer: of the heads, counted from 0.
    """
    seen, heads = LastFeatures(backbone.layout, backbone.depth), backbone.heads
    with mean_replacement(backbone.module.blocks[layer], mean.unflatten(-1, (heads, -1))):  # type: ignore[index,arg-type]
        for batch in shown:
            backbone.trace(batch.images, [seen])
    versions: Tensor = torch.cat(seen.rows).unflatten(0, (-1, 1 + heads))
    return versions


def recognised(features: Tensor, labels: Tensor) -> Tensor:
    """Whether its nearest others vote for an image's class: features (n, D), labels (n,) -> bool (n,)."""
    units = F.normalize(features.float(), dim=1)
    cosines, others = (units @ units.T).fill_diagonal_(-torch.inf).topk(min(HEADLINE_K, len(units) - 1))
    hits: Tensor = classify(cosines, labels[others], labels, int(labels.max()) + 1, (cosines.shape[1],))[0, :, 0]
    return hits


def _pooling(layout: TokenLayout) -> str:
    return "cls" if layout.has_cls else "mean"


# -- the analysis ---------------------------------------------------------------------------------------------


class HeadImportance(Analysis):
    """How far the last layer's feature moves, and what k-NN loses, if a head says what it says on average.

    Each block takes a further pass in which its images are carried on in as many versions as it has heads: about half
    as many forward passes per image as the network has heads. It is done where it is asked for by name. k-NN, where
    images have classes, asks the other images, all of them seen by the same changed network.
    """

    name = "importance"
    title = "head importance"
    domain = "how"
    kind = "images"
    asked_for = True
    measures = (
        Measure(
            "head_importance",
            "importance of heads",
            "1 - cosine of the last layer's feature and that with the head's output replaced by its mean over images",
        ),
        Measure(
            "head_importance_knn",
            "k-NN lost without a head",
            "accuracy with the head minus accuracy with its output replaced by its mean over images",
        ),
    )

    images: int = Field(64, ge=2, le=1024, description="At most so many, a seeded choice balanced over classes")

    def passes(self, dataset: ImageSet, shape: ModelShape) -> Sequence[Drive]:
        if "writes" not in shape.signals:
            return []
        count = len(self._samples(dataset))
        shards = [range(start, min(start + TOGETHER, shape.depth)) for start in range(0, shape.depth, TOGETHER)]
        return [Drive((count,) * shape.depth, shards, name="blocks", tiles=1 + -(-shape.heads // 2))]

    def _samples(self, dataset: ImageSet) -> SampleList:
        return dataset.samples.limit(self.images, dataset.seed)

    def drive(
        self, backbone: Backbone, dataset: ImageSet, units: range, skipped: SkippedImages
    ) -> Mapping[str, Tensor]:
        samples = self._samples(dataset)
        size = max(BATCH // (1 + backbone.heads), 1)
        shown = list(batches(samples, backbone.preprocessing, batch_size=size, skipped=skipped))
        if sum(len(batch) for batch in shown) < 2:
            raise BadData("a head's mean takes two images or more: give more that can be read")
        means = MeanOutputs(units)
        for batch in shown:
            backbone.trace(batch.images, [means])
        state: dict[str, Tensor] = {}
        labels = (
            torch.cat([batch.labels for batch in shown if batch.labels is not None]) if samples.is_labelled else None
        )
        for layer in units:
            features = replaced_features(backbone, shown, layer, means.of(layer))
            state[f"importance/{layer}"] = drift(features[:, :1], features[:, 1:])  # (n, H)
            if labels is not None:
                hits = torch.stack([recognised(one, labels) for one in features.unbind(1)], 1)  # (n, 1 + H)
                state[f"hits/{layer}"] = hits
        return state

    def reduce(self, dataset: ImageSet, found: Found) -> Outcome:
        if "writes" not in found.shape.signals:
            return Outcome(notes=["{model} does not show what its heads put out: it is absent from head importance"])
        outcome = Outcome()
        variant = _pooling(found.shape.layout)
        for units, state in found.states("blocks"):
            for layer in units:
                rows = {"head_importance": state[f"importance/{layer}"]}
                if f"hits/{layer}" in state:
                    hits = state[f"hits/{layer}"].double()
                    rows["head_importance_knn"] = hits[:, :1] - hits[:, 1:]
                for measure, values in rows.items():
                    table = tidy_mean(NOBODY, measure, values, axes=("head",), variant=variant)
                    outcome.tables.append(table.with_columns(pl.lit(layer + 1, pl.Int32).alias("layer")))
        return outcome
