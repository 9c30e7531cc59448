"""DAVIS in its official layout with its oddities, and plain folders of frames."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vitscope.core.errors import BadData
from vitscope.data.davis import open_davis, open_videos

SIZE = (12, 20)  # height, width


def write_frame(path: Path, grey: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = SIZE if grey else (*SIZE, 3)
    Image.fromarray(np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)).save(path)


def write_mask(path: Path, values: np.ndarray, indexed: bool = True) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(values.astype(np.uint8))
    if indexed:
        image.putpalette([c for i in range(256) for c in (i, 255 - i, (i * 7) % 256)])
    image.save(path)


def mask(**rows: int) -> np.ndarray:
    """mask(r3=2): row 3 belongs to object 2."""
    values = np.zeros(SIZE, np.uint8)
    for row, label in rows.items():
        values[int(row[1:])] = label
    return values


@pytest.fixture
def davis(tmp_path: Path) -> Path:
    """`late` has two objects, a third that appears later, void labels and a grey frame; `old` is of 2016."""
    for i in range(4):
        write_frame(tmp_path / f"JPEGImages/480p/late/{i:05}.jpg", grey=i == 2)
        rows = {"r0": 255, "r2": 1, "r4": 2} | ({"r6": 3} if i >= 2 else {})
        write_mask(tmp_path / f"Annotations/480p/late/{i:05}.png", mask(**rows))
    for i in range(3):
        write_frame(tmp_path / f"JPEGImages/480p/old/{i:05}.jpg")
        write_mask(tmp_path / f"Annotations/480p/old/{i:05}.png", mask(r5=255), indexed=False)
    (tmp_path / "ImageSets/2017").mkdir(parents=True)
    (tmp_path / "ImageSets/2017/val.txt").write_text("late\nold\n\n")
    return tmp_path


def test_official_layout(davis: Path) -> None:
    videos = open_videos(davis)
    assert [(s.name, len(s), s.size, s.binary, s.is_evaluable) for s in videos.sequences] == [
        ("late", 4, SIZE, False, True),
        ("old", 3, SIZE, True, True),
    ]
    assert videos.notes == ()
    assert videos.digest == open_davis(davis).digest


def test_void_is_background_and_told_apart(davis: Path) -> None:
    late, old = open_davis(davis).sequences
    labels, void = late.labels(0), late.void(0)
    assert labels is not None
    assert void is not None
    assert labels[:, 0].tolist() == [0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0]
    assert np.flatnonzero(void.all(axis=1)).tolist() == [0]
    labels, void = old.labels(0), old.void(0)
    assert labels is not None
    assert void is not None
    assert labels[:, 0].tolist() == [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    assert not void.any()


def test_an_object_that_appears_late_is_not_followed(davis: Path) -> None:
    late = open_davis(davis).sequences[0]
    assert late.objects == 2
    labels = late.labels(3)
    assert labels is not None
    assert labels.max() == 3
    assert open_davis(davis).sequences[1].objects == 1


def test_grey_frame_is_rgb(davis: Path) -> None:
    assert open_davis(davis).sequences[0].frame(2).mode == "RGB"


def test_only_the_first_frame_annotated_as_in_test_sets(davis: Path) -> None:
    for i in (1, 2, 3):
        (davis / f"Annotations/480p/late/{i:05}.png").unlink()
    videos = open_davis(davis)
    assert videos.notes == ("only the first frame is annotated in late",)
    assert not videos.sequences[0].is_evaluable
    assert videos.sequences[0].labels(1) is None
    assert videos.sequences[0].void(1) is None


def test_lists_of_2016(davis: Path) -> None:
    (davis / "ImageSets/2017/val.txt").unlink()
    (davis / "ImageSets/480p").mkdir()
    lines = [f"/JPEGImages/480p/old/{i:05}.jpg /Annotations/480p/old/{i:05}.png" for i in range(3)]
    (davis / "ImageSets/480p/val.txt").write_text("\n".join(lines))
    assert [s.name for s in open_davis(davis).sequences] == ["old"]


def spoil(root: Path, how: str) -> None:
    frames, masks = root / "JPEGImages/480p/late", root / "Annotations/480p/late"
    if how == "no annotations":
        (root / "Annotations/480p").rename(root / "Annotations/full")
    elif how == "no list":
        (root / "ImageSets/2017/val.txt").unlink()
    elif how == "empty list":
        (root / "ImageSets/2017/val.txt").write_text("\n")
    elif how == "unknown sequence":
        (root / "ImageSets/2017/val.txt").write_text("bear\n")
    elif how == "escaping name":
        (root / "ImageSets/2017/val.txt").write_text("..\n")
    elif how == "missing mask":
        (masks / "00002.png").unlink()
    elif how == "mask without frame":
        (frames / "00003.jpg").unlink()
    elif how == "mask of another size":
        write_mask(masks / "00001.png", np.zeros((20, 12)))
    elif how == "one frame":
        for i in (1, 2, 3):
            (frames / f"{i:05}.jpg").unlink()
            (masks / f"{i:05}.png").unlink()
    elif how == "empty first mask":
        write_mask(masks / "00000.png", mask())
    elif how == "broken frame":
        (frames / "00001.jpg").write_bytes(b"x")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (
            "no annotations",
            "is not DAVIS: expected .*Annotations/480p/ is missing; found Annotations/, ImageSets/",
        ),
        ("no list", "ImageSets/2017/val.txt is missing"),
        ("empty list", "lists no sequences"),
        ("unknown sequence", "sequence bear is listed but"),
        ("escaping name", "outside its folder"),
        ("missing mask", "1 frames of late have no mask, the first is 00002"),
        ("mask without frame", "00003.png has no frame"),
        ("mask of another size", "00001.png is 12x20 but the first frame of late is 20x12"),
        ("one frame", "late has 1 frame: following an object needs two"),
        ("empty first mask", "first mask of late is empty"),
        ("broken frame", "00001.jpg: is not an image"),
    ],
)
def test_what_is_wrong_is_said(davis: Path, how: str, said: str) -> None:
    spoil(davis, how)
    with pytest.raises(BadData, match=said):
        open_videos(davis)


@pytest.mark.parametrize("inner", ["", "frames/"])
def test_plain_folder_in_the_order_of_numbers(tmp_path: Path, inner: str) -> None:
    for i in (1, 2, 10):
        write_frame(tmp_path / f"clip/{inner}frame{i}.png")
    write_mask(tmp_path / "clip/mask.png", mask(r1=1, r2=2))
    (sequence,) = open_videos(tmp_path / "clip").sequences
    assert [path.stem for path in sequence.frames] == ["frame1", "frame2", "frame10"]
    assert sequence.objects == 2
    assert sequence.name == "clip"
    assert [mask is None for mask in sequence.masks] == [False, True, True]


def test_plain_folder_without_mask(photo: Callable[..., Path], tmp_path: Path) -> None:
    photo("clip/1.png")
    with pytest.raises(BadData, match=r"expected DAVIS .* or frames with mask.png; found 1.png"):
        open_videos(tmp_path / "clip")
    with pytest.raises(BadData, match="found nothing"):
        open_videos(tmp_path / "nowhere")
