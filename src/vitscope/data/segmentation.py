"""Images whose every pixel has a class: VOC, ADE20K, and whatever has masks by category; what is known and what is
asked.

A pixel's class is that of the smallest region that holds it. Pixels of no region are background, which is a class of
its own, or void where a dataset says that 0 means nothing (ADE20K). Void pixels are neither learned from nor asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from vitscope.core.digest import digest_of, digest_of_file, digest_of_strings
from vitscope.core.errors import BadData, shorten
from vitscope.core.reading import path_inside, path_problem, read_lines, user_path
from vitscope.data.dataset import Dataset
from vitscope.data.decode import decode_mask
from vitscope.data.folders import list_images
from vitscope.data.layouts import found_in
from vitscope.data.mask_folder import ValueMask
from vitscope.data.masks import open_masks
from vitscope.data.samples import Sample, SampleList, safe_id, seeded_rank

BACKGROUND = "background"
VOID = -1  # category of regions that belong to nothing
VOC_VOID = 255
SHARE = 0.2  # of images that are asked about, where a dataset is not divided
VOC = (
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor"),
)
EXPECTED = (
    "expected VOC (JPEGImages, SegmentationClass, ImageSets/Segmentation), ADE20K (images/ and annotations/, each with "
    "training/ and validation/), or masks by category (COCO, PartImageNet, images/ and masks/)"
)


@dataclass(frozen=True)
class SegmentationSet(Dataset):
    """Two lists with the same categories: `train` is what is known, `test` what is asked.

    background: whether pixels of no region are a class of their own; otherwise they are void.
    """

    train: SampleList
    test: SampleList
    background: bool = True
    remarks: tuple[str, ...] = ()

    kind: ClassVar[str] = "segmentation"

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes; with a background it is the first, and categories come one later."""
        return ((BACKGROUND,) if self.background else ()) + self.train.categories

    @property
    def digest(self) -> str:
        return digest_of([self.train.digest, self.test.digest, self.background])

    @property
    def count(self) -> int:
        return len(self.train) + len(self.test)

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self.remarks, *dict.fromkeys((*self.train.notes, *self.test.notes)))

    def limit(self, n: int, seed: int = 0) -> SegmentationSet:
        """At most n images in each of the two lists."""
        title = self.title
        if n < max(len(self.train), len(self.test)) and not title.endswith("(part)"):
            title = f"{title} (part)"
        return replace(self, title=title, train=self.train.limit(n, seed), test=self.test.limit(n, seed))


@dataclass(frozen=True)
class LabelFiles:
    """How a dataset keeps its labels. void: values that belong to nothing; first: value of category 0."""

    names: tuple[str, ...]
    first: int
    void: tuple[int, ...]

    def sample(self, image: Path, name: str, labels: Path) -> tuple[Sample, str]:
        """An image with a region for every value of its label file; and that file's digest."""
        values = np.unique(decode_mask(labels)).tolist()
        if beyond := [v for v in values if v not in self.void and not 0 <= v < self.first + len(self.names)]:
            raise BadData(
                f"{labels} has the value {beyond[0]}, but there are {len(self.names)} categories: it is no label file"
            )
        regions = [ValueMask(value - self.first, labels, value) for value in values if self._named(value)]
        regions += [ValueMask(VOID, labels, value) for value in values if value in self.void and value >= self.first]
        return Sample(safe_id(name), image, annotations=tuple(regions)), digest_of_file(labels)

    def _named(self, value: int) -> bool:
        return value >= self.first and value not in self.void

    def samples(self, pairs: Sequence[tuple[Path, str, Path]], origin: str) -> SampleList:
        found = [self.sample(*pair) for pair in pairs]
        return SampleList(
            [sample for sample, _ in found],
            categories=self.names,
            origin=origin,
            annotation_digest=digest_of_strings(digest for _, digest in found),
        )


def open_segmentation(path: Path | str, *, images: Path | str | None = None, seed: int = 0) -> SegmentationSet:
    """Whatever is at a path, in one of the layouts above; masks by category are divided, a seeded fifth is asked."""
    root = user_path(path)
    if not root.exists():
        raise BadData(f"{root} does not exist: {EXPECTED}")
    if (root / "SegmentationClass").is_dir():
        return _open_voc(root)
    if (root / "annotations" / "training").is_dir():
        return _open_ade(root)
    try:
        samples = open_masks(root, images)
    except BadData as error:
        raise BadData(f"{error}; or VOC, or ADE20K") from None
    if not samples.categories:
        raise BadData(f"the masks in {root} have no categories: {EXPECTED}; found {found_in(root)}")
    order = sorted(range(len(samples)), key=lambda i: seeded_rank(samples[i].id, seed))
    asked = set(order[: max(round(len(order) * SHARE), 1)])
    if len(samples) < 2:
        raise BadData(f"{root} has a single image with masks: there is nothing to learn from; {EXPECTED}")
    remark = f"{root.name} is not divided into images to learn from and to ask about: a seeded {SHARE:.0%} was asked"
    return SegmentationSet(
        root.resolve().name if root.is_dir() else root.stem,
        samples.select(i for i in range(len(samples)) if i not in asked),
        samples.select(sorted(asked)),
        remarks=(remark,),
    )


def _open_voc(root: Path) -> SegmentationSet:
    """JPEGImages/*.jpg, SegmentationClass/*.png (0 background, 1 to 20, 255 void), ImageSets/Segmentation/*.txt."""
    files = LabelFiles(VOC, first=1, void=(VOC_VOID,))

    def split(name: str, *, without: Collection[str] = ()) -> SampleList:
        listing = root / "ImageSets" / "Segmentation" / f"{name}.txt"
        if problem := path_problem(listing):
            raise BadData(f"{listing} cannot be read ({problem}): {EXPECTED}")
        stems = read_lines(listing)
        if again := next((stem for stem, times in Counter([*stems, *without]).items() if times > 1), None):
            raise BadData(f"{listing} names {shorten(again, 60)}, which was named before: name each image once")
        pairs = []
        for stem in stems:
            if "/" in stem or "\\" in stem or stem.startswith("."):
                raise BadData(f"{listing} names {shorten(stem, 60)}: expected names of images without a folder")
            labels = path_inside(root / "SegmentationClass", f"{stem}.png", source=listing)
            pairs.append((root / "JPEGImages" / f"{stem}.jpg", stem, labels))
        return files.samples(_present(pairs, listing), f"VOC {name} of {root}")

    train = split("train")
    return SegmentationSet(root.resolve().name, train, split("val", without=train.ids))


def _open_ade(root: Path) -> SegmentationSet:
    """images/{training,validation}/*.jpg, annotations/ with PNGs of the same names: 0 void, 1 to 150 categories."""
    splits = ("training", "validation")
    pairs: dict[str, list[tuple[Path, str, Path]]] = {}
    for split in splits:
        folder, labels = root / "images" / split, root / "annotations" / split
        if not folder.is_dir() or not labels.is_dir():
            raise BadData(f"{root} lacks images/{split} or annotations/{split}: {EXPECTED}; found {found_in(root)}")
        named = [(folder / name, f"{split}/{name}", labels / name.with_suffix(".png")) for name in list_images(folder)]
        pairs[split] = _present(named, folder)
    names = _ade_names(root)
    if not names:
        most = max(int(decode_mask(labels).max()) for some in pairs.values() for _, _, labels in some)
        names = tuple(str(value) for value in range(1, most + 1))
    files = LabelFiles(names, first=1, void=(0,))
    train, test = (files.samples(pairs[split], f"ADE20K {split} of {root}") for split in splits)
    return SegmentationSet(root.resolve().name, train, test, background=False)


def _ade_names(root: Path) -> tuple[str, ...]:
    """The first of each line's names in objectInfo150.txt, if it is there."""
    listing = root / "objectInfo150.txt"
    if not listing.is_file():
        return ()
    lines = [line.split("\t") for line in read_lines(listing)[1:] if line.strip()]
    return tuple(shorten(parts[-1].split(",")[0].strip(), 60) for parts in lines)


def _present(pairs: Sequence[tuple[Path, str, Path]], source: Path) -> list[tuple[Path, str, Path]]:
    found = [pair for pair in pairs if pair[2].is_file()]
    if not found:
        raise BadData(f"no image of {source} has its labels: {EXPECTED}")
    return found
