"""Saying something to people: text as it is, never read as markup, whatever names and paths are in it."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from vitscope.core.errors import printable


def say(text: str, *, label: str = "", style: str = "", to_errors: bool = False) -> None:
    """One line. label: a word before it (bold, in the colour of `style`); to_errors: to standard error.

    Square brackets, colons and control characters in paths are printed, not obeyed.
    """
    console = Console(stderr=to_errors, soft_wrap=True, highlight=False, markup=False, emoji=False)
    line = Text(printable(text), style="" if label else style)
    console.print(Text(f"{label} ", style=f"bold {style}") + line if label else line)
