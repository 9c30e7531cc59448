"""Shape or texture: which cue decides when they contradict each other, asked by k-NN at every layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from vitscope.core.analysis import Analysis, Found, Measure, Outcome, Stream
from vitscope.core.bootstrap import percentile_interval, resampling_counts
from vitscope.core.device import choose_device
from vitscope.core.results import NOBODY, tidy
from vitscope.tasks.confidence import proportion_interval
from vitscope.tasks.knn import HEADLINE_K, votes
from vitscope.tasks.nearest import CPU, Array, nearest
from vitscope.tasks.units import chance_row
from vitscope.tasks.whole_images import LabelledFeatures, labelled_streams, no_cls_note

if TYPE_CHECKING:
    from vitscope.data.conflict import ConflictSet
    from vitscope.models.shape import ModelShape

# -- scores ---------------------------------------------------------------------------------------------------


def answers(
    bank: Sequence[Array], labels: Tensor, asked: Sequence[Array], *, k: int = HEADLINE_K, device: torch.device = CPU
) -> Tensor:
    """The class that k labelled neighbours vote for, at every layer: L of (n, D), (n,), L of (q, D) -> int64 (q, L)."""
    k, classes = min(k, len(labels)), int(labels.max()) + 1
    told = []
    for known, queries in zip(bank, asked, strict=True):
        cosines, positions = nearest(queries, known, k, device=device)
        told.append(votes(cosines, labels[positions], classes).argmax(1))
    return torch.stack(told, 1)


def shape_share(by_shape: Tensor, by_texture: Tensor) -> tuple[Tensor, Tensor]:
    """Of the images decided by either cue, the share decided by shape; and its 95 % interval over images.

    by_shape, by_texture: bool (q, L) -> (L,), (2, L); NaN where no image was decided by either.
    """
    shape, either = by_shape.double(), (by_shape | by_texture).double()
    counts = resampling_counts(len(shape))
    resampled = (counts @ shape) / (counts @ either)  # (R, L)
    return shape.sum(0) / either.sum(0), percentile_interval(resampled)


def share_by_chance(labels: Tensor, shapes: Tensor, textures: Tensor) -> Tensor:
    """What answers drawn from the labelled images would give: a half where classes are equally common."""
    common = labels.bincount(minlength=int(max(shapes.max(), textures.max())) + 1).double()
    return common[shapes].sum() / (common[shapes] + common[textures]).sum()


# -- the analysis ---------------------------------------------------------------------------------------------


class ShapeOrTexture(Analysis):
    """Which cue decides: images with the shape of one class and the texture of another, recognised by k-NN.

    Shares are of images whose answer is one of the two; how often it is either stands beside.
    """

    name = "shape_or_texture"
    title = "shape or texture"
    domain = "why"
    kind = "conflict"
    measures = (
        Measure("shape_share", "share of shape", "of images decided by one of the two cues, those decided by shape"),
        Measure("shape_decisions", "decided by shape", "share of all images that are taken for what their shape says"),
        Measure(
            "texture_decisions", "decided by texture", "share of all images that are taken for what their texture says"
        ),
    )

    def passes(self, dataset: ConflictSet, shape: ModelShape) -> Sequence[Stream]:
        return labelled_streams(dataset)

    def operations(self, dataset: ConflictSet, shape: ModelShape) -> float:
        compared = float(len(dataset.train)) * len(dataset.test)
        return (1 + shape.layout.has_cls) * compared * shape.width * shape.depth

    def reduce(self, dataset: ConflictSet, found: Found) -> Outcome:
        known = LabelledFeatures.of(dataset, found)
        shapes, textures = known.test_labels, torch.tensor(dataset.textures)[known.test.positions]
        outcome = Outcome(notes=no_cls_note(found))
        for kind in known.kinds:
            device = choose_device(found.device)
            told = answers(known.train.layers(kind), known.train_labels, known.test.layers(kind), device=device)
            by_shape, by_texture = told == shapes[:, None], told == textures[:, None]  # (q, L)
            options: dict[str, Any] = {"axes": ("layer",), "n": len(told), "variant": kind}
            share, (low, high) = shape_share(by_shape, by_texture)
            outcome.tables.append(tidy(NOBODY, "shape_share", share, low=low, high=high, **options))
            for measure, hits in (("shape_decisions", by_shape), ("texture_decisions", by_texture)):
                low, high = proportion_interval(hits)
                outcome.tables.append(tidy(NOBODY, measure, hits.double().mean(0), low=low, high=high, **options))
        outcome.tables.append(chance_row("shape_share", share_by_chance(known.train_labels, shapes, textures)))
        return outcome
