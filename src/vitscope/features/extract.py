"""One pass of a model over pictures into a feature store; what an interrupted pass wrote is not done again.

A shard is a stretch of the sample list. Batches start anew with each shard, so that a resumed extraction computes every
number exactly as an uninterrupted one. Statistics that watch the same pass are saved per shard beside the features
and merged when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from vitscope.data.batches import SkippedImages, batches
from vitscope.data.samples import SampleList
from vitscope.device import compute_dtype
from vitscope.errors import BadData, VitscopeError
from vitscope.features.pooling import PooledStatistic, check_poolings
from vitscope.features.store import DTYPES, FeatureStore, StoreContents, write_tensors
from vitscope.features.writing import claim, finished, only_writer, state_path, write_manifest, write_shard
from vitscope.models.backbone import Backbone
from vitscope.observe import default_batch_size
from vitscope.progress import Advance, Progress, silent
from vitscope.provenance import versions
from vitscope.results import make_folder
from vitscope.statistic import Statistic

SHARD_BYTES = 16 << 20  # about the size of a shard: what is lost at most when a pass is interrupted
LARGEST_SHARD = 1024  # pictures
MakeStatistics = Callable[[], Sequence[Statistic]]


def extract(
    backbone: Backbone,
    samples: SampleList,
    folder: Path | str,
    *,
    poolings: Sequence[str] = ("cls", "mean"),
    dtype: str = "float16",
    statistics: MakeStatistics = tuple,
    settings: dict[str, Any] | None = None,
    batch_size: int | None = None,
    shard: int | None = None,
    workers: int = 0,
    skip_limit: int = 50,
    progress: Progress = silent,
) -> FeatureStore:
    """Write pooled features of all layers of every picture to a store, and return it opened.

    poolings: of "cls", "mean", "max" (of the spatial tokens) and "tokens" (all of them; large). A model without CLS
        has no "cls" features.
    dtype: "float16" or "float32".
    statistics: makes statistics that watch the same pass; `merged_statistics` gives them back afterwards. Whatever
        changes their numbers belongs into `settings`, which is part of the store's identity.
    shard: pictures per shard, rounded up to whole batches; chosen by their size if not given.
    A store of the same pictures, weights and settings in `folder` is continued; any other one is an error.
    """
    folder = Path(folder).expanduser()
    if dtype not in DTYPES:
        raise VitscopeError(f"features are stored as {' or '.join(DTYPES)}, not {dtype}")
    if not len(samples):
        raise BadData("there are no pictures to look at")
    watching = list(statistics())
    batch_size = batch_size or default_batch_size(backbone)
    poolings = check_poolings(poolings, backbone.layout, backbone.name)
    known = {"statistics": [statistic.name for statistic in watching], **(settings or {})}
    contents = describe(backbone, samples, poolings, dtype, batch_size, shard, known)
    make_folder(folder)
    with only_writer(folder):
        claim(folder, contents)
        skipped = SkippedImages(limit=skip_limit)
        with progress(backbone.title, len(samples)) as advance:
            for number in range(contents.shards):
                stretch = range(number * contents.shard, min((number + 1) * contents.shard, len(samples)))
                done = finished(folder, contents, number, watching)
                if done is not None:
                    skipped.reasons.update(done.skipped)
                    advance(len(stretch))
                    continue
                pooled = PooledStatistic(backbone.layout, poolings, DTYPES[dtype])
                fresh = list(statistics())
                before = dict(skipped.reasons)
                _observe(backbone, samples, stretch, [pooled, *fresh], batch_size, workers, skipped, advance)
                for statistic in fresh:  # before the features: a shard of features means that all of it is done
                    write_tensors(state_path(folder, contents, statistic, number), statistic.state())
                reasons = {name: why for name, why in skipped.reasons.items() if name not in before}
                write_shard(folder / contents.shard_name(number), pooled, contents.layers, reasons)
        if len(skipped) == len(samples):
            raise BadData(f"none of the {len(samples)} images can be used")
        write_manifest(folder, contents, samples)
    return FeatureStore(folder)


def describe(
    backbone: Backbone,
    samples: SampleList,
    poolings: Sequence[str],
    dtype: str,
    batch_size: int,
    shard: int | None,
    settings: dict[str, Any],
) -> StoreContents:
    """What a store of this extraction holds, before anything is computed."""
    numbers = backbone.depth * backbone.width  # per picture and pooled vector
    row = numbers * sum(backbone.layout.tokens if p == "tokens" else 1 for p in poolings) * DTYPES[dtype].itemsize
    shard = shard or min(SHARD_BYTES // row, LARGEST_SHARD)
    computing = {name: number for name, number in versions().items() if name in ("vitscope", "torch", "timm", "pillow")}
    used = {"versions": computing, "compute": str(compute_dtype(backbone.device)), "batch_size": batch_size}
    return StoreContents(
        model=backbone.name,
        title=backbone.title,
        teaching=backbone.teaching,
        weights=backbone.weights_digest,
        preprocessing=backbone.preprocessing.digest,
        samples=samples.digest,
        samples_origin=samples.origin,
        count=len(samples),
        poolings=tuple(poolings),
        layers=backbone.depth,
        width=backbone.width,
        dtype=dtype,
        shard=max(1, -(-shard // batch_size)) * batch_size,
        settings={**used, **settings},
    )


def merged_statistics(folder: Path, contents: StoreContents, make: MakeStatistics) -> list[Statistic]:
    """The statistics that watched an extraction, merged over its shards."""
    merged = list(make())
    for number in range(contents.shards):
        for total, part in zip(merged, make(), strict=True):
            path = state_path(folder, contents, part, number)
            try:
                part.load(path)
            except (SafetensorError, OSError, KeyError) as error:
                raise BadData(f"{path} is missing or damaged ({error}): run the study again to repair it") from None
            total.merge(part)
    return merged


def _observe(
    backbone: Backbone,
    samples: SampleList,
    stretch: range,
    statistics: Sequence[Statistic],
    batch_size: int,
    workers: int,
    skipped: SkippedImages,
    advance: Advance,
) -> None:
    """Trace one stretch of the list. Positions are those of the whole list."""
    stream = batches(
        samples[stretch.start : stretch.stop],
        backbone.preprocessing,
        batch_size=batch_size,
        workers=workers,
        skipped=skipped,
        annotations=any(getattr(statistic, "needs_annotations", False) for statistic in statistics),
    )
    try:
        for batch in stream:
            batch.indices += stretch.start
            for statistic in statistics:
                statistic.begin(batch)
            backbone.trace(batch.images, statistics)
            for statistic in statistics:
                statistic.end()
            advance(len(batch))
    except BadData:
        if any(samples[index].id not in skipped.reasons for index in stretch):
            raise  # a stretch of nothing but broken pictures is no reason to stop; the limit on them is
