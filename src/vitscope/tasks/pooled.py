"""Pooled features of every layer in one pass, for the tasks that ask about whole pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from vitscope.data.batches import SkippedImages
from vitscope.data.samples import SampleList
from vitscope.features.pooling import PooledStatistic, check_poolings
from vitscope.models.backbone import Backbone
from vitscope.observe import observe
from vitscope.progress import Progress, silent

KINDS = ("cls", "mean")  # the CLS token, where there is one, and the mean of the spatial tokens


@dataclass(frozen=True)
class PooledFeatures:
    """By kind (`cls`, `mean`): L of (n, D). positions: int64 (n,), which picture of the list each row is."""

    features: Mapping[str, Sequence[Tensor]]
    positions: Tensor


def pooled_features(
    backbone: Backbone, samples: SampleList, *, skipped: SkippedImages | None = None, progress: Progress = silent
) -> PooledFeatures:
    """Features of all pictures that can be read; the others are in `skipped`."""
    statistic = PooledStatistic(backbone.layout, check_poolings(KINDS, backbone.layout, backbone.name))
    observe(backbone, samples, [statistic], skipped=skipped, progress=progress)
    layers = {kind: values.unbind(1) for kind, values in statistic.result().items()}
    return PooledFeatures(layers, statistic.indices.sort().values)
