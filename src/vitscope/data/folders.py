"""Folders of images: flat, or one subfolder per class; or a text file that lists paths."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from vitscope.data.decode import EXTENSIONS
from vitscope.data.samples import Sample, SampleList
from vitscope.errors import BadData

LIST_SUFFIXES = (".txt", ".lst", ".list")


def open_images(path: Path | str) -> SampleList:
    """The images of a folder (with all its subfolders), or of a text file with one path per line.

    Labels: a folder without images of its own, whose images lie in two or more subfolders, is read as one class per
    subfolder. Otherwise the images have no labels. Hidden files and folders are passed over.
    """
    path = Path(path).expanduser()
    if path.is_file():
        if path.suffix.lower() in LIST_SUFFIXES:
            return _from_list(path)
        raise BadData(
            f"{path} is a file, not a folder of images: give the folder it is in, or a .txt file that lists paths"
        )
    files = list_images(path)
    if not files:
        raise BadData(
            f"there are no images in {path}: expected files such as .jpg, .png or .webp in it or its subfolders"
        )
    classes = sorted({file.parts[0] for file in files}) if all(len(file.parts) > 1 for file in files) else []
    label = {name: i for i, name in enumerate(classes)} if len(classes) > 1 else {}
    samples = (Sample(safe_id(file), path / file, label.get(file.parts[0])) for file in files)
    return SampleList(samples, classes=[safe_id(name) for name in label], origin=str(path))


def list_files(root: Path, wanted: Callable[[str], bool]) -> list[Path]:
    """Regular files under `root` whose names are wanted, as paths relative to it, sorted by their parts.

    Links are followed, but never into a folder that contains them. A folder that cannot be read is an error:
    leaving it out silently would change what is measured.
    """
    if not root.exists():
        raise BadData(f"{root} does not exist: check the path")
    if not root.is_dir():
        raise BadData(f"{root} is not a folder: give the folder that holds the files")

    def walk(folder: Path, relative: tuple[str, ...], ancestors: frozenset[tuple[int, int]]) -> Iterator[Path]:
        try:
            status = folder.stat()
            entries = list(os.scandir(folder))
        except PermissionError:
            raise BadData(f"the folder {folder} cannot be read: permission denied, change its permissions") from None
        except OSError as error:
            raise BadData(f"the folder {folder} cannot be read: {error.strerror}") from None
        identity = (status.st_dev, status.st_ino)
        if identity in ancestors:
            return
        for entry in entries:
            if entry.name.startswith(".") or entry.name == "__MACOSX":
                continue
            try:
                is_folder, is_file = entry.is_dir(), entry.is_file()
            except OSError:  # a link to itself
                continue
            if is_folder:
                yield from walk(Path(entry.path), (*relative, entry.name), ancestors | {identity})
            elif is_file and wanted(entry.name):
                yield Path(*relative, entry.name)

    return sorted(walk(root, (), frozenset()), key=lambda file: file.parts)


def list_images(root: Path) -> list[Path]:
    """Image files under `root`, relative to it, sorted."""
    return list_files(root, lambda name: os.path.splitext(name)[1].lower() in EXTENSIONS)


def safe_id(path: Path | str) -> str:
    """A relative path as printable text with forward slashes, whatever bytes file names are made of.

    >>> safe_id(Path("cats") / "tom\\x1b.jpg")
    'cats/tom\\\\x1b.jpg'
    """
    text = os.fsencode(path).decode("utf-8", "backslashreplace").replace(os.sep, "/")
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _from_list(path: Path) -> SampleList:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise BadData(f"{path} is not a text file: expected one image path per line") from None
    except OSError as error:
        raise BadData(f"{path} cannot be read: {error.strerror}") from None
    names = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not names:
        raise BadData(f"{path} lists no images: expected one image path per line")
    if repeated := [name for name, times in Counter(names).items() if times > 1]:
        raise BadData(f"{path} lists {safe_id(repeated[0])} more than once: list each image once")
    samples = [Sample(safe_id(name), path.parent / name) for name in names]
    missing = [sample.id for sample in samples if not sample.path.is_file()]
    if missing:
        raise BadData(
            f"{len(missing)} of the {len(names)} images listed in {path} do not exist (first: {missing[0]}): "
            f"paths are relative to the list's folder"
        )
    return SampleList(samples, origin=str(path))
