"""Folders of images: flat, or one subfolder per class; or a text file that lists paths."""

from __future__ import annotations

import os
from collections import Counter
from operator import attrgetter
from pathlib import Path

from vitscope.core.errors import BadData, shorten
from vitscope.core.reading import path_problem, read_lines, user_path
from vitscope.data.decode import EXTENSIONS
from vitscope.data.samples import ListedFiles, Sample, SampleList, safe_id
from vitscope.data.shards import open_shards, shards_in

LIST_SUFFIXES = (".txt", ".lst", ".list")
LARGEST_LIST = 64 << 20  # bytes: the paths of a million images
DEEPEST = 64  # folders in folders
IMAGES = tuple(EXTENSIONS)


def open_images(path: Path | str) -> SampleList:
    """The images of a folder (with all its subfolders), or of a text file with one path per line.

    Labels: a folder without images of its own, whose images lie in two or more subfolders, is read as one class per
    subfolder. Otherwise the images have no labels. Hidden files and folders are passed over. A folder of tar files
    without images beside them is read as WebDataset's shards (`data/shards.py`).
    """
    path = user_path(path)
    if path.is_file():
        if path.suffix.lower() in LIST_SUFFIXES:
            return _from_list(path)
        raise BadData(
            f"{path} is a file, not a folder of images: give the folder it is in, or a .txt file that lists paths"
        )
    names, prints = listed_images(path)
    if not names:
        if shards := shards_in(path):
            return open_shards(path, shards)
        raise BadData(
            f"there are no images in {path}: expected files such as .jpg, .png or .webp in it or its subfolders, or "
            "tar files of them"
        )
    tops = [name.partition(os.sep)[0] if os.sep in name else "" for name in names]
    classes = sorted(set(tops)) if all(tops) else []
    label = {name: i for i, name in enumerate(classes)} if len(classes) > 1 else {}
    files = ListedFiles(path, names, prints, [label[top] for top in tops] if label else None)
    return SampleList(files, classes=[safe_id(name) for name in label], origin=str(path))


def listed_images(root: Path) -> tuple[list[str], list[str]]:
    """Image files under `root`: their relative paths, sorted part by part, and fingerprints.

    Links are followed, but never into a folder that contains them. A folder that cannot be read is an error:
    leaving it out silently would change what is measured.
    """
    if not root.exists():
        raise BadData(f"{root} does not exist: check the path")
    if not root.is_dir():
        raise BadData(f"{root} is not a folder: give the folder that holds the files")
    names: list[str] = []
    fingerprints: list[str] = []

    def walk(folder: str, before: str, ancestors: tuple[tuple[int, int], ...]) -> None:
        if len(ancestors) > DEEPEST:
            raise BadData(f"folders in {root} are nested more than {DEEPEST} deep: give the one that is meant")
        try:
            status = os.stat(folder)
            entries = sorted(os.scandir(folder), key=attrgetter("name"))
        except PermissionError:
            raise BadData(f"the folder {folder} cannot be read: permission denied, change its permissions") from None
        except OSError as error:
            raise BadData(f"the folder {folder} cannot be read: {error.strerror}") from None
        identity = (status.st_dev, status.st_ino)
        if identity in ancestors:
            return
        for entry in entries:
            name = entry.name
            if name.startswith(".") or name == "__MACOSX":
                continue
            try:
                is_folder = entry.is_dir()
                if not is_folder and name.lower().endswith(IMAGES) and entry.is_file():
                    about = entry.stat()
                    names.append(before + name)
                    fingerprints.append(f"{about.st_size}@{about.st_mtime_ns}")
            except OSError:  # a link to itself
                continue
            if is_folder:
                walk(entry.path, f"{before}{name}{os.sep}", (*ancestors, identity))

    walk(str(root), "", ())
    return names, fingerprints


def list_images(root: Path) -> list[Path]:
    """Image files under `root`, relative to it, sorted part by part."""
    return [Path(name) for name in listed_images(root)[0]]


def _from_list(path: Path) -> SampleList:
    """Paths may be absolute: a list is somebody's choice among the images of this machine."""
    names = [line for line in read_lines(path, most=LARGEST_LIST) if not line.startswith("#")]
    if not names:
        raise BadData(f"{path} lists no images: expected one image path per line")
    if repeated := [name for name, times in Counter(names).items() if times > 1]:
        raise BadData(f"{path} lists {safe_id(repeated[0])} more than once: list each image once")
    if odd := next((name for name in names if path_problem(name)), None):
        raise BadData(f"{path} lists '{shorten(odd, 60)}', which {path_problem(odd)}: expected one image path per line")
    samples = [Sample(safe_id(name), path.parent / name) for name in names]
    missing = [sample.id for sample in samples if not sample.path.is_file()]
    if missing:
        raise BadData(
            f"{len(missing)} of the {len(names)} images listed in {path} do not exist (first: {missing[0]}): "
            f"paths are relative to the list's folder"
        )
    return SampleList(samples, origin=str(path))
