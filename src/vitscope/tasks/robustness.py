"""Robustness: the same k-NN task, and how far features drift, when the images that are asked about are corrupted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from vitscope.core.analysis import Analysis, Found, Headline, Measure, Outcome, Stream
from vitscope.core.bootstrap import mean_interval
from vitscope.core.device import choose_device
from vitscope.core.results import NOBODY, tidy, tidy_mean
from vitscope.data.corruption import CORRUPTIONS, STRENGTHS, Corruption, Strength
from vitscope.features.pooling import pooled
from vitscope.features.stored import PooledFeatures
from vitscope.tasks.knn import HEADLINE_K, KnnConfig, evaluate
from vitscope.tasks.whole_images import LabelledFeatures, labelled_streams, no_cls_note

if TYPE_CHECKING:
    from vitscope.data.dataset import LabelledSet
    from vitscope.models.shape import ModelShape


def drift(clean: Tensor, corrupted: Tensor) -> Tensor:
    """1 - cosine of an image's feature and that of its corrupted self: (n, ..., D), (n, ..., D) -> (n, ...)."""
    return 1 - F.cosine_similarity(clean.double(), corrupted.double(), dim=-1)


class Robustness(Analysis):
    """k-NN accuracy and drift of features at every layer, under seeded corruptions of the images that are asked about.

    Labelled images stay clean. Each corruption and strength is a further pass over the test images: it is done where it
    is asked for by name.
    """

    name = "robustness"
    title = "k-NN under corruption"
    domain = "why"
    kind = "labelled"
    asked_for = True
    measures = (
        Measure("robustness_top1", "k-NN accuracy under corruption", "accuracy on corrupted images; `all`: their mean"),
        Measure(
            "robustness_drift", "drift under corruption", "1 - cosine of features of an image and its corrupted self"
        ),
    )
    headline = Headline("robustness_top1", "top-1 %", variants=("all",), percent=True)

    corruptions: tuple[Corruption, ...] = Field(CORRUPTIONS, description="Which of them")
    strengths: tuple[Strength, ...] = Field(STRENGTHS, description="How strong, each once")

    @property
    def conditions(self) -> list[str]:
        return [f"{corruption} {strength}" for corruption in self.corruptions for strength in self.strengths]

    def passes(self, dataset: LabelledSet, shape: ModelShape) -> Sequence[Stream]:
        watch = (pooled(dataset.test),)
        streams = [Stream(dataset.test, watch, geometry=f"crop, {name}", name=name) for name in self.conditions]
        return [*labelled_streams(dataset), *streams]

    def reduce(self, dataset: LabelledSet, found: Found) -> Outcome:
        known = LabelledFeatures.of(dataset, found)
        kind = known.kinds[0]
        outcome = Outcome(notes=no_cls_note(found))
        every = []
        for name in self.conditions:
            corrupted = found.features(name)
            both = _shared(known.test, corrupted)
            labels = known.test_labels[both[0]]
            layers = [_Rows(layer.whole()[both[1]]) for layer in corrupted.layers(kind)]
            config = KnnConfig((min(HEADLINE_K, len(known.train_labels)),))
            device = choose_device(found.device)
            scores = evaluate(
                known.train.layers(kind), known.train_labels, layers, labels, config=config, device=device
            )
            hits = scores.top1[..., 0].double()  # (q, L)
            every.append(hits)
            outcome.tables.append(tidy_mean(NOBODY, "robustness_top1", hits, axes=("layer",), variant=name))
            clean = known.test.layers(kind)
            drifts = torch.stack([drift(a.whole()[both[0]], b.rows) for a, b in zip(clean, layers, strict=True)], 1)
            outcome.tables.append(tidy_mean(NOBODY, "robustness_drift", drifts, axes=("layer",), variant=name))
        if len({len(hits) for hits in every}) == 1:
            together = torch.stack(every).mean(0)  # an image with all its corruptions is one draw
            low, high = mean_interval(together)
            options: dict[str, Any] = {"axes": ("layer",), "n": len(together), "variant": "all"}
            outcome.tables.append(tidy(NOBODY, "robustness_top1", together.mean(0), low=low, high=high, **options))
        return outcome


class _Rows:
    """Features in memory, as `nearest` reads them."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: slice, /) -> Tensor:
        return self.rows[rows]


def _shared(a: PooledFeatures, b: PooledFeatures) -> tuple[Tensor, Tensor]:
    """Rows of the images that both have: (m,) each. A file that broke meanwhile is in neither."""
    return torch.isin(a.positions, b.positions).nonzero().flatten(), torch.isin(
        b.positions, a.positions
    ).nonzero().flatten()
