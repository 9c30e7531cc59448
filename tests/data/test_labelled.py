"""Labelled folders: divided already or here, classes by name, limits, and layouts that are something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tasks.conftest import classes, photo
from vitscope.core.errors import BadData
from vitscope.data.labelled import open_labelled


def test_train_and_val_go_by_the_names_of_classes(tmp_path: Path) -> None:
    classes(tmp_path / "train", {"ant": 2, "bee": 2, "cow": 2})
    classes(tmp_path / "val", {"bee": 1, "cow": 2})
    data = open_labelled(tmp_path)
    assert data.train.classes == data.test.classes == ("ant", "bee", "cow")
    assert data.test.labels == (1, 2, 2)  # not 0, 1, 1
    assert data.notes == ()


def test_test_is_as_good_a_name_as_val(tmp_path: Path) -> None:
    classes(tmp_path / "train", {"ant": 2, "bee": 2})
    classes(tmp_path / "test", {"ant": 1, "bee": 1})
    assert len(open_labelled(tmp_path).test) == 2


def test_a_plain_folder_of_classes_is_divided(tmp_path: Path) -> None:
    classes(tmp_path / "set", {"ant": 10, "bee": 5, "cow": 1})
    data = open_labelled(tmp_path / "set")
    assert data.test.labels == (0, 0, 1)  # a fifth of each; a single image is only learned from
    assert not {s.id for s in data.train} & {s.id for s in data.test}
    assert len(data.train) + len(data.test) == 16
    assert "a seeded 20% of each class" in data.notes[0]
    again = open_labelled(tmp_path / "set")
    assert again.digest == data.digest
    assert open_labelled(tmp_path / "set", seed=1).digest != data.digest


def test_limits_are_balanced(tmp_path: Path) -> None:
    classes(tmp_path / "train", {"ant": 6, "bee": 6})
    classes(tmp_path / "val", {"ant": 4, "bee": 4})
    data = open_labelled(tmp_path, limit=4)
    assert data.train.labels == data.test.labels == (0, 0, 1, 1)
    with pytest.raises(BadData, match="1 images cannot show the 2 classes"):
        open_labelled(tmp_path, limit=1)


def test_classes_that_were_never_learned_are_told(tmp_path: Path) -> None:
    classes(tmp_path / "train", {"ant": 2, "bee": 2})
    classes(tmp_path / "val", {"ant": 1, "yak": 1, "zebra": 1})
    with pytest.raises(BadData, match=r"2 of the classes asked about \(first: yak\) are not in"):
        open_labelled(tmp_path)


def test_images_without_classes_are_told(tmp_path: Path) -> None:
    photo(tmp_path / "flat" / "a.jpg")
    with pytest.raises(BadData, match=r"have no classes: expected train/ and val/ .* found a.jpg"):
        open_labelled(tmp_path / "flat")
    classes(tmp_path / "single", {"ant": 1, "bee": 1})
    with pytest.raises(BadData, match=r"no class in .* has two images"):
        open_labelled(tmp_path / "single")
    with pytest.raises(BadData, match="does not exist"):
        open_labelled(tmp_path / "nowhere")


def test_only_all_of_imagenet_is_imagenet(tmp_path: Path) -> None:
    names = {f"n{number:08}": 1 for number in range(1000)}
    for name in names:
        for part in ("train", "val"):
            (tmp_path / part / name).mkdir(parents=True)
            (tmp_path / part / name / "a.jpg").write_bytes(b"x")
    data = open_labelled(tmp_path)
    assert data.title == "ImageNet (part)"  # 1,000 of the 50,000 images asked about
