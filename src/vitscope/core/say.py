"""Saying something to people: text as it is, never read as markup, whatever names and paths are in it."""

from __future__ import annotations

from typing import Literal

from rich.console import Console, RenderableType
from rich.text import Text

from vitscope.core.errors import printable

Level = Literal["quiet", "normal", "verbose"]
Figures = Literal["none", "page", "all"]  # how much is drawn: nothing, the page's images, or figures for papers too
_level: Level = "normal"


def set_level(level: Level) -> None:
    """Of everything that this process says from here on. quiet: errors alone; verbose: every step and its time."""
    global _level
    _level = level


def level() -> Level:
    return _level


def say(text: str, *, label: str = "", style: str = "", to_errors: bool = False) -> None:
    """One line. label: a word before it (bold, in the colour of `style`); to_errors: to standard error.

    Square brackets, colons and control characters in paths are printed, not obeyed.
    """
    if _level == "quiet" and not to_errors:
        return
    console = Console(stderr=to_errors, soft_wrap=True, highlight=False, markup=False, emoji=False)
    line = Text(printable(text), style="" if label else style)
    console.print(Text(f"{label} ", style=f"bold {style}") + line if label else line)


def show(*tables: RenderableType) -> None:
    """Tables that sum up a run: they are in its files too."""
    if _level != "quiet":
        for table in tables:
            Console(markup=False, highlight=False).print(table)
