"""Teaching the networks of the zoo in turn, and seeing how far each is.

Training runs on a plateau of the learning rate, for as long as each course says. Any number of processes take part:
each takes the network that is least advanced, teaches it for a slice, and puts it back. Any may be killed at any time.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

from vitscope.teaching.card import write_card
from vitscope.teaching.loop import CHECKPOINT, Point, Run
from vitscope.teaching.schedule import Schedule
from zoo import courses
from zoo.courses import ROOT, classroom, locked, open_run
from zoo.heads import heads_of


def train(root: Path = ROOT, *, minutes: float = 10.0, only: tuple[str, ...] = ()) -> None:
    """Teach the networks of the zoo in turn, the least advanced first, until killed or all are done.

    Parameters
    ----------
    root:
        Folder of checkpoints and rendered images.
    minutes:
        CPU time of a slice.
    only:
        Teach these networks and no others.
    """
    torch.set_num_threads(1)
    stopping: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: stopping.append(received))
    images, watch = classroom(root)
    keys = list(only or courses.COURSES)
    while keys and not stopping:
        for key in sorted(keys, key=lambda key: advanced(root, key)):
            with locked(root / key / "lock", wait=False) as mine:
                if not mine:
                    continue
                run = open_run(
                    root / key,
                    key,
                    images,
                    Schedule(courses.WARMUP, courses.COURSES[key].steps),
                    watch=watch,
                    on_point=reporter(key),
                )
                run.resume()
                teach_slice(run, key, minutes * 60, stopping)
                if run.step == run.schedule.total:
                    keys.remove(key)
            break
        else:
            time.sleep(10)  # every network is being taught by another process
    if stopping:
        raise SystemExit(128 + stopping[0])  # not done: nothing that follows should begin


def teach_slice(run: Run, key: str, seconds: float, stopping: list[int]) -> None:
    """Go on for so many CPU-seconds, or to the end; the network is kept at the moments of its course."""
    end = run.cpu_seconds + seconds
    moments = courses.COURSES[key].moments
    while not stopping and run.cpu_seconds < end and run.step < moments[-1]:
        run.train(stop=lambda: bool(stopping) or run.cpu_seconds >= end or (run.step in moments[:-1] and not kept(run)))
        if run.step in moments:
            keep(run, key)


def kept(run: Run) -> bool:
    return (run.folder / "moments" / f"{run.step}.toml").exists()


def keep(run: Run, key: str) -> None:
    """What the network is now, as a model card beside its checkpoint."""
    write_card(
        run.folder / "moments",
        str(run.step),
        run.encoder,
        name=f"zoo/{key} at {run.step * run.settings.batch:,} images",
        architecture=courses.ARCHITECTURE,
        options=courses.OPTIONS,
        teaching=courses.COURSES[key].teacher or key,
        provenance={"images_seen": run.step * run.settings.batch, "cpu_seconds": round(run.cpu_seconds)},
        half=True,
    )


def advanced(root: Path, key: str) -> float:
    """Share of its course that a network has behind it."""
    return steps_made(root / key) / courses.COURSES[key].steps


def steps_made(folder: Path) -> int:
    """Steps of the checkpoint in a folder."""
    path = folder / CHECKPOINT
    return int(torch.load(path, map_location="cpu", weights_only=True)["step"]) if path.exists() else 0


def status(root: Path = ROOT, *, look: bool = False) -> None:
    """Print for each network: images seen, CPU time, loss, k-NN of each layer, and kinds of heads.

    Parameters
    ----------
    root:
        Folder of checkpoints.
    look:
        Look at heads and measure k-NN now (a CPU-minute per network), instead of showing the last measurement.
    """
    torch.set_num_threads(1)
    room = classroom(root) if look else None
    for key, course in courses.COURSES.items():
        path = root / key / CHECKPOINT
        if not path.exists():
            print(f"{key:5} not begun")
            continue
        state = torch.load(path, map_location="cpu", weights_only=True)
        curve = [Point(**point) for point in state["curve"]]
        images = state["step"] * course.batch
        print(progress(key, images, curve[-1] if curve else None, state["cpu_seconds"]), f"of {course.images:,}")
        looks = [point for point in curve if point.knn]
        if room is not None:
            run = open_run(root / key, key, room[0], Schedule(courses.WARMUP))
            run.resume()
            scores = {name: vars(score) for name, score in room[1](run.encoder).items()}
            print(f"      {heads_of(run.encoder)}")
        else:
            scores = looks[-1].knn if looks else {}
            images = looks[-1].images if looks else 0
        for name, score in scores.items():
            for kind, values in score.items():
                print(f"      {name} {kind:5} {' '.join(f'{value:.3f}' for value in values)}  (at {images:,})")


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
