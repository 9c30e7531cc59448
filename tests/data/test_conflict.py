"""Images whose cues are in conflict: names tell both, and whatever is strange about them is told."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from vitscope.core.errors import BadData
from vitscope.data.conflict import cues_of, open_conflict
from vitscope.data.openers import open_dataset

Photo = Callable[..., Path]


@pytest.fixture
def root(photo: Photo, tmp_path: Path) -> Path:
    for name in ("train/cat/a.png", "train/dog/a.png", "train/bear/a.png"):
        photo(f"data/{name}")
    for name in ("cat/cat1-dog2.png", "cat/cat1-bear1.png", "dog/dog10-cat3.png", "dog/dog4-dog9.png"):
        photo(f"data/cue-conflict/{name}")
    return tmp_path / "data"


def test_names_tell_both_cues(root: Path) -> None:
    found = open_dataset(root)
    assert found.kind == "conflict"
    classes = found.train.classes  # type: ignore[attr-defined]
    assert classes == ("bear", "cat", "dog")
    told = [
        (sample.id, classes[sample.label], classes[texture])
        for sample, texture in zip(found.test, found.textures, strict=True)  # type: ignore[attr-defined]
    ]
    assert told == [
        ("cat/cat1-bear1.png", "cat", "bear"),
        ("cat/cat1-dog2.png", "cat", "dog"),
        ("dog/dog10-cat3.png", "dog", "cat"),
    ]
    assert any("1 images of data have shape and texture of one class" in note for note in found.notes)


def test_a_part_keeps_textures_with_their_images(root: Path) -> None:
    part = open_conflict(root).limit(3)
    classes = part.train.classes
    for sample, texture in zip(part.test, part.textures, strict=True):
        assert sample.id.endswith(f"-{classes[texture]}{sample.id[-5]}.png")


def test_images_and_their_bank_may_lie_apart(root: Path) -> None:
    apart = open_conflict(root / "cue-conflict", root / "train")
    assert len(apart.test) == 3
    with pytest.raises(BadData, match="name them as the bank"):
        open_conflict(root / "cue-conflict")


@pytest.mark.parametrize(
    ("stem", "cues"),
    [
        ("cat1-dog2", ("cat", "dog")),
        ("cat-dog", ("cat", "dog")),
        ("n0123-n01235", ("n0123", "n0123")),  # a class may end in digits
        ("t-rex7-cat1", ("t-rex", "cat")),
        ("cat1-t-rex7", ("cat", "t-rex")),
        ("cat1", None),
        ("cat1-", None),
        ("-dog1", None),
        ("cat1-wolf2", None),
        ("catx-dog", None),
        ("cat٣-dog1", None),
        ("", None),
    ],
)
def test_how_a_name_is_read(stem: str, cues: tuple[str, str] | None) -> None:
    assert cues_of(stem, {"cat", "dog", "n0123", "t-rex"}) == cues


def test_strange_names_are_left_out_and_told(root: Path, photo: Photo) -> None:
    for name in ("cat/holiday.png", "cat/cat1-wolf1.png", "cat/cat1-dog2\x1b[31m.png"):
        photo(f"data/cue-conflict/{name}")
    with open(os.fsencode(root) + b"/cue-conflict/cat/cat1-\xff.png", "wb") as file:
        file.write(b"x")
    found = open_conflict(root)
    assert len(found.test) == 3
    note = next(note for note in found.notes if "name no two classes" in note)
    assert note.startswith("4 images")
    assert note.isprintable()


@pytest.mark.parametrize("missing", ["cue-conflict", "train", "both"])
def test_what_is_missing_is_told(root: Path, missing: str) -> None:
    for name in ("cue-conflict", "train") if missing == "both" else (missing,):
        (root / name).rename(root.parent / name)
    with pytest.raises(BadData) as told:
        open_conflict(root)
    assert str(told.value).isprintable()


def test_nothing_in_conflict(root: Path, photo: Photo) -> None:
    (root / "cue-conflict").rename(root / "old")
    photo("data/cue-conflict/cat/photo.png")
    with pytest.raises(BadData, match=r"no image .* two cues in conflict .*first: cat/photo.png"):
        open_conflict(root)
    with pytest.raises(BadData, match="is not a folder"):
        open_conflict(root / "nowhere")
    with pytest.raises(BadData, match="no classes"):
        open_conflict(root, root / "train/cat")


def test_a_link_that_leads_round_does_no_harm(root: Path) -> None:
    (root / "cue-conflict/cat/loop").symlink_to(root / "cue-conflict")
    assert len(open_conflict(root).test) >= 3
