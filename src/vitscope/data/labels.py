"""Classes and masks put together with the images they belong to."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from vitscope.core.errors import BadData, shorten
from vitscope.core.reading import read_small_text, user_path
from vitscope.data.masks import open_masks
from vitscope.data.samples import SampleList

LARGEST_LABELS = 1 << 28  # bytes
Labels = Path | str | Mapping[str, str]


def with_masks(samples: SampleList, masks: Path | str, images: Path | str | None) -> SampleList:
    """The same images with the regions that the mask dataset has of them, matched by path."""
    masked = open_masks(masks, images)
    regions = {sample.path.resolve(): sample.annotations for sample in masked}
    joined = [replace(sample, annotations=regions.get(sample.path.resolve(), ())) for sample in samples]
    found = sum(bool(sample.annotations) for sample in joined)
    if not found:
        raise BadData(f"none of the images of {samples.origin} has a mask in {masks}: check that they belong together")
    notes = [*samples.notes, *masked.notes]
    if found < len(joined):
        notes.append(
            f"{len(joined) - found} of {len(joined)} images have no mask: they count for everything but regions"
        )
    return SampleList(
        joined,
        classes=samples.classes,
        categories=masked.categories,
        origin=samples.origin,
        notes=notes,
        annotation_digest=masked.annotation_digest,
    )


def with_labels(samples: SampleList, labels: Labels) -> SampleList:
    """The images that have a label, with it. labels: a CSV or TSV file of `path,class` lines, or a mapping."""
    table = labels if isinstance(labels, Mapping) else read_labels(Path(labels))
    kept = [sample for sample in samples if sample.id in table]
    if not kept:
        example = next(iter(table), "")
        raise BadData(
            f"the labels name none of the images (they name '{shorten(example, 60)}', the images are "
            f"'{shorten(samples[0].id, 60)}' and so on): write paths as they are below the image folder"
        )
    classes = sorted({table[sample.id] for sample in kept})
    number = {name: i for i, name in enumerate(classes)}
    notes = list(samples.notes)
    if len(kept) < len(samples):
        notes.append(f"{len(samples) - len(kept)} of {len(samples)} images have no label and were left out")
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
    path = user_path(path)
    try:
        lines = io.StringIO(read_small_text(path, most=LARGEST_LABELS), newline="")
        rows = [row for row in csv.reader(lines, delimiter="\t" if path.suffix == ".tsv" else ",") if row]
    except (csv.Error, BadData) as error:
        raise BadData(f"cannot read labels from {path}: {error}") from None
    if rows and [cell.strip().lower() for cell in rows[0]] in (["path", "class"], ["id", "label"], ["path", "label"]):
        rows = rows[1:]
    if not rows or any(len(row) != 2 for row in rows):
        raise BadData(f"{path} is not a table of labels: expected two columns, path and class")
    table: dict[str, str] = {}
    for image, name in ((image.strip().replace("\\", "/"), name.strip()) for image, name in rows):
        if table.setdefault(image, name) != name:
            raise BadData(f"{path} names '{shorten(image, 60)}' twice, with two classes: name each image once")
    if not any(table.values()):
        raise BadData(f"{path} names no classes: its second column is empty")
    return {image: name for image, name in table.items() if name}  # the others have no label
