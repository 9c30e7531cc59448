"""Figures of different models are different files, however alike their titles are."""

from __future__ import annotations

from pathlib import Path

import pytest

import vitscope
from tests.conftest import make_photos
from vitscope.models.spec import Spec
from vitscope.report.attention_figures import draw_attention
from vitscope.report.attention_show import draw_images


@pytest.fixture(scope="module")
def alike() -> list[Spec]:
    """Two models whose titles are one word to a careless reader."""
    titles = ("A B", "a-b")
    return [
        vitscope.resolve("random:vit_tiny_patch16_224", size=32, seed=seed, title=title)
        for seed, title in enumerate(titles)
    ]


def test_models_with_titles_alike_do_not_overwrite_each_others_figures(
    alike: list[Spec], photos: Path, tmp_path: Path
) -> None:
    results = vitscope.evaluate(alike, on=vitscope.images(photos, limit=4), analyses=[vitscope.Attention()])
    written = draw_attention(results, tmp_path, formats=["png"])
    assert len(set(written)) == len(written) == 5  # CLS and aligned maps of each model, and the distances of both
    assert len({path.read_bytes() for path in written}) == 5


def test_images_of_one_name_do_not_overwrite_each_other(alike: list[Spec], tmp_path: Path) -> None:
    photos = make_photos(tmp_path / "photos", count=2)
    (photos / "class1/001.png").rename(photos / "class1/000.png")
    written = draw_images(alike, sorted(photos.rglob("*.png")), tmp_path / "out")
    assert len(set(written)) == len(written) == 12  # two images, two models, three formats
