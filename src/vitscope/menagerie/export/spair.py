"""Keypoint pairs in the layout of SPair-71k."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image

from vitscope.menagerie.export.files import box, save_jpeg
from vitscope.menagerie.gallery import pair
from vitscope.menagerie.pictures import Picture
from vitscope.menagerie.species import SPECIES
from vitscope.menagerie.world import World

SLOTS = 30
"""SPair has room for this many keypoints per category."""


def write_spair(folder: Path, world: World, pairs: int, size: int, tick: Callable[[], None]) -> None:
    """JPEGImages, ImageAnnotation, Segmentation by category; PairAnnotation/test; Layout/{large,small}/test.txt.

    Points are pixels (column, row), as in SPair; boxes are x1, y1, x2, y2. Pairs without a common visible keypoint
    are left out.
    """
    names: list[str] = []
    for index in range(pairs):
        both = pair(world, "pairs", index, size)
        category = SPECIES[both.source.species].name
        sides = [_write_image(folder, category, view) for view in (both.source, both.target)]
        tick()
        tick()
        if not both.matches:
            continue
        order = [keypoint.name for keypoint in both.source.keypoints[0]]
        name = f"{len(names) + 1:06d}-{sides[0]['stem']}-{sides[1]['stem']}:{category}"
        record: dict[str, Any] = {"pair_id": len(names), "filename": name, "category": category}
        for side, what, which in (("src", sides[0], 0), ("trg", sides[1], 1)):
            record |= {
                f"{side}_imname": f"{what['stem']}.jpg",
                f"{side}_imsize": [size, size, 3],
                f"{side}_bndbox": what["box"],
                f"{side}_pose": "Unspecified",
                f"{side}_kps": [[int(match[which].x), int(match[which].y)] for match in both.matches],
            }
        record["kps_ids"] = [str(order.index(source.name)) for source, _ in both.matches]
        record |= _difficulty(both.source, both.target)
        _write_json(folder / "PairAnnotation" / "test" / f"{name}.json", record)
        names.append(name)
    for amount in ("large", "small"):
        listing = folder / "Layout" / amount / "test.txt"
        listing.parent.mkdir(parents=True, exist_ok=True)
        listing.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")


def _write_image(folder: Path, category: str, picture: Picture) -> dict[str, Any]:
    stem = picture.scene.name.replace("-", "_")  # hyphens separate the images in a pair's name
    save_jpeg(folder / "JPEGImages" / category / f"{stem}.jpg", picture.image)
    segmentation = folder / "Segmentation" / category / f"{stem}.png"
    segmentation.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture.owners).save(segmentation)
    points = {str(slot): None for slot in range(SLOTS)} | {
        str(slot): [int(keypoint.x), int(keypoint.y)] if keypoint.visible else None
        for slot, keypoint in enumerate(picture.keypoints[0])
    }
    height, width = picture.owners.shape
    corners = list(box(picture.mask))
    annotation = {
        "filename": f"{stem}.jpg",
        "category": category,
        "image_width": width,
        "image_height": height,
        "image_depth": 3,
        "bndbox": corners,
        "kps": points,
    }
    _write_json(folder / "ImageAnnotation" / category / f"{stem}.json", annotation)
    return {"stem": stem, "box": corners}


def _difficulty(source: Picture, target: Picture) -> dict[str, int]:
    """The pair's flags: 0 easy .. 2 hard for scale; 1 for mirrored views; 0 none, 1 source, 2 target, 3 both."""
    one, other = source.scene.actors[0], target.scene.actors[0]
    ratio = max(one.size, other.size) / min(one.size, other.size)
    truncated = [
        bool(mask[0].any() or mask[-1].any() or mask[:, 0].any() or mask[:, -1].any())
        for mask in (source.mask, target.mask)
    ]
    covered = [bool(view.scene.covers) for view in (source, target)]
    return {
        "mirror": int(one.flip != other.flip),
        "viewpoint_variation": int(one.flip != other.flip),
        "scale_variation": 0 if ratio < 1.2 else 1 if ratio < 1.4 else 2,
        "truncation": truncated[0] + 2 * truncated[1],
        "occlusion": covered[0] + 2 * covered[1],
    }


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
