"""Training data from folders: geometry, captions, caches, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from PIL import Image

from tests.support.hostile import changed_bytes
from vitscope.core.errors import BadData
from vitscope.data.folders import open_images
from vitscope.teaching.captions import read_captions
from vitscope.teaching.images import ImageFiles, StoredImages, batches_from, open_training_images, square


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(5):
            pixels = random.integers(0, 256, (20 + i, 24, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{i}.png")
    return tmp_path / "photos"


def test_the_short_side_is_resized_and_the_centre_cropped(tmp_path: Path) -> None:
    image = Image.new("RGB", (40, 20), "black")
    image.paste((255, 255, 255), (10, 0, 30, 20))  # the central square is white
    assert square(image, (10, 10), tmp_path).min() > 230
    assert square(image, (10, 10), tmp_path).shape == (3, 10, 10)


def test_stored_and_decoded_images_are_the_same(folder: Path, tmp_path: Path) -> None:
    samples = open_images(folder)
    decoded = open_training_images(samples, (16, 16))
    stored = open_training_images(samples, (16, 16), cache=tmp_path / "cache")
    again = open_training_images(samples, (16, 16), cache=tmp_path / "cache")
    assert isinstance(decoded, ImageFiles)
    assert isinstance(stored, StoredImages)
    assert len(list((tmp_path / "cache").iterdir())) == 1
    everything = range(10)
    assert torch.equal(decoded.take(everything), stored.take(everything))
    assert torch.equal(again.take(everything), stored.take(everything))
    assert stored.labels is not None
    assert stored.labels.tolist() == [0] * 5 + [1] * 5
    assert stored.classes == ("cat", "dog")
    assert decoded.digest == stored.digest


def test_a_damaged_cache_is_made_anew(folder: Path, tmp_path: Path) -> None:
    samples = open_images(folder)
    right = open_training_images(samples, (16, 16)).take(range(10))
    open_training_images(samples, (16, 16), cache=tmp_path)
    path = next(tmp_path.glob("images-*.npy"))
    whole = path.read_bytes()
    random = Random(0)
    damages = [changed_bytes(whole[:128], random) + whole[128:] for _ in range(20)]  # of the header
    damages += [b"", whole[:100], whole[:-1], whole.replace(b"False", b"True ", 1), b"cos\nsystem\n."]
    for damage in damages:
        path.write_bytes(damage)
        assert torch.equal(open_training_images(samples, (16, 16), cache=tmp_path).take(range(10)), right)
    path.unlink()
    os.mkfifo(path)
    assert torch.equal(open_training_images(samples, (16, 16), cache=tmp_path).take(range(10)), right)


def test_workers_give_the_same_lessons_in_the_same_order(folder: Path) -> None:
    files = open_training_images(open_images(folder), (16, 16))
    for workers in (0, 2):
        lessons = files.lessons(batches_from(1, 10, 4, seed=0), workers)
        orders = batches_from(1, 10, 4, seed=0)
        for _ in range(3):
            lesson, order = next(lessons), next(orders)
            assert torch.equal(lesson.images, files.take(order))
            assert lesson.labels is not None
            assert lesson.labels.tolist() == [int(i >= 5) for i in order]


def test_images_smaller_than_the_crop_are_refused(folder: Path) -> None:
    with pytest.raises(BadData, match="20x24 pixels, smaller than the 32x32"):
        open_training_images(open_images(folder), (32, 32))


def test_one_image_is_refused(tmp_path: Path) -> None:
    Image.new("RGB", (20, 20)).save(tmp_path / "only.png")
    with pytest.raises(BadData, match="at least two"):
        open_training_images(open_images(tmp_path), (16, 16))


def test_captions_from_one_file(folder: Path) -> None:
    samples = open_images(folder)
    said: dict[str, str | list[str]] = {sample.id: f"number {i}" for i, sample in enumerate(samples)}
    said["dog/4.png"] = ["a dog", " the last one "]
    (folder / "captions.json").write_text(json.dumps(said))
    captions = read_captions(folder, samples)
    assert captions is not None
    assert captions[0] == ("number 0",)
    assert captions[9] == ("a dog", "the last one")


def test_captions_beside_the_images(folder: Path) -> None:
    samples = open_images(folder)
    assert read_captions(folder, samples) is None
    for sample in samples:
        sample.path.with_suffix(".txt").write_text(f"it is {sample.id}\n\nand more\n")
    captions = read_captions(folder, samples)
    assert captions is not None
    assert captions[3] == ("it is cat/3.png", "and more")
    samples[3].path.with_suffix(".txt").unlink()
    with pytest.raises(BadData, match=r"1 of 10 images have no caption, the first is cat/3.png"):
        read_captions(folder, samples)


@pytest.mark.parametrize("text", ["{", "[]", '{"cat/0.png": 3}', "[" * 100_000, "\udcff"])
def test_bad_caption_files_are_refused(folder: Path, text: str) -> None:
    (folder / "captions.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(BadData, match=r"captions\.json"):
        read_captions(folder, open_images(folder))
