"""Progress of long work: a bar on a terminal, plain lines elsewhere, silence for libraries."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Column
from rich.text import Text

from vitscope.core.errors import printable
from vitscope.core.say import level

LINE_EVERY = 10.0  # seconds between plain lines


Count = Callable[[int], None]  # so many more are done


class Advance(Protocol):
    """So many more are done; and, if it is said, what is being done from here on."""

    def __call__(self, n: int, /, doing: str = "") -> None: ...


Progress = Callable[[str, int], AbstractContextManager[Advance]]


def nothing(n: int, /, doing: str = "") -> None:
    """Nobody wants to know."""


@contextmanager
def silent(title: str, total: int) -> Iterator[Advance]:
    """No progress at all."""
    yield nothing


@contextmanager
def shown(title: str, total: int) -> Iterator[Advance]:
    """A bar on a terminal; otherwise a plain line now and then. Goes to standard error, unless all is to be quiet."""
    console = Console(stderr=True)
    if level() == "quiet":
        yield nothing
    elif console.is_terminal and level() != "verbose":
        words = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
        with Bar(words, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console) as bar:
            task = bar.add_task(title, total=total)

            def advance(n: int, /, doing: str = "") -> None:
                bar.update(task, advance=n, description=Text(printable(doing)).plain if doing else None)

            yield advance
    else:
        lines = _Lines(title, total)
        yield lines
        lines.finish()


class _Lines:
    """A line every ten seconds; if all is to be told, also one for each thing that was done, with its time."""

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total = title, total
        self.done = 0
        self.doing = ""
        self.start = self.last = self.began = time.monotonic()

    def __call__(self, n: int, /, doing: str = "") -> None:
        self.done += n
        now = time.monotonic()
        if doing:
            self._close(now)
            self.doing, self.began = printable(doing), now
        if now - self.last >= LINE_EVERY or (n and self.done >= self.total):
            rate = self.done / max(now - self.start, 1e-9)
            what = f" - {self.doing}" if self.doing else ""
            self._print(f"{self.title}: {self.done}/{self.total} ({rate:.1f} per second){what}")
            self.last = now

    def finish(self) -> None:
        self._close(time.monotonic())

    def _close(self, now: float) -> None:
        if self.doing and level() == "verbose":
            self._print(f"{self.doing}: {now - self.began:.1f} s")

    def _print(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)
