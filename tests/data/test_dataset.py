"""What every kind of dataset has: an identity that is its files, wherever they lie and whatever it is called."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import vitscope
from vitscope.core.errors import BadData
from vitscope.data.dataset import Dataset
from vitscope.data.openers import OPENERS


def image(path: Path, colour: str = "red") -> None:
    """A BMP: its size follows from its pixels alone, whatever they show."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (24, 16), colour).save(path, format="BMP")


def make(kind: str, root: Path) -> tuple[Path, list[Path]]:
    """A small dataset: what to open, and its images (BMPs, whatever their names say)."""
    names = {
        "images": ["a.bmp", "b.bmp"],
        "masks": ["images/a.bmp", "images/b.bmp"],
        "labelled": ["train/cat/a.bmp", "train/dog/a.bmp", "val/cat/a.bmp", "val/dog/a.bmp"],
        "retrieval": ["bella/a.bmp", "bella/b.bmp", "max/a.bmp", "max/b.bmp"],
        "video": ["0.bmp", "1.bmp"],
        "keypoints": ["a.bmp", "b.bmp"],
        "segmentation": ["images/a.bmp", "images/b.bmp", "images/c.bmp", "images/d.bmp"],
        "conflict": ["train/cat/a.bmp", "train/dog/a.bmp", "cue-conflict/cat/cat1-dog1.bmp"],
    }[kind]
    for name in names:
        image(root / name)
    region = np.zeros((16, 24), np.uint8)
    region[4:9, 4:9] = 1
    place = root
    if kind in ("masks", "segmentation"):
        (root / "masks").mkdir()
        for name in names:
            Image.fromarray(region * np.uint8(255)).save(root / f"masks/{Path(name).stem}.png")
    if kind == "video":
        Image.fromarray(region).save(root / "mask.png")
    if kind == "keypoints":
        place = root / "pairs.json"
        points = {"source_points": [[1, 1]], "target_points": [[2, 2]]}
        place.write_text(json.dumps([{"source": "a.bmp", "target": "b.bmp", **points}]))
    return place, [root / name for name in names]


@pytest.mark.parametrize("kind", OPENERS)
def test_an_image_replaced_by_another_of_the_same_size_is_noticed(kind: str, tmp_path: Path) -> None:
    place, paths = make(kind, tmp_path / "data")

    def opened() -> Dataset:
        return OPENERS[kind](place)

    for path in paths:
        os.utime(path, (0, 0))  # files of long ago
    digests = [opened().digest]
    assert opened().digest == digests[0]
    for path in paths:
        size = path.stat().st_size
        image(path, "blue")
        assert path.stat().st_size == size
        digests.append(opened().digest)
    assert len(set(digests)) == len(paths) + 1


@pytest.mark.parametrize("kind", OPENERS)
def test_titles_and_places_do_not_change_what_it_is(kind: str, tmp_path: Path) -> None:
    place, _ = make(kind, tmp_path / "here/data")
    first = OPENERS[kind](place)
    assert first.kind == kind
    assert first.titled("another").digest == first.digest
    (tmp_path / "here").rename(tmp_path / "there")
    moved = tmp_path / "there" / place.relative_to(tmp_path / "here")
    assert OPENERS[kind](moved).digest == first.digest


def test_chosen_examples_come_first_and_survive_a_limit(tmp_path: Path) -> None:
    for number in range(12):
        image(tmp_path / "cats" / f"{number:02}.bmp")
    plain = vitscope.images(tmp_path)
    chosen = vitscope.images(tmp_path, examples=["07.bmp", "cats/03.bmp"])
    assert chosen.shuffled.ids[:2] == ["cats/07.bmp", "cats/03.bmp"]
    assert chosen.shuffled.ids[2:] == [name for name in plain.shuffled.ids if name not in chosen.shuffled.ids[:2]]
    assert chosen.digest != plain.digest
    few = vitscope.images(tmp_path, examples=["07.bmp", "cats/03.bmp"], limit=4)
    assert few.count == 4
    assert few.shuffled.ids[:2] == ["cats/07.bmp", "cats/03.bmp"]
    with pytest.raises(BadData, match=r"no image is called '77\.bmp' in .*; did you mean 'cats/07\.bmp'\?"):
        vitscope.images(tmp_path, examples=["77.bmp"])
    image(tmp_path / "dogs" / "07.bmp")
    with pytest.raises(BadData, match=r"2 images are called '07\.bmp'"):
        vitscope.images(tmp_path, examples=["07.bmp"])
    with pytest.raises(BadData, match="name at most 6"):
        vitscope.images(tmp_path, examples=[f"cats/{number:02}.bmp" for number in range(7)])
