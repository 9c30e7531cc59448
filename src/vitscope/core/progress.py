"""Progress of long work: a bar on a terminal, plain lines elsewhere, silence for libraries."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

Advance = Callable[[int], None]
Progress = Callable[[str, int], AbstractContextManager[Advance]]

LINE_EVERY = 10.0  # seconds between plain lines


@contextmanager
def silent(title: str, total: int) -> Iterator[Advance]:
    """No progress at all."""
    yield lambda _n: None


@contextmanager
def shown(title: str, total: int) -> Iterator[Advance]:
    """A bar on a terminal; otherwise a plain line now and then. Goes to standard error."""
    console = Console(stderr=True)
    if console.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Bar(*columns, console=console) as bar:
            task = bar.add_task(title, total=total)
            yield lambda n: bar.advance(task, n)
    else:
        yield _Lines(title, total)


class _Lines:
    def __init__(self, title: str, total: int) -> None:
        self.title, self.total = title, total
        self.done = 0
        self.start = self.last = time.monotonic()

    def __call__(self, n: int) -> None:
        self.done += n
        now = time.monotonic()
        if now - self.last >= LINE_EVERY or self.done >= self.total:
            rate = self.done / max(now - self.start, 1e-9)
            print(f"{self.title}: {self.done}/{self.total} ({rate:.1f} per second)", file=sys.stderr, flush=True)
            self.last = now
