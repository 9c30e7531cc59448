"""Mask folders, PartImageNet, ImageNet-50, and the entry that tells layouts apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from vitscope.core.errors import BadData
from vitscope.data.imagenet50 import imagenet50_classes, open_imagenet50
from vitscope.data.mask_folder import open_mask_folder
from vitscope.data.masks import open_masks
from vitscope.data.partimagenet import open_partimagenet


def write_mask(path: Path, values: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values.astype(np.uint8)).save(path)


def blank(height: int = 16, width: int = 24) -> np.ndarray:
    return np.zeros((height, width), np.uint8)


def test_binary_masks_are_one_object(photo: Callable[..., Path], tmp_path: Path) -> None:
    for name in ("a.jpg", "sub/b.png", "no_mask.jpg", "nothing_on_it.jpg"):
        photo(f"images/{name}")
    values = blank()
    values[:4, :6] = 255
    for name in ("a.png", "sub/b.png", "no_image.png"):
        write_mask(tmp_path / "masks" / name, values)
    write_mask(tmp_path / "masks" / "nothing_on_it.png", blank())
    samples = open_masks(tmp_path)
    assert samples.categories == ("object",)
    assert [s.id for s in samples] == ["a.jpg", "sub/b.png"]
    assert [[r.category for r in s.annotations] for s in samples] == [[0], [0]]
    assert samples[0].annotations[0].decode().sum() == 24
    assert samples.notes == (
        "1 of 4 images without a mask were left out",
        "1 of 4 images whose mask is empty were left out",
        "1 masks have no image",
    )


def test_values_are_categories_and_255_is_void(photo: Callable[..., Path], tmp_path: Path) -> None:
    photo("images/a.png")
    photo("images/b.png")
    first, second = blank(), blank()
    first[0], first[1], first[2] = 1, 7, 255
    second[5] = 7
    write_mask(tmp_path / "masks" / "a.png", first)
    write_mask(tmp_path / "masks" / "b.png", second)
    samples = open_masks(tmp_path)
    assert samples.categories == ("1", "7")
    assert [[r.category for r in s.annotations] for s in samples] == [[0, 1], [1]]
    assert np.flatnonzero(samples[0].annotations[1].decode().any(axis=1)).tolist() == [1]


def test_digest_follows_the_masks(photo: Callable[..., Path], tmp_path: Path) -> None:
    photo("images/a.png")
    digests = set()
    for row in (0, 1):
        values = blank()
        values[row] = 255
        write_mask(tmp_path / "masks" / "a.png", values)
        digests.add(open_masks(tmp_path).digest)
    assert len(digests) == 2


def test_mask_of_another_size(photo: Callable[..., Path], tmp_path: Path) -> None:
    photo("images/a.png", size=(24, 16))
    write_mask(tmp_path / "masks" / "a.png", blank(24, 16))
    with pytest.raises(BadData, match="is 16x24 but its image is 24x16"):
        open_masks(tmp_path)


def test_a_broken_picture_does_not_stop_the_others(photo: Callable[..., Path], tmp_path: Path) -> None:
    photo("images/a.png")
    (tmp_path / "images" / "b.png").write_bytes(b"broken")
    for name in ("a.png", "b.png"):
        write_mask(tmp_path / "masks" / name, blank() + 255)
    assert len(open_masks(tmp_path)) == 2  # it is skipped, and told, when its turn comes


def test_masks_that_are_all_empty_or_unrelated(photo: Callable[..., Path], tmp_path: Path) -> None:
    photo("images/a.png")
    write_mask(tmp_path / "masks" / "b.png", blank())
    with pytest.raises(BadData, match="has a mask of the same name"):
        open_masks(tmp_path)
    write_mask(tmp_path / "masks" / "a.png", blank())
    with pytest.raises(BadData, match="are empty"):
        open_masks(tmp_path)


def test_two_images_of_one_name(photo: Callable[..., Path], tmp_path: Path) -> None:
    photo("images/a.png")
    photo("images/a.jpg")
    write_mask(tmp_path / "masks" / "a.png", blank() + 255)
    with pytest.raises(BadData, match=r"both a\.jpg and a\.png"):
        open_mask_folder(tmp_path / "images", tmp_path / "masks")


def test_masks_and_images_in_folders_of_their_own(photo: Callable[..., Path], tmp_path: Path) -> None:
    photo("photos/a.jpg")
    write_mask(tmp_path / "truth" / "a.png", blank() + 255)
    assert len(open_masks(tmp_path / "truth", images=tmp_path / "photos")) == 1


SQUARE = [[0, 0, 4, 0, 4, 4, 0, 4]]


def coco_json(names: list[str]) -> str:
    return json.dumps(
        {
            "images": [{"id": i, "file_name": n, "width": 24, "height": 16} for i, n in enumerate(names)],
            "annotations": [
                {"id": i, "image_id": i, "category_id": 1, "iscrowd": 0, "segmentation": SQUARE}
                for i, _ in enumerate(names)
            ],
            "categories": [{"id": 1, "name": "thing"}],
        }
    )


@pytest.mark.parametrize("folder", ["val2017", "images/val2017", "images"])
def test_coco_layouts(photo: Callable[..., Path], tmp_path: Path, folder: str) -> None:
    photo(f"{folder}/a.png")
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations" / "instances_val2017.json").write_text(coco_json(["a.png"]))
    assert [s.id for s in open_masks(tmp_path)] == ["a.png"]
    assert len(open_masks(tmp_path / "annotations" / "instances_val2017.json")) == 1
    assert len(open_masks(tmp_path / "annotations" / "instances_val2017.json", images=tmp_path / folder)) == 1


def test_coco_with_two_annotation_files(photo: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "annotations").mkdir()
    for split in ("train2017", "val2017"):
        (tmp_path / "annotations" / f"instances_{split}.json").write_text(coco_json(["a.png"]))
    with pytest.raises(BadData, match="no images: expected a folder such as"):
        open_masks(tmp_path)
    photo("val2017/a.png")
    assert len(open_masks(tmp_path)) == 1  # the one whose images are there
    photo("train2017/a.png")
    with pytest.raises(BadData, match="several COCO annotation files"):
        open_masks(tmp_path)


def test_unknown_layouts_say_what_was_expected_and_found(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    with pytest.raises(BadData, match=r"expected images/ and masks/.*found pictures"):
        open_masks(tmp_path)
    with pytest.raises(BadData, match="found an empty folder"):
        open_masks(tmp_path / "pictures")
    with pytest.raises(BadData, match="does not exist"):
        open_masks(tmp_path / "nowhere")
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(BadData, match="is not a mask dataset"):
        open_masks(tmp_path / "a.txt")


CLASSES = {"n01": "Bird", "n02": "Bird", "n03": "Boat"}
PARTS = ("Bird Head", "Bird Wing", "Boat Sail")


@pytest.fixture
def partimagenet(photo: Callable[..., Path], tmp_path: Path) -> Path:
    """The official layout: per split a JSON with bare file names, and class folders; categories count from 0."""
    root = tmp_path / "PartImageNet"
    counts = {"train": {"n01": 4, "n03": 3}, "val": {"n02": 2}}
    for split, classes in counts.items():
        images: list[dict[str, Any]] = []
        annotations: list[dict[str, Any]] = []
        for wnid, count in classes.items():
            for i in range(count):
                name = f"{wnid}_{i}.JPEG"
                photo(f"PartImageNet/{split}/{wnid}/{name}")
                images.append({"id": len(images), "file_name": name, "width": 24, "height": 16})
                for part in [k for k, p in enumerate(PARTS) if p.startswith(CLASSES[wnid])]:
                    annotations.append(
                        {
                            "id": len(annotations),
                            "image_id": images[-1]["id"],
                            "category_id": part,
                            "iscrowd": 0,
                            "segmentation": SQUARE if part != 1 else [[3, 3, 4, 4]],  # "Bird Wing" has two points
                        }
                    )
        categories = [{"id": k, "name": p, "supercategory": p.split()[0]} for k, p in enumerate(PARTS)]
        (root / f"{split}.json").write_text(
            json.dumps({"images": images, "annotations": annotations, "categories": categories})
        )
    return root


def test_partimagenet(partimagenet: Path) -> None:
    samples = open_masks(partimagenet)
    assert len(samples) == 9
    assert samples.categories == PARTS
    assert samples.classes == ("n01", "n02", "n03")
    assert samples[0].id == "train/n01/n01_0.JPEG"
    assert samples[-1].id == "val/n02/n02_1.JPEG"
    assert [a.category for a in samples[0].annotations] == [0]  # the region of two points has no mask
    assert "train.json: 4 regions without a usable mask" in samples.notes
    assert samples[0].load().size == (24, 16)


def test_partimagenet_subset_takes_turns_between_the_classes(partimagenet: Path) -> None:
    samples = open_partimagenet(partimagenet, per_supercategory=5)
    # Bird: n01_0, n02_0, n01_1, n02_1, n01_2; Boat has only three
    assert sorted(s.path.name for s in samples) == [
        "n01_0.JPEG",
        "n01_1.JPEG",
        "n01_2.JPEG",
        "n02_0.JPEG",
        "n02_1.JPEG",
        "n03_0.JPEG",
        "n03_1.JPEG",
        "n03_2.JPEG",
    ]


def test_partimagenet_without_images(partimagenet: Path) -> None:
    (partimagenet / "val").rename(partimagenet / "elsewhere")
    with pytest.raises(BadData, match="images of val are missing: expected them in"):
        open_masks(partimagenet)
    with pytest.raises(BadData, match="is not PartImageNet"):
        open_partimagenet(partimagenet / "elsewhere")


def test_imagenet50_is_the_study_s_list() -> None:
    classes = imagenet50_classes()
    assert len(classes) == 50
    assert list(classes) == sorted(classes)
    assert next(iter(classes.items())) == ("n01601694", "Dipper")
    assert classes["n02099267"] == "Flat-Coated Retriever"


@pytest.mark.parametrize("below", ["", "train/"])
def test_imagenet50_takes_the_first_files_of_each_class(photo: Callable[..., Path], tmp_path: Path, below: str) -> None:
    for wnid in [*imagenet50_classes(), "n00000000"]:
        for i in (3, 20, 1):
            photo(f"{below}{wnid}/{wnid}_{i}.JPEG", size=(4, 4))
    samples = open_imagenet50(tmp_path, per_class=2)
    assert len(samples) == 100
    assert [s.id for s in samples[:2]] == [
        "n01601694/n01601694_1.JPEG",
        "n01601694/n01601694_20.JPEG",
    ]  # as text
    assert samples.labels == tuple(i // 2 for i in range(100))
    assert samples.classes[0] == "Dipper"
    assert samples.notes == ()
    assert len(open_imagenet50(tmp_path).notes) == 50  # every class has fewer than 100


def test_imagenet50_without_its_classes(photo: Callable[..., Path], tmp_path: Path) -> None:
    photo("n01601694/a.JPEG")
    with pytest.raises(BadData, match="49 of the 50 are missing"):
        open_imagenet50(tmp_path)
