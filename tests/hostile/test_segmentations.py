"""A class for every pixel: VOC, ADE20K and mask folders. Each pixel has the class that its file says, or nothing is
read; no image is both learned from and asked about."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
from PIL import Image

from tests.hostile.campaign import SIZE, Case, campaign, inside, photo
from tests.support.hostile import changed_bytes
from vitscope.data.samples import Sample
from vitscope.data.segmentation import VOC, VOID, SegmentationSet, open_segmentation

BOTH = ("a", "b", "c", "d", "e")


def label_file(path: Path, values: tuple[int, ...], palette: bool = False) -> bytes:
    """Stripes of these values."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(np.resize(np.repeat(np.array(values, np.uint8), 4), (SIZE[1], SIZE[0])))
    if palette:
        image.putpalette(bytes(range(256)) * 3)
    image.save(path)
    return path.read_bytes()


def told_classes(found: SegmentationSet, sample: Sample, size: tuple[int, int]) -> np.ndarray:
    """Class names by pixel, int: -1 void, 0 background or nothing, and 1 + the category of a region."""
    told = np.zeros(size, int)
    for region in sample.annotations:
        pixels = region.decode()
        assert not told[pixels].any(), "two regions hold a pixel"
        assert region.category == VOID or 0 <= region.category < len(found.train.categories)
        told[pixels] = -1 if region.category == VOID else region.category + 1
    return told


def stored_values(path: Path) -> np.ndarray:
    values = np.asarray(Image.open(path)).astype(int)
    return values if values.ndim == 2 else values[..., 0]


def check_lists(found: SegmentationSet, root: Path) -> None:
    lists = [[sample.path.resolve() for sample in samples] for samples in (found.train, found.test)]
    assert all(len(set(paths)) == len(paths) > 0 for paths in lists)
    assert not set(lists[0]) & set(lists[1])
    for path in (*lists[0], *lists[1]):
        inside(path, root)


def voc(root: Path) -> Case:
    for name in BOTH:
        photo(root / f"JPEGImages/{name}.jpg", format="JPEG")
        label_file(root / f"SegmentationClass/{name}.png", (0, 1, 20, 255), palette=True)
    photo(root.parent / "outside.jpg", format="JPEG")
    labels = root / "SegmentationClass/a.png"
    content = labels.read_bytes()
    listings = {"train": b"a\nb\nc\n", "val": b"d\ne\n"}
    (root / "ImageSets/Segmentation").mkdir(parents=True)

    def case(random: Random) -> None:
        evil = random.choice(("labels", "train", "val"))
        labels.write_bytes(changed_bytes(content, random) if evil == "labels" else content)
        for name, lines in listings.items():
            more = random.choice((b"a\n", b"../../outside\n", b"/etc/passwd\n", b"\xff\n", b"k" * 300 + b"\n", b""))
            changed = changed_bytes(lines, random) if random.random() < 0.5 else lines + more
            (root / f"ImageSets/Segmentation/{name}.txt").write_bytes(changed if evil == name else lines)
        found = open_segmentation(root)
        check_lists(found, root)
        assert found.classes == ("background", *VOC)
        for sample in (*found.train, *found.test):
            values = stored_values(root / f"SegmentationClass/{sample.path.stem}.png")
            right = np.where(values == 255, -1, values)
            assert right.max() <= 20
            assert np.array_equal(told_classes(found, sample, values.shape), right)

    return case


def ade20k(root: Path) -> Case:
    for split in ("training", "validation"):
        for name in BOTH[:2]:
            photo(root / f"images/{split}/{name}.jpg", format="JPEG")
            label_file(root / f"annotations/{split}/{name}.png", (0, 1, 2, 3))
    labels, names = root / "annotations/training/a.png", root / "objectInfo150.txt"
    content = labels.read_bytes()
    listing = "Idx\tRatio\tTrain\tVal\tName\n" + "".join(f"{n}\t0.1\t1\t1\tthing{n}, it\n" for n in (1, 2, 3))

    def case(random: Random) -> None:
        evil = random.choice(("labels", "names", "labels alone"))
        labels.write_bytes(content if evil == "names" else changed_bytes(content, random))
        names.write_bytes(changed_bytes(listing.encode(), random) if evil == "names" else listing.encode())
        if evil == "labels alone":
            names.unlink()
        found = open_segmentation(root)
        check_lists(found, root)
        assert all(name.isprintable() for name in found.classes)
        for sample in (*found.train, *found.test):
            values = stored_values(root / f"annotations/{sample.path.parent.name}/{sample.path.stem}.png")
            assert values.max() <= len(found.classes)
            assert np.array_equal(told_classes(found, sample, values.shape), values)  # here 0 is void, and no region

    return case


def divided_masks(root: Path) -> Case:
    for name in BOTH:
        photo(root / f"images/{name}.png")
        label_file(root / f"masks/{name}.png", (0, 3, 7, 255))
    mask = root / "masks/a.png"
    content = mask.read_bytes()

    def case(random: Random) -> None:
        mask.write_bytes(changed_bytes(content, random))
        found = open_segmentation(root)
        check_lists(found, root)
        number = {int(name): place + 1 for place, name in enumerate(found.train.categories)}
        for sample in (*found.train, *found.test):
            values = stored_values(root / f"masks/{sample.path.name}")
            right = np.vectorize(lambda value: number.get(value, 0))(values)
            assert set(np.unique(values)) <= {0, 255, *number}
            assert np.array_equal(told_classes(found, sample, values.shape), right)

    return case


test_some_cases, test_many_cases = campaign(voc, ade20k, divided_masks)
