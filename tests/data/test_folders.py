"""Folders and lists of images, and what is said about those that are none."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from vitscope.core.errors import BadData
from vitscope.data.folders import open_images
from vitscope.data.samples import safe_id


def test_flat_folder(photo: Callable[..., Path], tmp_path: Path) -> None:
    for name in ("b.JPG", "a.png", "c.jpeg", ".hidden.png", "deep/er/d.webp", "__MACOSX/e.png"):
        photo(f"set/{name}")
    (tmp_path / "set" / "notes.txt").write_text("no image")
    samples = open_images(tmp_path / "set")
    assert [s.id for s in samples] == ["a.png", "b.JPG", "c.jpeg", "deep/er/d.webp"]
    assert samples.classes == ()
    assert set(samples.labels) == {None}


def test_class_folders(photo: Callable[..., Path], tmp_path: Path) -> None:
    for name in ("cat/1.png", "cat/x/2.png", "ant-bear/1.png", "ant/1.png"):
        photo(f"set/{name}")
    (tmp_path / "set" / "empty").mkdir()
    samples = open_images(str(tmp_path / "set"))
    assert samples.classes == ("ant", "ant-bear", "cat")
    assert [(s.id, s.label) for s in samples] == [
        ("ant/1.png", 0),
        ("ant-bear/1.png", 1),
        ("cat/1.png", 2),
        ("cat/x/2.png", 2),
    ]


def test_one_subfolder_is_no_class(photo: Callable[..., Path], tmp_path: Path) -> None:
    photo("set/images/1.png")
    assert open_images(tmp_path / "set").labels == (None,)


def test_an_image_beside_the_subfolders_means_no_classes(photo: Callable[..., Path], tmp_path: Path) -> None:
    for name in ("a/1.png", "b/1.png", "1.png"):
        photo(f"set/{name}")
    assert open_images(tmp_path / "set").labels == (None, None, None)


@pytest.mark.parametrize("folder", ["empty", "only_text"])
def test_folder_without_images(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    if folder == "only_text":
        (tmp_path / folder / "a.txt").write_text("x")
    with pytest.raises(BadData, match="no images in"):
        open_images(tmp_path / folder)


def test_missing_folder_and_file_for_a_folder(photo: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(BadData, match="does not exist"):
        open_images(tmp_path / "nowhere")
    with pytest.raises(BadData, match="is a file, not a folder"):
        open_images(photo("a.jpg"))


@pytest.mark.parametrize("denied", ["set", "b"])
def test_folder_without_permission(
    photo: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, denied: str
) -> None:
    photo("set/a/1.png")
    photo("set/b/1.png")
    real = os.scandir

    def scandir(path: os.PathLike[str]) -> object:
        if Path(path).name == denied:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(BadData, match=f"{denied} cannot be read: permission denied"):
        open_images(tmp_path / "set")


def test_links_are_followed_but_not_in_circles(photo: Callable[..., Path], tmp_path: Path) -> None:
    photo("elsewhere/1.png")
    photo("set/a/1.png")
    (tmp_path / "set" / "b").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "set" / "a" / "up").symlink_to(tmp_path / "set")
    (tmp_path / "set" / "a" / "broken.png").symlink_to(tmp_path / "gone.png")
    (tmp_path / "set" / "a" / "itself.png").symlink_to(tmp_path / "set" / "a" / "itself.png")
    os.mkfifo(tmp_path / "set" / "a" / "pipe.png")
    assert [s.id for s in open_images(tmp_path / "set")] == ["a/1.png", "b/1.png"]


def test_file_names_of_any_bytes(tmp_path: Path, photo: Callable[..., Path]) -> None:
    source = photo("a.png").read_bytes()
    (tmp_path / "set").mkdir()
    for name in (b"caf\xe9.png", b"line\nbreak.png", "größe.png".encode()):
        Path(os.fsdecode(os.fsencode(tmp_path / "set") + b"/" + name)).write_bytes(source)
    samples = open_images(tmp_path / "set")
    assert sorted(s.id for s in samples) == sorted(["caf\\xe9.png", "line\\nbreak.png", "größe.png"])
    assert all(s.load().mode == "RGB" for s in samples)
    assert len(samples.digest) == 16


def test_safe_id_is_the_identity_for_plain_names() -> None:
    assert safe_id("a/b c.jpg") == "a/b c.jpg"


def test_text_list_keeps_its_order(photo: Callable[..., Path], tmp_path: Path) -> None:
    photo("x/2.png")
    absolute = photo("y/1.png")
    (tmp_path / "list.txt").write_text(f"\ufeff# two images\nx/2.png\n\n  {absolute}  \n", encoding="utf-8")
    samples = open_images(tmp_path / "list.txt")
    assert [s.id for s in samples] == ["x/2.png", str(absolute)]
    assert [s.load().size for s in samples] == [(24, 16)] * 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a.png\nnowhere.png\n", "1 of the 2 images.*first: nowhere.png"),
        (b"\n# nothing\n", "lists no images"),
        (b"a.png\nb.png\na.png\n", "a.png more than once"),
        (b"\xff\xfe\x00\x00", "not a text in UTF-8"),
    ],
)
def test_bad_lists(photo: Callable[..., Path], tmp_path: Path, content: bytes, said: str) -> None:
    photo("a.png")
    photo("b.png")
    (tmp_path / "list.txt").write_bytes(content)
    with pytest.raises(BadData, match=said):
        open_images(tmp_path / "list.txt")
