"""Teaching the networks of the zoo in turn, and seeing how far each is.

Training runs on a plateau of the learning rate, for as long as each course says. Any number of processes take part:
each takes the network that had the least time, teaches it for a slice, and puts it back. Any may be killed at any time.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path

import torch

from vitscope.teaching.loop import CHECKPOINT, Point
from vitscope.teaching.schedule import Schedule
from vitscope.teaching.zoo import courses
from vitscope.teaching.zoo.courses import ROOT, classroom, locked, open_run
from vitscope.teaching.zoo.lines import progress, reporter


def train(root: Path = ROOT, *, minutes: float = 12.0, only: tuple[str, ...] = ()) -> None:
    """Teach the networks of the zoo in turn, the least taught first, until killed or all are done.

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
        for key in sorted(keys, key=lambda key: time_spent(root / key)):
            with locked(root / key / "lock", wait=False) as mine:
                if not mine:
                    continue
                course = courses.COURSES[key]
                schedule = Schedule(courses.WARMUP, course.images // course.batch)
                run = open_run(root / key, key, images, schedule, watch=watch, on_point=reporter(key))
                run.resume()
                end = run.cpu_seconds + minutes * 60
                run.train(stop=lambda: bool(stopping) or run.cpu_seconds >= end)  # noqa: B023 - called at once
                if run.step == schedule.total:
                    keys.remove(key)
            break
        else:
            time.sleep(10)  # every network is being taught by another process
    if stopping:
        raise SystemExit(128 + stopping[0])  # not done: nothing that follows should begin


def time_spent(folder: Path) -> float:
    """CPU-seconds of the checkpoint in a folder."""
    path = folder / CHECKPOINT
    return float(torch.load(path, map_location="cpu", weights_only=True)["cpu_seconds"]) if path.exists() else 0.0


def status(root: Path = ROOT, *, look: bool = False) -> None:
    """Print for each network: images seen, CPU time, loss, and k-NN of each layer.

    Parameters
    ----------
    root:
        Folder of checkpoints.
    look:
        Measure k-NN now (some 20 CPU-seconds per network), instead of showing the last measurement.
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
        print(progress(key, images, curve[-1] if curve else None, state["cpu_seconds"]))
        looks = [point for point in curve if point.knn]
        if room is not None:
            run = open_run(root / key, key, room[0], Schedule(courses.WARMUP))
            run.resume()
            scores = {name: vars(score) for name, score in room[1](run.teacher.encoder).items()}
        else:
            scores = looks[-1].knn if looks else {}
            images = looks[-1].images if looks else 0
        for name, score in scores.items():
            for kind, values in score.items():
                print(f"      {name} {kind:5} {' '.join(f'{value:.3f}' for value in values)}  (at {images:,})")
