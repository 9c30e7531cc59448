"""What a worker makes of images that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

import vitscope
from tests.conftest import make_photos
from vitscope.core.errors import BadData
from vitscope.models import Spec


@pytest.fixture(scope="module")
def small() -> Spec:
    return vitscope.resolve("random:vit_tiny_patch16_224", size=32)


def test_only_broken_images(tmp_path: Path, small: Spec) -> None:
    (tmp_path / "a.jpg").write_bytes(b"x")
    with pytest.raises(BadData, match=r"none of the 1 images can be used \(a\.jpg is"):
        vitscope.evaluate(small, on=vitscope.images(tmp_path), analyses=[vitscope.Attention()])


def test_broken_images_of_one_name_to_learn_from_and_to_be_asked_are_two(tmp_path: Path, small: Spec) -> None:
    for part in ("train", "val"):
        folder = make_photos(tmp_path / "data" / part, count=6)
        (folder / "class0" / "000.png").write_text("not an image")
    results = vitscope.evaluate(small, on=vitscope.labelled(tmp_path / "data"), analyses=[vitscope.Knn(ks=(1,))])
    assert [(part.seen, part.planned) for part in results.coverage] == [(10, 12)]
    assert sorted(results.skipped) == ["data/class0/000.png", "data/test/class0/000.png"]
    assert results.provenance[0]["seen"] == 10
