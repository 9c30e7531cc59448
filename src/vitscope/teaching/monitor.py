"""How good are the features by now? k-NN of held-out images at every layer, while training."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl
import torch
from torch import Tensor

from vitscope.data.dataset import LabelledSet
from vitscope.data.preprocessing import Preprocessing
from vitscope.data.samples import PixelSample, SampleList
from vitscope.models.backbone import Backbone
from vitscope.pipeline.evaluate import evaluate
from vitscope.tasks.knn import Knn
from vitscope.teaching.vit import ViT

NEIGHBOURS = 20


@dataclass(frozen=True)
class LayerScores:
    """k-NN accuracy of each layer for the CLS token (None without one) and for the mean patch token."""

    cls: list[float] | None
    patch: list[float]


@dataclass(frozen=True)
class Monitor:
    """Labelled images to look up (the bank), and named sets of images to ask about.

    bank: uint8 (M, 3, h, w); bank_labels: int64 (M,); tests: name -> (images (N, 3, h, w), labels (N,)).
    """

    bank: Tensor
    bank_labels: Tensor
    tests: Mapping[str, tuple[Tensor, Tensor]]

    @cached_property
    def datasets(self) -> list[LabelledSet]:
        bank = listed(self.bank, self.bank_labels)
        return [LabelledSet(name, bank, listed(*test)) for name, test in self.tests.items()]

    def __call__(self, vit: ViT) -> dict[str, LayerScores]:
        height, width = self.bank.shape[-2:]
        half = (0.5, 0.5, 0.5)
        backbone = Backbone(  # a copy: this one is being taught
            "taught", deepcopy(vit), Preprocessing((height, width), half, half), device=next(vit.parameters()).device
        )
        k = min(NEIGHBOURS, len(self.bank))
        table = evaluate(backbone, self.datasets, [Knn(ks=(k,))])["knn_top1"]

        def scores(test: str, kind: str) -> list[float] | None:
            rows = table.filter((pl.col("dataset") == test) & (pl.col("variant") == f"{kind} k={k}")).sort("layer")
            return [round(value, 4) for value in rows["value"]] or None

        return {name: LayerScores(scores(name, "cls"), scores(name, "mean") or []) for name in self.tests}


def listed(images: Tensor, labels: Tensor | None) -> SampleList:
    """Images in memory as a list like any other. images: uint8 (n, 3, h, w); labels: int64 (n,), or None."""
    pixels = images.permute(0, 2, 3, 1).contiguous().numpy()
    known = enumerate(zip(pixels, [None] * len(images) if labels is None else labels.tolist(), strict=True))
    samples = [PixelSample(str(i), Path(str(i)), label, pixels=image) for i, (image, label) in known]
    classes = 0 if labels is None else int(torch.max(labels)) + 1
    return SampleList(samples, classes=[str(label) for label in range(classes)])
