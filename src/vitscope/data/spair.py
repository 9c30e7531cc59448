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

from vitscope.core.errors import BadData, shorten
from vitscope.core.reading import SMALL, path_inside, read_json, read_lines, told, user_path
from vitscope.data.keypoints import KeypointBuilder, KeypointSet
from vitscope.data.layouts import expect, found_in
from vitscope.data.samples import safe_id

LARGEST = 512 << 20  # bytes of a JSON of pairs
LARGEST_LIST = 64 << 20  # bytes of a list of pairs


def open_keypoints(path: Path | str, split: str = "test") -> KeypointSet:
    """SPair-71k (a folder) or a plain JSON of pairs (a file)."""
    path = user_path(path)
    if path.is_file():
        return open_pairs_json(path)
    return open_spair(path, split)


def open_spair(root: Path | str, split: str = "test", layout: str = "large") -> KeypointSet:
    """The pairs of a split (trn, val, test), in the order of its layout file."""
    root = user_path(root)
    expect(root, "SPair-71k", [f"PairAnnotation/{split}/", "JPEGImages/"])
    folder = root / "PairAnnotation" / split
    listing = root / "Layout" / layout / f"{split}.txt"
    if listing.is_file():
        files = [_pair_file(folder, name, listing) for name in read_lines(listing, most=LARGEST_LIST)]
    else:
        files = _all(folder)
    builder = KeypointBuilder(root / "JPEGImages", root)
    for file in files:
        record = read_json(file, most=SMALL)
        with told(f"{file} is not a pair of SPair-71k"):
            category = _bare(record["category"], file)
            builder.add(
                file.stem,
                category,
                f"{category}/{_bare(record['src_imname'], file)}",
                f"{category}/{_bare(record['trg_imname'], file)}",
                record["src_kps"],
                record["trg_kps"],
                record["trg_bndbox"],
            )
    present = {entry.name for entry in (root / "JPEGImages").iterdir() if entry.is_dir()}
    return builder.build(f"SPair-71k {split} of {root}", categories=present)


def open_pairs_json(path: Path | str) -> KeypointSet:
    """A plain JSON of pairs. Without a target box, the whole target image is the box."""
    path = user_path(path)
    content = read_json(path, most=LARGEST)
    records = content.get("pairs") if isinstance(content, dict) else content
    if not isinstance(records, list):
        raise BadData(f"{path} is not a list of keypoint pairs: expected a list, or an object with 'pairs'")
    builder = KeypointBuilder(path.parent, path)
    for number in range(1, len(records) + 1):
        record, records[number - 1] = records[number - 1], None  # what is read need not be kept twice
        with told(f"pair {number} in {path} is unusable"):
            builder.add(
                f"{number:06}",
                shorten(record.get("category", "all")),
                record["source"],
                record["target"],
                record["source_points"],
                record["target_points"],
                record.get("target_box"),
            )
    return builder.build(f"pairs of {path}", categories=())


def _bare(name: Any, source: Path) -> str:
    """The name of a file or folder, without a path."""
    if path_inside(Path(), name, source=source).name != name:
        raise BadData(f"{source} has '{shorten(name, 60)}' where the name of a file should be")
    return str(name)


def _pair_file(folder: Path, name: str, source: Path) -> Path:
    for spelled in (name, name.replace(":", "_")):
        file = folder / f"{_bare(f'{spelled}.json', source)}"
        if file.is_file():
            return file
    raise BadData(f"the pair {safe_id(name)} is listed but {folder / name}.json does not exist: complete the dataset")


def _all(folder: Path) -> list[Path]:
    files = sorted(folder.glob("*.json"))
    if not files:
        raise BadData(f"there are no pairs in {folder}: expected *.json; found {found_in(folder)}")
    return files
