"""The datasets of the paper's study in their exact official layouts, with as few and as small images as will do.

Frames and images are square, so that dense extraction takes four tiles.
"""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.tasks.conftest import frame_of, photo, save_mask

SIDE = 96  # pixels
CLASSES = ("n01601694", "n01669191")  # the first two of ImageNet-50
CELL = 9  # pixels of a region: ten by ten of them in an image


def write_study_datasets(root: Path) -> Path:
    """All of them, below one folder."""
    write_imagenet(root / "imagenet")
    write_coco(root / "coco")
    write_partimagenet(root / "PartImageNet")
    write_revisited(root / "roxford5k")
    write_revisited(root / "rparis6k")
    write_davis(root / "DAVIS")
    write_spair(root / "SPair-71k")
    return root


def write_imagenet(root: Path, classes: tuple[str, ...] = CLASSES, train: int = 2, val: int = 1) -> Path:
    for number, wnid in enumerate(classes):
        for i in range(train):
            photo(root / "train" / wnid / f"{wnid}_{i:04}.JPEG", (SIDE, SIDE), seed=10 * number + i)
        for i in range(val):
            photo(root / "val" / wnid / f"ILSVRC2012_val_{number * val + i:08}.JPEG", (SIDE, SIDE), seed=90 + number)
    return root


def _image(number: int, name: str) -> dict[str, Any]:
    return {"id": number, "file_name": name, "height": SIDE, "width": SIDE}


def _regions(image: int, first: int, categories: int) -> list[dict[str, Any]]:
    """Ninety rectangles, so that there are more regions than the paper's 80 clusters."""
    found = []
    for i in range(90):
        x, y = CELL * (i % 10), CELL * (i // 10)
        corners = [x, y, x + CELL, y, x + CELL, y + CELL, x, y + CELL]
        described = {"bbox": [x, y, CELL, CELL], "area": CELL * CELL, "iscrowd": 0, "segmentation": [corners]}
        found.append({"id": first + i, "image_id": image, "category_id": i % categories + 1, **described})
    return found


def write_coco(root: Path, images: int = 2) -> Path:
    names = [f"{number:012}.jpg" for number in range(1, images + 1)]
    for number, name in enumerate(names, start=1):
        photo(root / "val2017" / name, (SIDE, SIDE), seed=number)
    content = {
        "images": [_image(number, name) for number, name in enumerate(names, start=1)],
        "annotations": [region for number in range(1, images + 1) for region in _regions(number, 100 * number, 80)],
        "categories": [{"id": i + 1, "name": f"thing {i}", "supercategory": "thing"} for i in range(80)],
    }
    (root / "annotations").mkdir(parents=True)
    (root / "annotations/instances_val2017.json").write_text(json.dumps(content))
    return root


def write_partimagenet(root: Path) -> Path:
    """One image in each split, of two super-categories."""
    kinds = ("Quadruped", "Biped")
    categories = [
        {"id": i + 1, "name": f"{kinds[i % 2]} part {i // 2}", "supercategory": kinds[i % 2]} for i in range(40)
    ]
    for number, split in enumerate(("train", "val", "test"), start=1):
        wnid = f"n0{2000000 + number % 2:07}"
        name = f"{wnid}_{number}.JPEG"
        photo(root / split / wnid / name, (SIDE, SIDE), seed=20 + number)
        content = {"images": [_image(number, name)], "categories": categories}
        content["annotations"] = _regions(number, 100 * number, 40)
        (root / f"{split}.json").write_text(json.dumps(content))
    return root


def write_revisited(root: Path) -> Path:
    """Three images to be searched and one query."""
    for i in range(4):
        photo(root / "jpg" / f"all_souls_{i:06}.jpg", (SIDE, SIDE), seed=30 + i)
    truth = {"bbx": [5.0, 5.0, 80.0, 70.0], "easy": [0], "hard": [1], "junk": [2]}
    content = {"imlist": [f"all_souls_{i:06}" for i in range(3)], "qimlist": ["all_souls_000003"], "gnd": [truth]}
    (root / f"gnd_{root.name}.pkl").write_bytes(pickle.dumps(content, 2))
    return root


def write_davis(root: Path) -> Path:
    """One video of three frames: the first and the last do not count."""
    for number in range(3):
        mask = np.zeros((SIDE, SIDE), np.uint8)
        mask[20:50, 10 + 4 * number : 40 + 4 * number] = 1
        mask[60:90, 50:80] = 2
        path = root / "JPEGImages/480p/bike-packing" / f"{number:05}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(frame_of(mask)).save(path, quality=95)
        save_mask(root / "Annotations/480p/bike-packing" / f"{number:05}.png", mask)
    (root / "ImageSets/2017").mkdir(parents=True)
    (root / "ImageSets/2017/val.txt").write_text("bike-packing\n")
    return root


def write_spair(root: Path) -> Path:
    """One pair of cats."""
    for number, name in enumerate(("2008_000227", "2008_000345")):
        photo(root / "JPEGImages/cat" / f"{name}.jpg", (SIDE, SIDE), seed=40 + number)
    record = {
        "category": "cat",
        "src_imname": "2008_000227.jpg",
        "trg_imname": "2008_000345.jpg",
        "src_bndbox": [5, 5, 90, 90],
        "trg_bndbox": [8, 8, 88, 90],
        "src_kps": [[20, 22], [60, 40], [33, 70]],
        "trg_kps": [[21, 25], [58, 44], [30, 66]],
    }
    line = "000000-2008_000227-2008_000345:cat"
    for folder in ("PairAnnotation/test", "Layout/large"):
        (root / folder).mkdir(parents=True)
    (root / "PairAnnotation/test" / f"{line}.json").write_text(json.dumps(record))
    (root / "Layout/large/test.txt").write_text(f"{line}\n")
    return root
