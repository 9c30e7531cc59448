"""COCO instances: one JSON of polygons and run-length masks, and a folder of images.

Crowd regions (`iscrowd`, run-length masks of many objects of one category) are kept, as in the published evaluation:
they are foreground. `CocoMask.crowd` tells them apart.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vitscope.core.digest import digest_of_file
from vitscope.core.errors import BadData, shorten
from vitscope.core.reading import path_inside, read_json, told, user_path, whole
from vitscope.data.decode import MAX_PIXELS, BadImage
from vitscope.data.folders import list_images
from vitscope.data.polygons import rasterise
from vitscope.data.rle import decode_counts, decompress_counts
from vitscope.data.samples import MOST_REGIONS, Annotation, Sample, SampleList, safe_id

LARGEST = 2 << 30  # bytes: the training set of COCO has 450 MB


@dataclass(frozen=True, eq=False)
class CocoMask(Annotation):
    """A region of an image of `size` (height, width): polygons ((2n,) x, y in pixels), or run-length counts."""

    size: tuple[int, int]
    polygons: tuple[np.ndarray, ...] = ()
    counts: bytes | tuple[int, ...] | None = None
    crowd: bool = False

    def decode(self) -> np.ndarray:
        height, width = self.size
        try:
            if self.counts is not None:
                counts = decompress_counts(self.counts) if isinstance(self.counts, bytes) else self.counts
                return decode_counts(counts, height, width)
            return rasterise(self.polygons, height, width)
        except ValueError as error:
            raise BadImage("", f"has an unusable annotation: {error}") from None


def open_coco(annotations: Path | str, images: Path | str) -> SampleList:
    """annotations: the instances JSON; images: the folder that its file names refer to.

    Images without annotation, annotations without image, and regions without a usable mask are left out and told.
    """
    annotations, images = user_path(annotations), user_path(images)
    content = read_coco_json(annotations)
    files = {safe_id(file): file for file in list_images(images)}
    return assemble(content, annotations, images, files.get)


def assemble(
    content: dict[str, list[dict[str, Any]]], source: Path, images: Path, find: Callable[[str], Path | None]
) -> SampleList:
    """The SampleList of a parsed COCO file. find(file_name) gives the path under `images`, or None if missing."""
    samples: list[Sample] = []
    with told(f"{source} is not a COCO instances file"):
        position, categories = _categories(content)
        regions, counts = _regions(content, position)
        seen: set[Any] = set()
        names: set[str] = set()
        for image in sorted(content["images"], key=lambda image: str(image["file_name"])):
            name = path_inside(images, image["file_name"], source=source).relative_to(images).as_posix()
            if image["id"] in seen or name in names:
                twice = f"{shorten(image['id'], 60)} ({shorten(name, 60)})"
                raise BadData(f"{source} describes image {twice} twice: it is not a valid COCO file")
            seen.add(image["id"])
            names.add(name)
            size = (whole(image["height"]), whole(image["width"]))
            if min(size) < 1 or size[0] * size[1] > MAX_PIXELS:
                raise ValueError(f"image {safe_id(name)} is said to have {size[1]}x{size[0]} pixels")
            masks = _masks(regions.pop(image["id"], []), size, counts)
            if len(masks) > MOST_REGIONS:
                raise ValueError(f"image {safe_id(name)} has {len(masks)} regions, more than {MOST_REGIONS}")
            file = find(name)
            if file is None:
                counts["images named there do not exist"] += 1
            elif not masks:
                counts["images have no annotated region"] += 1
            else:
                samples.append(Sample(safe_id(file), images / file, annotations=masks))
        counts["regions belong to no image of the file"] += sum(len(left) for left in regions.values())
    if not samples:
        said = "; ".join(f"{n} {what}" for what, n in counts.items() if n) or "it is empty"
        raise BadData(f"nothing in {source} can be used with the images of {images}: {said}")
    return SampleList(
        samples,
        categories=categories,
        origin=f"{images} with {source.name}",
        notes=[f"{source.name}: {n} {what}" for what, n in counts.items() if n],
        annotation_digest=digest_of_file(source),
    )


def _categories(content: dict[str, list[dict[str, Any]]]) -> tuple[dict[Any, int], list[str]]:
    """Position of each category id, and the names in order."""
    found = sorted(content["categories"], key=lambda category: category["id"])
    position = {category["id"]: i for i, category in enumerate(found)}
    if len(position) < len(found):
        raise ValueError("two categories have the same id")
    return position, [shorten(category["name"]) for category in found]


def _masks(regions: list[dict[str, Any]], size: tuple[int, int], counts: Counter[str]) -> tuple[CocoMask, ...]:
    """The regions of an image of `size`; one that says it is of another size is left out."""
    fitting = [region for region in regions if region.pop("size", None) in (None, size)]
    counts["regions are of another size than their image"] += len(regions) - len(fitting)
    return tuple(CocoMask(size=size, **region) for region in fitting)


def read_coco_json(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The parsed file, with the three lists that make it COCO's."""
    content = read_json(path, most=LARGEST)
    wanted = ("images", "annotations", "categories")
    if not isinstance(content, dict) or not all(isinstance(content.get(key), list) for key in wanted):
        found = type(content).__name__
        if isinstance(content, dict):
            found = ", ".join(shorten(key, 40) for key in list(content)[:6])
        raise BadData(f"{path} is not a COCO instances file: expected the lists {', '.join(wanted)}, found {found}")
    return content


def _regions(
    content: dict[str, list[dict[str, Any]]], position: dict[Any, int]
) -> tuple[dict[Any, list[dict[str, Any]]], Counter[str]]:
    """Fields of `CocoMask` by image id, and how many annotations were odd, by what was odd about them."""
    regions: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    counts: Counter[str] = Counter()
    for annotation in content["annotations"]:
        if annotation["category_id"] not in position:
            raise ValueError(f"category {annotation['category_id']} is not in the list of categories")
        shape = _shape(annotation.get("segmentation"))
        if shape is None:
            counts["regions without a usable mask"] += 1
            continue
        crowd = bool(annotation.get("iscrowd", 0))
        counts["regions are crowds, kept as foreground"] += crowd
        regions[annotation["image_id"]].append(
            {"category": position[annotation["category_id"]], "crowd": crowd, **shape}
        )
    return regions, counts


def _shape(segmentation: Any) -> dict[str, Any] | None:
    """Polygons or run lengths; None if there is no mask (files in use hold empty lists and two-point polygons)."""
    if isinstance(segmentation, dict):
        counts = segmentation["counts"]
        code = counts.encode() if isinstance(counts, str) else tuple(map(whole, counts))
        size = segmentation.get("size")
        return {"counts": code} | ({} if size is None else {"size": tuple(map(whole, size))})
    if isinstance(segmentation, list):
        polygons = tuple(_polygon(p) for p in segmentation if len(p) >= 6 and len(p) % 2 == 0)
        return {"polygons": polygons} if polygons else None
    return None


def _polygon(values: list[Any]) -> np.ndarray:
    """(2n,) float64; only numbers, where numpy alone would also read texts."""
    found = np.asarray(values)
    if found.ndim != 1 or found.dtype.kind not in "iuf" or not np.isfinite(found).all():
        raise ValueError("a polygon is not a list of finite numbers")
    return found.astype(np.float64)
