"""One pass: every picture goes through a model once, and all statistics watch."""

from __future__ import annotations

from collections.abc import Sequence

from vitscope.data.batches import SkippedImages, batches
from vitscope.data.samples import SampleList
from vitscope.errors import VitscopeError
from vitscope.models.backbone import Backbone
from vitscope.progress import Progress, silent
from vitscope.statistic import Statistic


def default_batch_size(backbone: Backbone) -> int:
    """As many pictures as keep the attention of one block near 15 MB per 12 heads; at least one.

    >>> round(8 * 197**2 / 785**2, 1)  # ViT-B/8 sees sixteen times the pairs of tokens: one picture at a time
    0.5
    """
    pairs = 8 * 197**2 * 12
    fits = pairs // (backbone.layout.tokens**2 * backbone.heads)
    return int(min(max(fits, 1), 64)) * (8 if backbone.device.type != "cpu" else 1)


def observe(
    backbone: Backbone,
    samples: SampleList,
    statistics: Sequence[Statistic],
    *,
    batch_size: int | None = None,
    workers: int = 0,
    skipped: SkippedImages | None = None,
    progress: Progress = silent,
) -> SkippedImages:
    """Trace every sample once. Returns the pictures that had to be left out, with the reason."""
    if not len(samples):
        raise VitscopeError("there are no pictures to look at")
    skipped = skipped if skipped is not None else SkippedImages()
    masks = any(getattr(statistic, "needs_annotations", False) for statistic in statistics)
    stream = batches(
        samples,
        backbone.preprocessing,
        batch_size=batch_size or default_batch_size(backbone),
        workers=workers,
        skipped=skipped,
        annotations=masks,
    )
    with progress(backbone.title, len(samples)) as advance:
        for batch in stream:
            for statistic in statistics:
                statistic.begin(batch)
            backbone.trace(batch.images, statistics)
            for statistic in statistics:
                statistic.end()
            advance(len(batch))
    return skipped
