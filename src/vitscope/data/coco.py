"""COCO instances: one JSON of polygons and run-length masks, and a folder of images.

Crowd regions (`iscrowd`, run-length masks of many objects of one category) are kept, as in the published evaluation:
they are foreground. `CocoMask.crowd` tells them apart. Polygons are rasterised by pycocotools, the reference.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from vitscope.data.decode import MAX_PIXELS, BadImage
from vitscope.data.folders import list_images, safe_id
from vitscope.data.layouts import read_json
from vitscope.data.rle import decode_counts, decompress_counts
from vitscope.data.samples import Annotation, Sample, SampleList
from vitscope.digest import digest_of_file
from vitscope.errors import BadData


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


def rasterise(polygons: tuple[np.ndarray, ...], height: int, width: int) -> np.ndarray:
    """The union of polygons as bool (height, width), exactly as COCO's own tools draw them."""
    mask_tools = _pycocotools()
    for polygon in polygons:  # the C code below trusts its input
        x, y = polygon[0::2], polygon[1::2]
        inside = (x >= -width) & (x <= 2 * width) & (y >= -height) & (y <= 2 * height)
        if not inside.all():  # also NaN
            raise ValueError("a polygon lies far outside the image")
    runs = mask_tools.frPyObjects([polygon.tolist() for polygon in polygons], height, width)
    return np.asarray(mask_tools.decode(mask_tools.merge(runs)), dtype=bool)


def _pycocotools() -> Any:
    try:
        from pycocotools import mask
    except ImportError:
        raise BadData(
            "COCO polygons are drawn by pycocotools, which is not installed: pip install 'vitscope[coco]'"
        ) from None
    return mask


def open_coco(annotations: Path | str, images: Path | str) -> SampleList:
    """annotations: the instances JSON; images: the folder that its file names refer to.

    Images without annotation, annotations without image, and regions without a usable mask are left out and told.
    """
    annotations, images = Path(annotations).expanduser(), Path(images).expanduser()
    content = read_coco_json(annotations)
    files = {safe_id(file): file for file in list_images(images)}
    return assemble(content, annotations, images, files.get)


def assemble(
    content: dict[str, list[dict[str, Any]]], source: Path, images: Path, find: Callable[[str], Path | None]
) -> SampleList:
    """The SampleList of a parsed COCO file. find(file_name) gives the path under `images`, or None if missing."""
    _pycocotools()  # before long work starts
    try:
        categories = sorted(content["categories"], key=lambda c: c["id"])
        position = {category["id"]: i for i, category in enumerate(categories)}
        regions, counts = _regions(content, position)
        samples, seen = [], set()
        for image in sorted(content["images"], key=lambda image: str(image["file_name"])):
            name = _checked_name(str(image["file_name"]), source)
            if image["id"] in seen:
                raise BadData(f"{source} describes image {image['id']} twice: it is not a valid COCO file")
            seen.add(image["id"])
            size = (int(image["height"]), int(image["width"]))
            if size[0] * size[1] > MAX_PIXELS:
                raise ValueError(f"image {safe_id(name)} is said to have {size[1]}x{size[0]} pixels")
            masks = tuple(CocoMask(size=size, **region) for region in regions.pop(image["id"], ()))
            file = find(name)
            if file is None:
                counts["images named there do not exist"] += 1
            elif not masks:
                counts["images have no annotated region"] += 1
            else:
                samples.append(Sample(safe_id(file), images / file, annotations=masks))
        counts["regions belong to no image of the file"] += sum(len(left) for left in regions.values())
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadData(f"{source} is not a COCO instances file: {type(error).__name__} {error}") from None
    if not samples:
        told = "; ".join(f"{n} {what}" for what, n in counts.items() if n) or "it is empty"
        raise BadData(f"nothing in {source} can be used with the images of {images}: {told}")
    return SampleList(
        samples,
        categories=[str(category["name"]) for category in categories],
        origin=f"{images} with {source.name}",
        notes=[f"{source.name}: {n} {what}" for what, n in counts.items() if n],
        annotation_digest=digest_of_file(source),
    )


def read_coco_json(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The parsed file, with the three lists that make it COCO's."""
    content = read_json(path)
    wanted = ("images", "annotations", "categories")
    if not isinstance(content, dict) or not all(isinstance(content.get(key), list) for key in wanted):
        found = ", ".join(map(str, list(content)[:6])) if isinstance(content, dict) else type(content).__name__
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
        return {"counts": counts.encode() if isinstance(counts, str) else tuple(map(int, counts))}
    if isinstance(segmentation, list):
        polygons = tuple(np.asarray(p, np.float64) for p in segmentation if len(p) >= 6 and len(p) % 2 == 0)
        return {"polygons": polygons} if polygons else None
    return None


def _checked_name(name: str, source: Path) -> str:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts:
        raise BadData(
            f"{source} names the image {safe_id(name)}, which lies outside its folder: it is not safe to read"
        )
    return str(path)
