"""One pass: every image of a stretch goes through a model once, and all statistics watch."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from vitscope.core.analysis import batch_of
from vitscope.core.device import batches_together
from vitscope.core.observer import Observer
from vitscope.core.progress import Count, nothing
from vitscope.core.statistic import Statistic
from vitscope.data.batches import SkippedImages, batches
from vitscope.data.preprocessing import in_geometry
from vitscope.data.samples import SampleList
from vitscope.models.backbone import Backbone


class Onlooker(Observer):
    """Watches attention and makes nothing of it: that keeps fused kernels, which round differently, out of the pass."""

    wants = frozenset({"attention"})

    def sweep(self, layer: int, probs: Tensor, scores: Tensor | None) -> None: ...


def observe(
    backbone: Backbone,
    samples: SampleList,
    statistics: Sequence[Statistic],
    *,
    stretch: range | None = None,
    geometry: str = "crop",
    workers: int = 0,
    unfused: bool = False,
    skipped: SkippedImages | None = None,
    advance: Count = nothing,
) -> SkippedImages:
    """Trace every sample of a stretch of the list once. Returns the images that had to be left out, with the reason.

    Statistics know images by their positions in the whole list, and batches start anew with each stretch, so that a
    list that was traced in shards gives every number exactly as it would in one go. unfused: also without anybody who
    watches attention, so that what is made anew is made as it was beside somebody who did.
    """
    skipped = skipped if skipped is not None else SkippedImages()
    stream = batches(
        samples,
        in_geometry(backbone.preprocessing, geometry),
        batch_size=batch_of(len(samples), batches_together(backbone.device)),
        pinned=backbone.device.type == "cuda",
        stretch=stretch,
        workers=workers,
        skipped=skipped,
        grid=backbone.layout.grid if any(statistic.needs_annotations for statistic in statistics) else None,
    )
    for batch in stream:
        for statistic in statistics:
            statistic.begin(batch)
        backbone.trace(batch.images, [*statistics, Onlooker()] if unfused else statistics)
        for statistic in statistics:
            statistic.end()
        advance(len(batch))
    return skipped
