"""Official dataset layouts, checked before any work starts: what was expected, and what was found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vitscope.data.folders import safe_id
from vitscope.errors import BadData


def expect(root: Path, dataset: str, expected: Sequence[str]) -> None:
    """Raises BadData unless all `expected` paths (a trailing slash means a folder) exist under root."""
    if not root.exists():
        raise BadData(f"{root} does not exist: {dataset} was to be read from there")
    missing = [name for name in expected if not _is_there(root / name, name.endswith("/"))]
    if missing:
        raise BadData(
            f"{root} is not {dataset}: expected {', '.join(expected)}; {', '.join(missing)} is missing; "
            f"found {found_in(root)}"
        )


def found_in(root: Path, most: int = 8) -> str:
    """The first names in a folder, for a message."""
    if not root.is_dir():
        return "a file"
    try:
        names = sorted(safe_id(entry.name) + ("/" if entry.is_dir() else "") for entry in root.iterdir())
    except OSError as error:
        return f"a folder that cannot be read ({error.strerror})"
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more if names else "an empty folder"


def read_lines(path: Path) -> list[str]:
    """The lines of a text file, stripped, without empty ones."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise BadData(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadData(f"{path} is not a text file") from None
    return [line.strip() for line in lines if line.strip()]


def read_json(path: Path) -> Any:
    """The content of a JSON file."""
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        raise BadData(f"the annotation file {path} does not exist: check the path") from None
    except OSError as error:
        raise BadData(f"the annotation file {path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise BadData(f"{path} is not valid JSON: {str(error)[:80]}") from None


def _is_there(path: Path, folder: bool) -> bool:
    try:
        return path.is_dir() if folder else path.is_file()
    except OSError:
        return False
