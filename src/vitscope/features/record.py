"""What one model's pass left for the analysis of features, read as it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from vitscope.core.analysis import Found
from vitscope.core.errors import BadData
from vitscope.features.gram_statistic import Grams
from vitscope.features.residual import Residual
from vitscope.features.stored import PooledFeatures
from vitscope.models.shape import ModelShape

VARIANTS = {"cls": "cls", "mean": "spatial"}  # pooling in the store -> name of the tokens in tables


@dataclass(frozen=True)
class FeatureRecord:
    """title, teaching, digest: of the model, where it is compared with others."""

    found: Found
    title: str = ""
    teaching: str = ""
    digest: str = ""

    @property
    def shape(self) -> ModelShape:
        return self.found.shape

    @property
    def depth(self) -> int:
        return self.shape.depth

    @cached_property
    def pooled(self) -> PooledFeatures:
        return self.found.features()

    def features(self, pooling: str, layer: int, most: int | None = None) -> Tensor:
        """All rows of a layer, or the first few: (n, D) float32."""
        return self.pooled.layer(pooling, layer).whole(most)

    @cached_property
    def grams(self) -> Grams:
        """Of block outputs, and after norm1 and norm2 where the model has them."""
        grams: Grams = self.found.statistic("grams").result()
        if "norms" not in self.shape.signals:
            return grams
        norms: Grams = self.found.statistic("norm_grams").result()
        packed = {kind: torch.cat([grams.packed[kind], norms.packed[kind]], dim=1) for kind in grams.packed}
        return Grams(grams.size, grams.numbers, grams.members, grams.sites + norms.sites, packed, grams.unused)

    @cached_property
    def residual(self) -> Residual | None:
        return self.found.statistic("residual").result() if "branches" in self.shape.signals else None


def check_comparable(records: Sequence[FeatureRecord]) -> None:
    """All models could read the same images, or an error that says who could not."""
    first = records[0]
    for other in records[1:]:
        mine, theirs = first.pooled.positions, other.pooled.positions
        if not torch.equal(mine, theirs):
            missing = set(mine.tolist()) ^ set(theirs.tolist())
            raise BadData(
                f"{first.title} and {other.title} could not use the same images, {len(missing)} were read for one of "
                "them only: run both again"
            )
