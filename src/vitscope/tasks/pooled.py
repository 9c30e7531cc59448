"""Pooled features of every layer in one pass, for the tasks that ask about whole pictures: in memory, or in a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from vitscope.data.batches import SkippedImages
from vitscope.data.samples import SampleList
from vitscope.digest import digest_of
from vitscope.features.extract import extract
from vitscope.features.pooling import PooledStatistic, check_poolings
from vitscope.features.store import FeatureStore
from vitscope.models.backbone import Backbone
from vitscope.observe import observe
from vitscope.progress import Progress, silent
from vitscope.tasks.nearest import Array

KINDS = ("cls", "mean")  # the CLS token, where there is one, and the mean of the spatial tokens
IN_MEMORY = 256 << 20  # bytes: more features than that belong on disk


@dataclass(frozen=True)
class PooledFeatures:
    """By kind (`cls`, `mean`): L of (n, D). positions: int64 (n,), which picture of the list each row is."""

    features: Mapping[str, Sequence[Array]]
    positions: Tensor


class StoredLayer:
    """One layer of a feature store as an array (n, D) of which rows are read when they are asked for."""

    def __init__(self, store: FeatureStore, kind: str, layer: int) -> None:
        self.store, self.name = store, f"{kind}/{layer}"

    def __len__(self) -> int:
        return len(self.store)

    def __getitem__(self, rows: slice) -> Tensor:
        start, end, _ = rows.indices(len(self))
        parts, first = [], 0
        for shard in self.store.shards:
            count = len(shard.indices)
            if first < end and start < first + count:
                here = slice(max(start - first, 0), min(end - first, count))
                parts += shard.read([self.name], here)
            first += count
        return torch.cat(parts) if parts else torch.empty(0, self.store.contents.width)


def pooled_features(
    backbone: Backbone,
    samples: SampleList,
    *,
    store: Path | None = None,
    skipped: SkippedImages | None = None,
    progress: Progress = silent,
) -> PooledFeatures:
    """Features of all pictures that can be read; the others are in `skipped`.

    store: a folder for feature stores; what was extracted there before is used again. None: in memory.
    """
    kinds = check_poolings(KINDS, backbone.layout, backbone.name)
    skipped = skipped if skipped is not None else SkippedImages()
    if store is None:
        statistic = PooledStatistic(backbone.layout, kinds)
        observe(backbone, samples, [statistic], skipped=skipped, progress=progress)
        layers = {kind: values.unbind(1) for kind, values in statistic.result().items()}
        return PooledFeatures(layers, statistic.indices.sort().values)
    name = digest_of([backbone.weights_digest, backbone.preprocessing.digest, samples.digest])
    kept = extract(backbone, samples, store / name, poolings=kinds, skip_limit=skipped.limit, progress=progress)
    skipped.reasons.update(kept.skipped)
    on_disk = {kind: [StoredLayer(kept, kind, layer) for layer in range(backbone.depth)] for kind in kinds}
    return PooledFeatures(on_disk, kept.indices)


def bytes_in_memory(backbone: Backbone, pictures: int) -> int:
    """How much memory the features of so many pictures take if they are not stored."""
    return 4 * pictures * backbone.depth * backbone.width * len(KINDS)
