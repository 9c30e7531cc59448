"""Networks and datasets that the task tests make for themselves, in the exact official layouts."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import timm
import torch
from PIL import Image

from vitscope.core.analysis import Analysis, Outcome
from vitscope.data.dataset import Dataset
from vitscope.data.preprocessing import HALF, Preprocessing
from vitscope.models.backbone import Backbone
from vitscope.models.spec import resolve
from vitscope.pipeline.engines import Local
from vitscope.pipeline.evaluate import run as run_plan
from vitscope.pipeline.found import StoredFound
from vitscope.pipeline.plan import make_plan
from vitscope.pipeline.store import Store


def tiny_backbone(size: tuple[int, int] = (32, 32), *, depth: int = 3, seed: int = 0, **options: Any) -> Backbone:
    """A seeded ViT of 8-pixel patches."""
    torch.manual_seed(seed)
    module = timm.create_model(
        "vit_tiny_patch16_224",
        img_size=size,
        patch_size=8,
        embed_dim=24,
        depth=depth,
        num_heads=2,
        num_classes=0,
        **options,
    )
    return Backbone("tiny", module, Preprocessing(size, *HALF), teaching="none", title="Tiny")


@pytest.fixture(scope="package", autouse=True)
def _one_thread() -> Iterator[None]:
    """Networks this small only lose time to each other's threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def backbone() -> Backbone:
    return tiny_backbone()


def examined(backbone: Backbone, dataset: Dataset, analysis: Analysis, folder: Path) -> tuple[StoredFound, Outcome]:
    """What the passes of an analysis left in a store, and what it made of them."""
    plan, store = make_plan([resolve(backbone)], [dataset], [analysis]), Store(folder)
    run_plan(plan, store, Local())
    return StoredFound(plan, plan.tasks[0], store), store.read_outcome(plan.tasks[0].digest)


def values(outcome: Outcome, measure: str, variant: str) -> list[float]:
    """By layer."""
    rows = pl.concat(outcome.tables).filter((pl.col("measure") == measure) & (pl.col("variant") == variant))
    return rows.sort("layer")["value"].to_list()


def photo(path: Path, size: tuple[int, int] = (40, 30), seed: int = 0) -> Path:
    """A smooth random image (width, height)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    coarse = np.random.default_rng(seed).integers(0, 256, (5, 6, 3), dtype=np.uint8)
    Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC).save(path, quality=95)
    return path


def classes(folder: Path, per_class: dict[str, int], seed: int = 0) -> Path:
    """One subfolder per class; images of a class share a colour."""
    for number, (name, count) in enumerate(per_class.items()):
        for i in range(count):
            path = photo(folder / name / f"{i:03}.jpg", seed=1000 * number + i + seed)
            tint = np.asarray(Image.open(path)) // 3
            tint[..., "rgb".find(name[0]) if name[0] in "rgb" else number % 3] += 150
            Image.fromarray(tint).save(path)
    return folder


def square_at(left: int, top: int, side: int = 16, size: tuple[int, int] = (64, 48), label: int = 1) -> np.ndarray:
    """uint8 (H, W): one square object."""
    mask = np.zeros((size[1], size[0]), np.uint8)
    mask[top : top + side, left : left + side] = label
    return mask


def frame_of(mask: np.ndarray) -> np.ndarray:
    """An image in which every object has its own colour and texture."""
    height, width = mask.shape
    y, x = np.mgrid[:height, :width]
    pixels = np.stack([60 + x % 16, 70 + y % 16, np.full_like(x, 90)], -1).astype(np.uint8)
    for label, colour in ((1, (230, 40, 40)), (2, (40, 220, 60)), (3, (240, 230, 60))):
        pixels[mask == label] = colour
    return pixels


def save_mask(path: Path, mask: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(mask)
    image.putpalette([value // 3 for value in range(768)])  # all 256 colours: fewer would be stored in fewer bits
    image.save(path)


@pytest.fixture
def davis(tmp_path: Path) -> Path:
    return make_davis(tmp_path / "DAVIS")


def make_davis(root: Path) -> Path:
    """DAVIS-2017: two objects and void pixels in `pair`, an object that appears late in `late`, a grey JPEG."""
    for name in ("pair", "late"):
        for number in range(6):
            mask = square_at(4 + 3 * number, 8)
            if name == "pair":
                mask[28:44, 40 - 2 * number : 56 - 2 * number] = 2
                mask[0, :5] = 255
            elif number > 2:
                mask[30:40, 50:60] = 2  # not in the first frame: not counted
            pixels = frame_of(mask)
            path = root / "JPEGImages/480p" / name / f"{number:05}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            picture = Image.fromarray(pixels)
            (picture.convert("L") if name == "late" and number == 4 else picture).save(path, quality=95)
            save_mask(root / "Annotations/480p" / name / f"{number:05}.png", mask)
    (root / "ImageSets/2017").mkdir(parents=True)
    (root / "ImageSets/2017/val.txt").write_text("pair\nlate\n")
    return root


@pytest.fixture
def spair(tmp_path: Path) -> Path:
    return make_spair(tmp_path / "SPair-71k")


def make_spair(root: Path) -> Path:
    """SPair-71k: cats in two pairs, a dog in one, no pairs of sheep."""
    for i, name in enumerate(("cat/a", "cat/b", "dog/a", "dog/b", "sheep/a")):
        photo(root / "JPEGImages" / f"{name}.jpg", size=(60, 40) if i % 2 else (40, 60), seed=i)
        annotation = root / "ImageAnnotation" / f"{name}.json"
        annotation.parent.mkdir(parents=True, exist_ok=True)
        annotation.write_text(json.dumps({"filename": f"{name}.jpg", "kps": {"0": [1, 2], "1": None}}))
    (root / "PairAnnotation/test").mkdir(parents=True)
    lines = []
    for number, (category, source, target) in enumerate((("cat", "a", "b"), ("cat", "b", "a"), ("dog", "a", "b"))):
        line = f"{number:06}-{source}-{target}:{category}"
        wide = target == "b"
        record = {
            "category": category,
            "src_imname": f"{source}.jpg",
            "trg_imname": f"{target}.jpg",
            "src_imsize": [40, 60, 3] if wide else [60, 40, 3],
            "trg_imsize": [60, 40, 3] if wide else [40, 60, 3],
            "src_bndbox": [2, 2, 30, 30],
            "trg_bndbox": [5, 5, 35, 30],
            "src_kps": [[10, 12], [20, 25], [33, 8]],
            "trg_kps": [[11, 13], [22, 24], [30, 9]],
            "kps_ids": ["0", "2", "5"],
            "mirror": 0,
        }
        (root / "PairAnnotation/test" / f"{line}.json").write_text(json.dumps(record))
        lines.append(line)
    (root / "Layout/large").mkdir(parents=True)
    (root / "Layout/large/test.txt").write_text("\n".join(lines) + "\n")
    return root


@pytest.fixture
def roxford(tmp_path: Path) -> Path:
    return make_roxford(tmp_path / "roxford5k")


def make_roxford(root: Path) -> Path:
    """ROxford5k: six images, two queries with boxes."""
    for i in range(8):
        photo(root / "jpg" / f"image_{i:06}.jpg", seed=i)
    content = {
        "imlist": [f"image_{i:06}" for i in range(6)],
        "qimlist": ["image_000006", "image_000007"],
        "gnd": [
            {"bbx": np.array([2.0, 2, 30, 28]), "easy": np.array([0, 3]), "hard": np.array([4]), "junk": np.array([5])},
            {"bbx": [0.0, 0, 40, 30], "easy": [], "hard": [1], "junk": [0, 2]},
        ],
    }
    (root / "gnd_roxford5k.pkl").write_bytes(pickle.dumps(content, 2))
    return root
