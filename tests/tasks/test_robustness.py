"""Corruptions that are always the same, drift in closed form, and the analysis on a small world."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import vitscope
from vitscope.data.corruption import CORRUPTIONS, LEVELS, STRENGTHS, corrupt
from vitscope.data.preprocessing import Preprocessing, in_geometry
from vitscope.pipeline.registry import default_analyses
from vitscope.tasks.robustness import Robustness, drift


@pytest.fixture
def image() -> Image.Image:
    x = np.linspace(0, 255, 64)
    fine = 60 * np.random.default_rng(0).random((64, 64))
    pixels = np.stack([np.add.outer(x, x) / 3, np.add.outer(x, x[::-1]) / 3, np.full((64, 64), 90)], -1)
    pixels = pixels + fine[..., None]
    return Image.fromarray(pixels.astype(np.uint8))


def distance(a: Image.Image, b: Image.Image) -> float:
    return float(np.abs(np.asarray(a, float) - np.asarray(b, float)).mean())


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_corruption_is_the_same_again_and_grows_with_its_strength(name: str, image: Image.Image) -> None:
    made = [corrupt(image, name, strength) for strength in STRENGTHS]
    again = [corrupt(image.copy(), name, strength) for strength in STRENGTHS]
    assert all(a.tobytes() == b.tobytes() and a.size == image.size for a, b in zip(made, again, strict=True))
    moved = [distance(image, one) for one in made]
    assert 0 < moved[0] < moved[1] < moved[2]


def test_levels_are_what_they_say(image: Image.Image) -> None:
    grey = Image.new("RGB", (200, 200), (128, 128, 128))
    noise = np.asarray(corrupt(grey, "noise", 1), float) - 128
    assert noise.std() == pytest.approx(255 * LEVELS["noise"][0], rel=0.02)
    red = Image.new("RGB", (200, 100), (255, 0, 0))
    hidden = (np.asarray(corrupt(red, "occlusion", 2)) == 128).all(-1).mean()
    assert hidden == pytest.approx(LEVELS["occlusion"][1], abs=0.01)


def test_a_geometry_carries_the_corruption(image: Image.Image) -> None:
    own = Preprocessing((32, 32))
    made = in_geometry(own, "crop, blur 2")
    assert made.geometry(image).tobytes() == corrupt(own.geometry(image), "blur", 2).tobytes()
    assert made.digest != in_geometry(own, "crop, blur 3").digest != own.digest
    with pytest.raises(ValueError, match="a geometry is one of"):
        in_geometry(own, "sideways")


def test_drift_of_known_directions() -> None:
    a = torch.tensor([[1.0, 0], [1, 0], [1, 0]])
    b = torch.tensor([[5.0, 0], [0, 2], [-1, 0]])
    assert drift(a, b).tolist() == [0, 1, 2]


def test_it_is_done_where_it_is_asked_for_by_name() -> None:
    assert "robustness" not in {a.name for a in default_analyses({"labelled"})}
    assert [a.name for a in default_analyses({"labelled"}, names={"robustness"})] == ["robustness"]


def test_every_layer_of_a_small_world(tmp_path: Path, image: Image.Image) -> None:
    generator = np.random.default_rng(0)
    for split, count in (("train", 6), ("val", 4)):
        for name in ("bright", "dark"):
            for number in range(count):
                level = (180 if name == "bright" else 40) + generator.integers(-20, 20, (32, 32, 3))
                path = tmp_path / split / name / f"{number}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(level.astype(np.uint8)).save(path)
    results = vitscope.evaluate(
        "random:vit_tiny_patch16_224",
        on=vitscope.labelled(tmp_path),
        analyses=[Robustness(corruptions=("blur", "brightness"), strengths=(1, 3))],
    )
    rows = results["robustness_top1"]
    assert set(rows["variant"]) == {"blur 1", "blur 3", "brightness 1", "brightness 3", "all"}
    assert len(rows) == 5 * 12
    by_variant = dict(rows.filter(layer=12).select("variant", "value").rows())
    assert by_variant["all"] == pytest.approx(np.mean([v for k, v in by_variant.items() if k != "all"]))
    assert by_variant["blur 1"] == 1.0  # bright and dark are told apart however blurred
    assert results["robustness_drift"]["value"].is_between(0, 2).all()
