"""Pictures, labels and masks of a study put together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.features.made import write_pictures
from vitscope.data.folders import open_images
from vitscope.errors import BadData
from vitscope.features.pictures import gather, read_labels


def write_masks(folder: Path, names: list[str], size: int = 32) -> Path:
    """One object per picture, in category 1 or 2 by turns."""
    folder.mkdir(parents=True)
    for i, name in enumerate(names):
        mask = np.zeros((size, size), np.uint8)
        mask[8:24, 8:24] = 1 + i % 2
        Image.fromarray(mask).save(folder / f"{name}.png")
    return folder


def test_labels_from_a_table(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "p", 4)
    table = tmp_path / "labels.csv"
    table.write_text("path,class\n0000.png,dog\n0001.png, cat\n0003.png,dog\nelsewhere.png,cow\n")
    samples = gather(folder, labels=table)
    assert [sample.id for sample in samples] == ["0000.png", "0001.png", "0003.png"]
    assert (samples.classes, samples.labels) == (("cat", "dog"), (1, 0, 1))
    assert "1 of 4 pictures have no label" in samples.notes[0]
    assert gather(folder, labels={"0002.png": "x"}).classes == ("x",)
    table.write_text("0000.png,dog\n0001.png,\n0002.png,cat\n")  # a class that is not given is no class
    assert gather(folder, labels=table).classes == ("cat", "dog")
    assert "2 of 4 pictures have no label" in gather(folder, labels=table).notes[0]
    table.write_text("0000.png,\n0001.png, \n")
    with pytest.raises(BadData, match="names no classes"):
        read_labels(table)
    (tmp_path / "labels.tsv").write_text("0000.png\ta,b\n")
    assert read_labels(tmp_path / "labels.tsv") == {"0000.png": "a,b"}


@pytest.mark.parametrize("text", ["", "path,class\n", "only one column\n", "a,b,c\n"])
def test_what_is_no_table_of_labels(tmp_path: Path, text: str) -> None:
    (tmp_path / "l.csv").write_text(text)
    with pytest.raises(BadData, match="expected two columns"):
        read_labels(tmp_path / "l.csv")
    (tmp_path / "l.csv").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(BadData, match="cannot read labels"):
        read_labels(tmp_path / "l.csv")


def test_labels_of_other_pictures_are_refused(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "p", 2)
    with pytest.raises(BadData, match="name none of the pictures"):
        gather(folder, labels={"p/0000.png": "x"})


def test_masks_join_by_path_and_the_rest_stays(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "p", 6)
    masks = write_masks(tmp_path / "m", ["0001", "0004"])
    samples = gather(folder, masks=masks)
    assert len(samples) == 6
    assert [len(sample.annotations) for sample in samples] == [0, 1, 0, 0, 1, 0]
    assert samples.categories == ("1", "2")
    assert any("4 of 6 pictures have no mask" in note for note in samples.notes)
    assert samples.digest != open_images(folder).digest


def test_class_folders_keep_their_labels_beside_masks(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "images", 4, classes=2)
    (tmp_path / "m").mkdir()
    write_masks(tmp_path / "m" / "class0", ["0000", "0002"])
    samples = gather(folder, masks=tmp_path / "m")
    assert samples.classes == ("class0", "class1")
    assert [len(sample.annotations) for sample in samples] == [1, 1, 0, 0]


def test_masks_with_their_own_pictures(tmp_path: Path) -> None:
    write_pictures(tmp_path / "images", 3)
    write_masks(tmp_path / "masks", ["0000", "0001", "0002"])
    assert len(gather(None, masks=tmp_path)) == 3
    with pytest.raises(BadData, match="say which pictures"):
        gather(None)


def test_masks_of_other_pictures_are_refused(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "p", 2)
    other = open_images(write_pictures(tmp_path / "q", 2))
    write_pictures(tmp_path / "set" / "images", 2)
    write_masks(tmp_path / "set" / "masks", ["0000", "0001"])
    with pytest.raises(BadData, match="none of the pictures"):
        gather(other, masks=tmp_path / "set")
    assert folder.exists()
