"""What somebody sees of a run, and how they stop it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from vitscope.teaching.distributed import rank
from vitscope.teaching.loop import Point, Run
from vitscope.teaching.monitor import Monitor


@contextmanager
def shown(run: Run, title: str) -> Iterator[None]:
    """A bar with loss and k-NN on a terminal, plain lines elsewhere."""
    console = Console(stderr=True)
    if rank() != 0 or not console.is_terminal:
        run.on_point = lambda point: print(f"{title}: {describe(point, run)}", file=sys.stderr, flush=True)
        yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(title, total=run.schedule.total, completed=run.step)
        run.on_point = lambda point: bar.update(
            task, completed=point.step, description=f"{title}: {describe(point, run)}"
        )
        yield


def describe(point: Point, run: Run) -> str:
    """One line about a point of the learning curve, with the last known k-NN."""
    looks = [p.knn["held_out"] for p in run.curve if p.knn]
    knn = f", {best_layer(looks[-1], run.monitor)}" if looks else ""
    return f"step {point.step}/{run.schedule.total}, loss {point.loss:.4f}{knn}"


def best_layer(scores: Mapping[str, Any], monitor: Monitor | None) -> str:
    """The best k-NN accuracy of a look: of which token and layer, and how many images it is about.

    >>> best_layer({"cls": [0.5, 0.25], "patch": [0.25, 0.75]}, None)
    'k-NN 0.750 (mean patch, layer 2)'
    """
    kinds = {"cls": "CLS", "patch": "mean patch"}
    accuracy, kind, layer = max(
        ((value, kind, layer) for kind in kinds for layer, value in enumerate(scores[kind] or [], start=1)),
        key=lambda found: found[0],
    )
    about = f"{kinds[kind]}, layer {layer}"
    if monitor is not None:
        about += f", {len(monitor.tests['held_out'][1])} held-out images among {len(monitor.bank_labels):,}"
    return f"k-NN {accuracy:.3f} ({about})"


@contextmanager
def interruptible() -> Iterator[list[int]]:
    """While this is open, the first interrupt or termination is only noted, so that a checkpoint can be written."""
    received: list[int] = []

    def note(number: int, _: object) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)

    try:
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread: signals are somebody else's business
        yield received
        return
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
