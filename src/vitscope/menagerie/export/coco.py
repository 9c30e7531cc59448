"""COCO instances with captions, and parts in the manner of PartImageNet."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vitscope.menagerie.export.files import Mask, box, run_lengths, save_jpeg
from vitscope.menagerie.pictures import Picture, render
from vitscope.menagerie.sketch import PARTS
from vitscope.menagerie.species import SPECIES
from vitscope.menagerie.world import World

INFO = {"description": "menagerie, a rendered world", "version": "1"}


def write_coco(folder: Path, world: World, count: int, size: int, tick: Callable[[], None]) -> None:
    """val2017/*.jpg, annotations/instances_val2017.json and captions_val2017.json; species are the categories.

    Three of four images show two creatures, of which one may hide a part of the other.
    """
    images: list[dict[str, Any]] = []
    regions: list[dict[str, Any]] = []
    captions: list[dict[str, Any]] = []
    for number in range(count):
        together = number % 4 != 3
        scene = world.gathering("coco", number) if together else world.scene("coco", number)
        picture = render(scene, size)
        image = _image(number + 1, f"{number + 1:012d}.jpg", picture)
        save_jpeg(folder / "val2017" / image["file_name"], picture.image)
        images.append(image)
        captions.append({"id": number + 1, "image_id": number + 1, "caption": picture.caption})
        for owner, actor in enumerate(scene.actors, start=1):
            mask = picture.owners == owner
            if mask.any():
                regions.append(_region(len(regions) + 1, image["id"], 1 + actor.individual.species, mask))
        tick()
    categories = [
        {"id": i, "name": species.name, "supercategory": "animal"} for i, species in enumerate(SPECIES, start=1)
    ]
    instances = {"images": images, "annotations": regions, "categories": categories}
    _write(folder / "annotations" / "instances_val2017.json", instances)
    _write(folder / "annotations" / "captions_val2017.json", {"images": images, "annotations": captions})


def write_partimagenet(folder: Path, world: World, count: int, size: int, tick: Callable[[], None]) -> None:
    """val.json and val/<species>/<species>_<number>.JPEG; the parts that all species share are the categories."""
    images: list[dict[str, Any]] = []
    regions: list[dict[str, Any]] = []
    for number in range(count):
        picture = render(world.scene("parts", number), size)
        species = SPECIES[picture.species].name
        image = _image(number + 1, f"{species}_{number:05d}.JPEG", picture)
        save_jpeg(folder / "val" / species / image["file_name"], picture.image)
        images.append(image)
        for part in range(1, len(PARTS) + 1):
            mask = picture.parts == part
            if mask.any():
                regions.append(_region(len(regions) + 1, image["id"], part, mask))
        tick()
    categories = [{"id": i, "name": part, "supercategory": "animal"} for i, part in enumerate(PARTS, start=1)]
    _write(folder / "val.json", {"images": images, "annotations": regions, "categories": categories})


def _image(number: int, name: str, picture: Picture) -> dict[str, Any]:
    height, width = picture.owners.shape
    return {"id": number, "file_name": name, "height": height, "width": width}


def _region(number: int, image: int, category: int, mask: Mask) -> dict[str, Any]:
    x1, y1, x2, y2 = box(mask)
    return {
        "id": number,
        "image_id": image,
        "category_id": category,
        "iscrowd": 0,
        "area": int(mask.sum()),
        "bbox": [x1, y1, x2 - x1 + 1, y2 - y1 + 1],
        "segmentation": {"size": list(mask.shape), "counts": run_lengths(mask)},  # exact, unlike polygons
    }


def _write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"info": INFO, **content}), encoding="utf-8")
