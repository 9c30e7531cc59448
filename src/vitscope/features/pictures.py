"""Which pictures a feature study looks at: a folder, labels and masks put together."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from vitscope.data.folders import open_images
from vitscope.data.imagenet50 import open_imagenet50
from vitscope.data.masks import open_masks
from vitscope.data.samples import SampleList
from vitscope.errors import BadData

LARGEST_LABELS = 1 << 28  # bytes
Labels = Path | str | Mapping[str, str]


def gather(
    images: Path | str | SampleList | None,
    *,
    labels: Labels | None = None,
    masks: Path | str | None = None,
    imagenet50: bool = False,
) -> SampleList:
    """The pictures of a study.

    images: a folder (class subfolders are labels), a list of paths, or a SampleList; with `imagenet50`, ImageNet's
        training folder, of which the study's subset is taken. May be left out if the masks come with their pictures.
    labels: a CSV or TSV file of `path,class` lines, paths as below `images`; or a mapping of the same.
    masks: as `open_masks` takes them. Pictures without masks stay, without regions.
    """
    if isinstance(images, SampleList):
        samples = images
    elif images is None:
        if masks is None:
            raise BadData("say which pictures to look at: a folder of images, or images with masks")
        return _labelled(open_masks(masks), labels)
    else:
        samples = open_imagenet50(images) if imagenet50 else open_images(images)
    if masks is not None:
        samples = _with_masks(samples, masks, None if isinstance(images, SampleList) else images)
    return _labelled(samples, labels)


def _with_masks(samples: SampleList, masks: Path | str, images: Path | str | None) -> SampleList:
    """The same pictures with the regions that the mask dataset has of them, matched by path."""
    masked = open_masks(masks, images)
    regions = {sample.path.resolve(): sample.annotations for sample in masked}
    joined = [replace(sample, annotations=regions.get(sample.path.resolve(), ())) for sample in samples]
    found = sum(bool(sample.annotations) for sample in joined)
    if not found:
        raise BadData(
            f"none of the pictures of {samples.origin} has a mask in {masks}: check that they belong together"
        )
    notes = [*samples.notes, *masked.notes]
    if found < len(joined):
        notes.append(
            f"{len(joined) - found} of {len(joined)} pictures have no mask: they count for everything but regions"
        )
    return SampleList(
        joined,
        classes=samples.classes,
        categories=masked.categories,
        origin=samples.origin,
        notes=notes,
        annotation_digest=masked.annotation_digest,
    )


def _labelled(samples: SampleList, labels: Labels | None) -> SampleList:
    if labels is None:
        return samples
    table = labels if isinstance(labels, Mapping) else read_labels(Path(labels))
    kept = [sample for sample in samples if sample.id in table]
    if not kept:
        example = next(iter(table), "")
        raise BadData(
            f"the labels name none of the pictures (they name {example!r}, the pictures are {samples[0].id!r} and so "
            "on): write paths as they are below the image folder"
        )
    classes = sorted({table[sample.id] for sample in kept})
    number = {name: i for i, name in enumerate(classes)}
    notes = list(samples.notes)
    if len(kept) < len(samples):
        notes.append(f"{len(samples) - len(kept)} of {len(samples)} pictures have no label and were left out")
    return SampleList(
        (replace(sample, label=number[table[sample.id]]) for sample in kept),
        classes=classes,
        categories=samples.categories,
        origin=samples.origin,
        notes=notes,
        annotation_digest=samples.annotation_digest,
    )


def read_labels(path: Path) -> dict[str, str]:
    """`path,class` lines of a CSV (or tab-separated .tsv) file; a heading of path,class or id,label is passed over."""
    try:
        if path.stat().st_size > LARGEST_LABELS:
            raise BadData(f"{path} is too large to be a table of labels")
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",") if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadData(f"cannot read labels from {path}: {error}") from None
    if rows and [cell.strip().lower() for cell in rows[0]] in (["path", "class"], ["id", "label"], ["path", "label"]):
        rows = rows[1:]
    if not rows or any(len(row) != 2 for row in rows):
        raise BadData(f"{path} is not a table of labels: expected two columns, path and class")
    table = {picture.strip().replace("\\", "/"): name.strip() for picture, name in rows}
    if not any(table.values()):
        raise BadData(f"{path} names no classes: its second column is empty")
    return {picture: name for picture, name in table.items() if name}  # the others have no label
