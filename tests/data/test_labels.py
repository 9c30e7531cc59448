"""Images, labels and masks of a study put together."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.features.made import write_images, write_masks
from vitscope.core.errors import BadData
from vitscope.data.dataset import ImageSet, MaskSet
from vitscope.data.folders import open_images
from vitscope.data.labels import read_labels
from vitscope.data.openers import images, masks


def test_labels_from_a_table(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "p", 4)
    table = tmp_path / "labels.csv"
    table.write_text("path,class\n0000.png,dog\n0001.png, cat\n0003.png,dog\nelsewhere.png,cow\n")
    samples = images(folder, labels=table).samples
    assert [sample.id for sample in samples] == ["0000.png", "0001.png", "0003.png"]
    assert (samples.classes, samples.labels) == (("cat", "dog"), (1, 0, 1))
    assert "1 of 4 images have no label" in samples.notes[0]
    assert images(folder, labels={"0002.png": "x"}).samples.classes == ("x",)
    table.write_text("0000.png,dog\n0001.png,\n0002.png,cat\n")  # a class that is not given is no class
    assert images(folder, labels=table).samples.classes == ("cat", "dog")
    assert "2 of 4 images have no label" in images(folder, labels=table).notes[0]
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


def test_labels_of_other_images_are_refused(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "p", 2)
    with pytest.raises(BadData, match="name none of the images"):
        images(folder, labels={"p/0000.png": "x"})


def test_masks_join_by_path_and_the_rest_stays(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "p", 6)
    dataset = images(folder, masks=write_masks(tmp_path / "m", ["0001", "0004"]))
    assert isinstance(dataset, MaskSet)
    samples = dataset.samples
    assert len(samples) == 6
    assert [len(sample.annotations) for sample in samples] == [0, 1, 0, 0, 1, 0]
    assert samples.categories == ("1", "2")
    assert any("4 of 6 images have no mask" in note for note in samples.notes)
    assert samples.digest != open_images(folder).digest


def test_class_folders_keep_their_labels_beside_masks(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "images", 4, classes=2)
    (tmp_path / "m").mkdir()
    write_masks(tmp_path / "m" / "class0", ["0000", "0002"])
    samples = images(folder, masks=tmp_path / "m").samples
    assert samples.classes == ("class0", "class1")
    assert [len(sample.annotations) for sample in samples] == [1, 1, 0, 0]


def test_masks_with_their_own_images(tmp_path: Path) -> None:
    write_images(tmp_path / "images", 3)
    write_masks(tmp_path / "masks", ["0000", "0001", "0002"])
    dataset = masks(tmp_path)
    assert (dataset.kind, dataset.count) == ("masks", 3)
    labels = {"0000.png": "dog", "0002.png": "cat"}
    assert masks(tmp_path, labels=labels).samples.labels == (1, 0)
    assert isinstance(images(tmp_path / "images"), ImageSet)


def test_masks_of_other_images_are_refused(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "p", 2)
    other = open_images(write_images(tmp_path / "q", 2))
    write_images(tmp_path / "set" / "images", 2)
    write_masks(tmp_path / "set" / "masks", ["0000", "0001"])
    with pytest.raises(BadData, match="none of the images"):
        images(other, masks=tmp_path / "set")
    assert folder.exists()
