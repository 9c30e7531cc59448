"""What is said about the images of a folder: a captions.json, or a text file beside each image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vitscope.core.errors import BadData, shorten
from vitscope.core.reading import read_json
from vitscope.data.samples import SampleList

FILE = "captions.json"
LARGEST_FILE = 1 << 30  # bytes


def read_captions(folder: Path, samples: SampleList) -> list[tuple[str, ...]] | None:
    """One or several captions for each sample, or None when the folder has none at all.

    `captions.json` maps an image's path (relative, forward slashes) to a string or a list of strings. Without it, each
    line of `photo.txt` beside `photo.jpg` is a caption of it, in a folder as in a tar file.
    """
    path = folder / FILE
    if path.exists():
        said = _from_json(path)
        found = [said.get(sample.id, ()) for sample in samples]
    else:
        found = [_lines(sample.beside(".txt")) for sample in samples]
        if not any(found):
            return None
    missing = [sample.id for sample, captions in zip(samples, found, strict=True) if not captions]
    if missing:
        raise BadData(
            f"{len(missing)} of {len(samples)} images have no caption, the first is {missing[0]}: add captions for "
            f"them to {FILE} or beside them, or leave them out"
        )
    return found


def _from_json(path: Path) -> dict[str, tuple[str, ...]]:
    content: Any = read_json(path, most=LARGEST_FILE)
    if not isinstance(content, dict):
        raise BadData(f"{path} must map image paths to captions, as in {{image: caption}}")
    said: dict[str, tuple[str, ...]] = {}
    for name, value in content.items():
        lines = [value] if isinstance(value, str) else value
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            raise BadData(f"{path}: the captions of '{shorten(name, 60)}' must be a string or a list of strings")
        said[name] = tuple(line.strip() for line in lines if line.strip())
    return said


def _lines(text: bytes) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.decode("utf-8", "replace").splitlines() if line.strip())
