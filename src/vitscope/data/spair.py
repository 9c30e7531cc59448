"""Keypoint pairs: SPair-71k in its official layout, or a plain JSON of pairs.

SPair-71k: `PairAnnotation/<split>/<pair>.json`, `JPEGImages/<category>/*.jpg`, `ImageAnnotation/<category>/*.json`
and `Layout/<large|small>/<split>.txt`, whose lines are `000001-2008_006481-2009_001715:aeroplane`. Copies that were
unpacked where a colon is not allowed in names have `_` in its place.

Plain JSON: a list, or {"pairs": list}, of {"source": path, "target": path, "source_points": [[x, y], ...],
"target_points": [[x, y], ...]} and optionally "category" and "target_box": [x1, y1, x2, y2]. Paths are relative to
the file. Points are in pixels of the upright image, x to the right, y down.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vitscope.data.folders import safe_id
from vitscope.data.keypoints import KeypointBuilder, KeypointSet
from vitscope.data.layouts import expect, found_in, read_json, read_lines
from vitscope.errors import BadData


def open_keypoints(path: Path | str, split: str = "test") -> KeypointSet:
    """SPair-71k (a folder) or a plain JSON of pairs (a file)."""
    path = Path(path).expanduser()
    if path.is_file():
        return open_pairs_json(path)
    return open_spair(path, split)


def open_spair(root: Path | str, split: str = "test", layout: str = "large") -> KeypointSet:
    """The pairs of a split (trn, val, test), in the order of its layout file."""
    root = Path(root).expanduser()
    expect(root, "SPair-71k", [f"PairAnnotation/{split}/", "JPEGImages/"])
    folder = root / "PairAnnotation" / split
    listing = root / "Layout" / layout / f"{split}.txt"
    files = [_pair_file(folder, name) for name in read_lines(listing)] if listing.is_file() else _all(folder)
    builder = KeypointBuilder(root / "JPEGImages")
    for file in files:
        record = read_json(file)
        try:
            category = _bare(record["category"])
            builder.add(
                file.stem,
                category,
                f"{category}/{_bare(record['src_imname'])}",
                f"{category}/{_bare(record['trg_imname'])}",
                record["src_kps"],
                record["trg_kps"],
                record["trg_bndbox"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise BadData(f"{file} is not a pair of SPair-71k: {type(error).__name__} {error}") from None
    present = {entry.name for entry in (root / "JPEGImages").iterdir() if entry.is_dir()}
    return builder.build(f"SPair-71k {split} of {root}", categories=present)


def open_pairs_json(path: Path | str) -> KeypointSet:
    """A plain JSON of pairs. Without a target box, the whole target image is the box."""
    path = Path(path).expanduser()
    content = read_json(path)
    records = content.get("pairs") if isinstance(content, dict) else content
    if not isinstance(records, list):
        raise BadData(f"{path} is not a list of keypoint pairs: expected a list, or an object with 'pairs'")
    builder = KeypointBuilder(path.parent)
    for number, record in enumerate(records, start=1):
        try:
            builder.add(
                f"{number:06}",
                str(record.get("category", "all")),
                str(record["source"]),
                str(record["target"]),
                record["source_points"],
                record["target_points"],
                record.get("target_box"),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadData(f"pair {number} in {path} is unusable: {type(error).__name__} {error}") from None
    return builder.build(f"pairs of {path}", categories=())


def _bare(name: Any) -> str:
    """A name that cannot lead out of its folder."""
    if not isinstance(name, str) or name in ("", ".", "..") or set(name) & set("/\\\0"):
        raise ValueError(f"{str(name)[:60]!r} is not the name of a file")
    return name


def _pair_file(folder: Path, name: str) -> Path:
    for file in (folder / f"{name}.json", folder / f"{name.replace(':', '_')}.json"):
        if file.is_file():
            return file
    raise BadData(f"the pair {safe_id(name)} is listed but {folder / name}.json does not exist: complete the dataset")


def _all(folder: Path) -> list[Path]:
    files = sorted(folder.glob("*.json"))
    if not files:
        raise BadData(f"there are no pairs in {folder}: expected *.json; found {found_in(folder)}")
    return files
