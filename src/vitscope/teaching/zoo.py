"""The zoo: six networks of one architecture, taught on the same images, differing only in the teaching.

    python -m vitscope.teaching.zoo train      # any number of times and processes; goes on where it stopped
    python -m vitscope.teaching.zoo status     # how far each one is, and k-NN of each layer
    python -m vitscope.teaching.zoo ship       # cool down a copy of each and write its model card
    python -m vitscope.teaching.zoo exam       # what the shipped ones can do on held-out renders

Training runs on a plateau of the learning rate and has no end of its own: each process takes the network that had the
least time, teaches it for a slice, and puts it back. It may be killed at any moment.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from cyclopts import App

from vitscope.errors import VitscopeError
from vitscope.teaching import courses
from vitscope.teaching.card import learning_curve, write_card
from vitscope.teaching.courses import classroom, locked, open_run
from vitscope.teaching.exam.command import exam
from vitscope.teaching.loop import CHECKPOINT, Point, Run
from vitscope.teaching.monitor import LayerScores, Monitor
from vitscope.teaching.schedule import Schedule
from vitscope.teaching.teachers import recipe_for
from vitscope.teaching.vit import create_encoder

ROOT = Path("runs/zoo")
SHELF = Path(__file__).parents[1] / "models" / "zoo"

app = App(help=__doc__, help_format="plaintext")
app.command(exam)


@app.command
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


def step_back() -> None:
    """Let everything else go first. Linux weighs whole sessions too (autogroups): lowered if this one is its own."""
    os.nice(19)
    if os.getsid(0) == os.getpid():
        with contextlib.suppress(OSError):
            Path("/proc/self/autogroup").write_text("19")


def reporter(key: str) -> Any:
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


def time_spent(folder: Path) -> float:
    """CPU-seconds of the checkpoint in a folder."""
    path = folder / CHECKPOINT
    return float(torch.load(path, map_location="cpu", weights_only=True)["cpu_seconds"]) if path.exists() else 0.0


@app.command
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


@app.command
def ship(
    root: Path = ROOT, to: Path = SHELF, *, share: float | None = None, only: tuple[str, ...] = (), half: bool = True
) -> None:
    """Cool down a copy of each network and write its weights and model card.

    Parameters
    ----------
    root:
        Folder of checkpoints. Training may go on meanwhile: its checkpoints are read, not changed.
    to:
        Folder of the shipped cards.
    share:
        Length of the cool-down, as a share of the steps before it; what the course says if not given.
    only:
        Ship these networks and no others; `none` is the untaught one.
    half:
        Store float16.
    """
    torch.set_num_threads(1)
    images, watch = classroom(root)
    for key in only or (*courses.COURSES, "none"):
        if key == "none":
            ship_untaught(to, watch, half)
            continue
        trunk = root / key / CHECKPOINT
        steps = int(torch.load(trunk, map_location="cpu", weights_only=True)["step"])
        cooldown = max(1, round(steps * (courses.COURSES[key].cooldown if share is None else share)))
        schedule = Schedule(courses.WARMUP, steps + cooldown, cooldown)
        # named by where it began and how long it is: one that was interrupted goes on, one that is done is done
        cooled = root / "cooled" / f"{key}-{steps}-{cooldown}"
        run = open_run(cooled, key, images, schedule, watch=watch, on_point=reporter(key))
        if not run.resume():
            run.resume(trunk)
        run.train()
        write_card(
            to,
            key,
            run.teacher.encoder,
            name=f"zoo/{key}",
            architecture=courses.ARCHITECTURE,
            options=courses.OPTIONS,
            teaching=key,
            provenance=provenance(key, run),
            half=half,
        )


def provenance(key: str, run: Run) -> dict[str, Any]:
    """What a reader of the card wants to know about how the weights came to be."""
    looks = [point for point in run.curve if point.knn]
    return {
        "data": f"menagerie, {len(run.images):,} rendered images of the nature-like world",
        "data_digest": run.images.digest,
        "recipe": asdict(recipe_for(key, courses.COURSES[key].changes)),
        "seed": run.settings.seed,
        "batch": run.settings.batch,
        "optimiser": asdict(run.settings.rates),
        "images_seen": run.step * run.settings.batch,
        "cooldown_images": run.schedule.cooldown * run.settings.batch,
        "cpu_seconds": round(run.cpu_seconds),
        "loss": round(run.curve[-1].loss, 4),
        "knn": {name: {kind: v for kind, v in scores.items() if v} for name, scores in looks[-1].knn.items()},
        "learning_curve": learning_curve(looks),
    }


def ship_untaught(to: Path, watch: Monitor, half: bool) -> None:
    """The network that all six began as."""
    vit = create_encoder(courses.ARCHITECTURE, courses.OPTIONS, courses.SEED)
    scores: dict[str, LayerScores] = watch(vit)
    write_card(
        to,
        "none",
        vit,
        name="zoo/none",
        architecture=courses.ARCHITECTURE,
        options=courses.OPTIONS,
        teaching="none",
        provenance={
            "seed": courses.SEED,
            "images_seen": 0,
            "knn": {name: {kind: v for kind, v in vars(score).items() if v} for name, score in scores.items()},
        },
        half=half,
    )


def main() -> None:
    step_back()
    try:
        app()
    except VitscopeError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
