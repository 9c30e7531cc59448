"""Labelled pictures in two parts, to learn from and to be asked about; and their pooled features at every layer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from vitscope.data.batches import SkippedImages
from vitscope.data.folders import open_images
from vitscope.data.layouts import found_in
from vitscope.data.samples import SampleList, seeded_rank
from vitscope.digest import digest_of
from vitscope.errors import BadData
from vitscope.models.backbone import Backbone
from vitscope.progress import Progress, silent
from vitscope.tasks.nearest import Array
from vitscope.tasks.pooled import pooled_features

TRAIN, TEST = ("train",), ("val", "test")  # names of subfolders, in order of preference
SHARE = 0.2  # of each class is asked about, where a folder is not divided already
EXPECTED = "expected train/ and val/ (or test/), or one subfolder per class with two or more pictures"


@dataclass(frozen=True)
class LabelledSet:
    """Two lists with the same classes: `train` is what is known, `test` what is asked."""

    name: str
    train: SampleList
    test: SampleList
    notes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        return digest_of([self.train.digest, self.test.digest])


@dataclass(frozen=True)
class LabelledFeatures:
    """Features by kind (`cls`, `mean`): L of (n, D) each; pictures that could not be read are in neither."""

    train: Mapping[str, Sequence[Array]]
    train_labels: Tensor  # int64 (n,)
    test: Mapping[str, Sequence[Array]]
    test_labels: Tensor
    test_positions: Tensor  # int64 (q,): which picture of the set each row is
    train_positions: Tensor


def open_labelled(root: Path | str, *, limit: int | None = None, seed: int = 0) -> LabelledSet:
    """A folder with `train/` and `val/` or `test/`; or one subfolder per class, divided here (seeded, 20 % asked).

    limit: at most this many pictures in each part, balanced over the classes.
    """
    root = Path(root).expanduser()
    known, asked = _subfolder(root, TRAIN), _subfolder(root, TEST)
    notes: tuple[str, ...] = ()
    if known and asked:
        train, test = _classes_in(known), _classes_in(asked)
        test = _same_classes(train, test, known)
    else:
        train, test = divide(_classes_in(root), seed)
        notes = (f"{root} is not divided into train/ and val/: a seeded {SHARE:.0%} of each class was asked about",)
    if limit is not None:
        if limit < len(train.classes):
            raise BadData(
                f"{limit} pictures cannot show {len(train.classes)} classes: use a limit of that many or more"
            )
        train, test = train.limit(limit, seed), test.limit(limit, seed)
    name = "ImageNet" if _is_imagenet(train) and known and limit is None else root.name
    return LabelledSet(name, train, test, notes)


def divide(samples: SampleList, seed: int = 0) -> tuple[SampleList, SampleList]:
    """A seeded division of every class; a class with a single picture is only learned from."""
    asked: set[int] = set()
    for label in range(len(samples.classes)):
        members = [i for i, sample in enumerate(samples) if sample.label == label]
        members.sort(key=lambda i: seeded_rank(samples[i].id, seed))
        asked.update(members[: max(round(len(members) * SHARE), 1)] if len(members) > 1 else [])
    if not asked:
        raise BadData(f"no class in {samples.origin} has two pictures: {EXPECTED}")
    return samples.select(i for i in range(len(samples)) if i not in asked), samples.select(sorted(asked))


def extract(
    backbone: Backbone,
    dataset: LabelledSet,
    *,
    store: Path | None = None,
    skipped: SkippedImages | None = None,
    progress: Progress = silent,
) -> LabelledFeatures:
    """Pooled features of every layer, one pass over both parts; pictures that cannot be read go to `skipped`.

    store: a folder for feature stores; None: in memory.
    """
    known = pooled_features(backbone, dataset.train, store=store, skipped=skipped, progress=progress)
    asked = pooled_features(backbone, dataset.test, store=store, skipped=skipped, progress=progress)
    return LabelledFeatures(
        train=known.features,
        train_labels=_labels(dataset.train)[known.positions],
        test=asked.features,
        test_labels=_labels(dataset.test)[asked.positions],
        train_positions=known.positions,
        test_positions=asked.positions,
    )


def _labels(samples: SampleList) -> Tensor:
    return torch.tensor([-1 if label is None else label for label in samples.labels], dtype=torch.int64)


def _subfolder(root: Path, names: Sequence[str]) -> Path | None:
    return next((root / name for name in names if (root / name).is_dir()), None)


def _classes_in(folder: Path) -> SampleList:
    samples = open_images(folder)
    if not samples.is_labelled:
        raise BadData(f"the pictures in {folder} have no classes: {EXPECTED}; found {found_in(folder)}")
    return samples


def _same_classes(train: SampleList, test: SampleList, known: Path) -> SampleList:
    """`test` with labels that are positions in the classes of `train`: classes go by their names."""
    position = {name: i for i, name in enumerate(train.classes)}
    if unknown := [name for name in test.classes if name not in position]:
        raise BadData(
            f"{len(unknown)} of the classes asked about (first: {unknown[0]}) are not in {known}: add pictures of "
            "them, or leave them out"
        )
    labels = [position[test.classes[sample.label or 0]] for sample in test]
    relabelled = [replace(sample, label=label) for sample, label in zip(test, labels, strict=True)]
    return SampleList(relabelled, classes=train.classes, origin=test.origin, notes=test.notes)


def _is_imagenet(train: SampleList) -> bool:
    return len(train.classes) == 1000 and all(re.fullmatch(r"n\d{8}", name) for name in train.classes)
