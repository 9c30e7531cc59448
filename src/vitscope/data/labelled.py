"""Labelled images in two parts, to learn from and to be asked about: ImageNet, or any folders of classes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from vitscope.core.errors import BadData
from vitscope.core.reading import user_path
from vitscope.data.dataset import LabelledSet
from vitscope.data.folders import open_images
from vitscope.data.layouts import found_in
from vitscope.data.samples import SampleList, seeded_rank

TRAIN, TEST = ("train",), ("val", "test")  # names of subfolders, in order of preference
SHARE = 0.2  # of each class is asked about, where a folder is not divided already
IMAGENET, IMAGENET_QUERIES = "ImageNet", 50000  # only the whole of it stands beside published scores
EXPECTED = "expected train/ and val/ (or test/), or one subfolder per class with two or more images"


def open_labelled(root: Path | str, *, limit: int | None = None, seed: int = 0) -> LabelledSet:
    """A folder with `train/` and `val/` or `test/`; or one subfolder per class, divided here (seeded, 20 % asked).

    limit: at most this many images in each part, balanced over the classes.
    """
    root = user_path(root)
    known, asked = _subfolder(root, TRAIN), _subfolder(root, TEST)
    remarks: tuple[str, ...] = ()
    if known and asked:
        train, test = _classes_in(known), _classes_in(asked)
        test = _same_classes(train, test, known)
    else:
        train, test = divide(_classes_in(root), seed)
        share = f"a seeded {SHARE:.0%} of each class"
        remarks = (f"{root.name} is not divided into train/ and val/: {share} was asked about",)
    found = LabelledSet(_title(root, train, test), train, test, remarks)
    return found if limit is None else found.limit(limit, seed)


def divide(samples: SampleList, seed: int = 0) -> tuple[SampleList, SampleList]:
    """A seeded division of every class; a class with a single image is only learned from."""
    asked: set[int] = set()
    for label in range(len(samples.classes)):
        members = [i for i, sample in enumerate(samples) if sample.label == label]
        members.sort(key=lambda i: seeded_rank(samples[i].id, seed))
        asked.update(members[: max(round(len(members) * SHARE), 1)] if len(members) > 1 else [])
    if not asked:
        raise BadData(f"no class in {samples.origin} has two images: {EXPECTED}")
    return samples.select(i for i in range(len(samples)) if i not in asked), samples.select(sorted(asked))


def _subfolder(root: Path, names: Sequence[str]) -> Path | None:
    return next((root / name for name in names if (root / name).is_dir()), None)


def _classes_in(folder: Path) -> SampleList:
    samples = open_images(folder)
    if not samples.is_labelled:
        raise BadData(f"the images in {folder} have no classes: {EXPECTED}; found {found_in(folder)}")
    return samples


def _same_classes(train: SampleList, test: SampleList, known: Path) -> SampleList:
    """`test` with labels that are positions in the classes of `train`: classes go by their names."""
    if test.classes == train.classes:
        return test
    position = {name: i for i, name in enumerate(train.classes)}
    if unknown := [name for name in test.classes if name not in position]:
        raise BadData(
            f"{len(unknown)} of the classes asked about (first: {unknown[0]}) are not in {known}: add images of "
            "them, or leave them out"
        )
    labels = [position[test.classes[sample.label or 0]] for sample in test]
    relabelled = (replace(sample, label=label) for sample, label in zip(test, labels, strict=True))
    return SampleList(relabelled, classes=train.classes, origin=test.origin, notes=test.notes)


def _title(root: Path, train: SampleList, test: SampleList) -> str:
    if len(train.classes) != 1000 or not all(re.fullmatch(r"n\d{8}", name) for name in train.classes):
        return root.resolve().name
    return IMAGENET if len(test) == IMAGENET_QUERIES else f"{IMAGENET} (part)"
