"""The whole attention study of one model in one pass, and of several models as one set of results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vitscope.attention.observer import AttentionStudy
from vitscope.data.batches import SkippedImages
from vitscope.data.samples import SampleList
from vitscope.models.backbone import Backbone
from vitscope.observe import observe
from vitscope.progress import Progress, silent
from vitscope.provenance import provenance_of
from vitscope.results import Label, Results


def study_attention(
    backbone: Backbone,
    samples: SampleList,
    *,
    batch_size: int | None = None,
    workers: int = 0,
    skip_limit: int = 50,
    progress: Progress = silent,
) -> Results:
    """One pass of one model over one list of pictures; with object masks, saliency too."""
    saliency = any(sample.annotations for sample in samples)
    study = AttentionStudy(backbone, saliency=saliency)
    skipped = observe(
        backbone,
        samples,
        [study],
        batch_size=batch_size,
        workers=workers,
        skipped=SkippedImages(limit=skip_limit),
        progress=progress,
    )
    about = provenance_of(backbone, samples, "attention", {"saliency": saliency})
    label = Label(backbone.title, backbone.teaching, samples.origin, about.digest)
    result = study.result()
    results = Results(
        maps={f"{backbone.title}/{name}": value for name, value in result.maps().items()},
        provenance=[about.as_dict() | {"seen": study.count, "title": backbone.title}],
        skipped=dict(skipped.reasons),
        notes=[*notes_on(study, backbone), *samples.notes],
    )
    results.extend(result.tables(label))
    return results


def notes_on(study: AttentionStudy, backbone: Backbone) -> list[str]:
    """What a reader must know before trusting a row, or missing one."""
    notes = list(backbone.notes)
    if not backbone.layout.has_cls:
        notes.append(
            f"{backbone.title} has no CLS token: it has no CLS rows; patterns use the mean over spatial sources"
        )
    if nulls := int(study.maps.result().nulls.sum()):
        notes.append(
            f"{backbone.title}: {nulls} source tokens attended to prefix tokens only; their rows count as zero"
        )
    if study.saliency and (lost := study.saliency.result().without_object):
        notes.append(f"{backbone.title}: {lost} pictures have no object inside the crop; saliency leaves them out")
    return notes


def attention(
    models: Sequence[str | Path | Backbone],
    images: str | Path | SampleList | None = None,
    *,
    masks: str | Path | None = None,
    limit: int | None = None,
    arch: str | None = None,
    size: int | tuple[int, int] | None = None,
    device: str | None = None,
    seed: int = 0,
    batch_size: int | None = None,
    workers: int = 0,
    download: bool = False,
    progress: Progress = silent,
) -> Results:
    """Study the attention of models on a folder of pictures: `vitscope.attention(["dino-b16"], images="photos")`.

    images: a folder of pictures (or a SampleList); masks: COCO or PartImageNet annotations, or a folder with images/
    and masks/: then the annotated pictures are studied, and saliency is measured too. Masks that come with their
    pictures need no `images`. Returns `Results`: `.table` (polars), `.maps`, `.provenance`, `.notes`.
    """
    from vitscope.data.folders import open_images
    from vitscope.data.masks import open_masks
    from vitscope.errors import VitscopeError
    from vitscope.models import load

    if isinstance(images, SampleList):
        samples = images
    elif masks is not None:
        samples = open_masks(masks, images)
    elif images is not None:
        samples = open_images(images)
    else:
        raise VitscopeError("say which pictures to look at: a folder of images, or images with masks")
    samples = samples.limit(limit, seed) if limit else samples
    results = Results()
    for model in models:
        if not isinstance(model, Backbone):
            model = load(model, arch=arch, size=size, device=device, seed=seed, download=download)
        results.join(study_attention(model, samples, batch_size=batch_size, workers=workers, progress=progress))
    return results
