"""Official dataset layouts, checked before any work starts: what was expected, and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vitscope.core.errors import BadData
from vitscope.data.samples import safe_id


def expect(root: Path, dataset: str, expected: Sequence[str]) -> None:
    """Raises BadData unless all `expected` paths (a trailing slash means a folder) exist under root."""
    if not root.exists():
        raise BadData(f"{root} does not exist: {dataset} was to be read from there")
    missing = [name for name in expected if not is_there(root / name, name.endswith("/"))]
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


def is_there(path: Path, folder: bool) -> bool:
    """Whether a path is a folder, or a file."""
    try:
        return path.is_dir() if folder else path.is_file()
    except OSError:
        return False
