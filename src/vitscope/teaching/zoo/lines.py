"""What the zoo's commands print about a network while it is taught."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from vitscope.teaching.loop import Point


def reporter(key: str) -> Callable[[Point], None]:
    """Prints a line for each look at the features."""

    def report(point: Point) -> None:
        if point.knn:
            best = {name: max((scores["cls"] or []) + scores["patch"]) for name, scores in point.knn.items()}
            print(time.strftime("%H:%M"), progress(key, point.images, point), numbers(best), flush=True)

    return report


def progress(key: str, images: int, point: Point | None, seconds: float | None = None) -> str:
    """One line: images seen, CPU time, loss and what else the teacher watches."""
    spent = seconds if seconds is not None else point.cpu_seconds if point else 0.0
    line = f"{key:5} {images:>9,} images {spent / 60:7.1f} CPU-min"
    return line if point is None else f"{line} loss {point.loss:.4f} {numbers(point.logs)}"


def numbers(values: Mapping[str, float]) -> str:
    return " ".join(f"{name} {value:.3f}" for name, value in values.items())
