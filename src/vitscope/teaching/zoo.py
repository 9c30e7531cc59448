"""The zoo: six networks of one architecture, taught on the same images, differing only in the teaching.

    python -m vitscope.teaching.zoo train      # any number of times and processes; goes on where it stopped
    python -m vitscope.teaching.zoo status     # how far each one is, and k-NN of each layer
    python -m vitscope.teaching.zoo ship       # cool down a copy of each and write its model card

Training runs on a plateau of the learning rate and has no end of its own: each process takes the network that had the
least time, teaches it for a slice, and puts it back. It may be killed at any moment.
"""

from __future__ import annotations

import fcntl
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from cyclopts import App

from vitscope.digest import digest_of
from vitscope.teaching.card import learning_curve, write_card
from vitscope.teaching.images import StoredImages
from vitscope.teaching.loop import CHECKPOINT, Point, Run, Settings
from vitscope.teaching.monitor import Monitor
from vitscope.teaching.schedule import Schedule
from vitscope.teaching.teachers import create_teacher, recipe_for
from vitscope.teaching.vit import create_encoder
from vitscope.teaching.world import monitor, rendered

ARCHITECTURE = "vit_tiny_patch16_224"
OPTIONS: dict[str, Any] = {"img_size": 64, "patch_size": 8, "embed_dim": 64, "depth": 12, "num_heads": 4}
SIZE = 64
IMAGES = 60_000  # rendered pictures, the same for all
SEED = 0
WARMUP = 300  # steps
ROOT = Path("runs/zoo")
SHELF = Path(__file__).parents[1] / "models" / "zoo"

app = App(help=__doc__, help_format="plaintext")


@dataclass(frozen=True)
class Course:
    """How one network of the zoo is taught."""

    batch: int = 64
    images: int = 10_000_000  # seen on the plateau before the network is done
    changes: dict[str, Any] = field(default_factory=dict)  # of the teacher's recipe


COURSES: dict[str, Course] = {
    "fs": Course(),
    "clip": Course(),
    "dino": Course(),
    "moco": Course(batch=128),
    "mae": Course(),
    "beit": Course(),
}


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[bool]:
    """Whether this process alone holds the lock; the system releases it when the process ends, however it ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True


def classroom(root: Path) -> tuple[StoredImages, Monitor]:
    """The images of the zoo, rendered if they are not there yet, and the test sets."""
    folder = root / "world"
    with locked(folder / "lock", wait=True):
        images = rendered(folder, "train", IMAGES, SIZE)
        return images, monitor(folder, images, SIZE)


def identity(key: str, images: StoredImages) -> dict[str, Any]:
    """What must not change between slices."""
    recipe = digest_of([asdict(recipe_for(key, COURSES[key].changes)), COURSES[key].batch, SEED])
    return {
        "teacher": key,
        "architecture": ARCHITECTURE,
        "options": OPTIONS,
        "data": images.digest,
        "recipe": recipe,
    }


def open_run(folder: Path, key: str, images: StoredImages, watch: Monitor | None, schedule: Schedule) -> Run:
    """The run of one network, at its start."""
    course = COURSES[key]
    teacher = create_teacher(
        key, ARCHITECTURE, OPTIONS, images, seed=SEED, recipe=recipe_for(key, course.changes)
    )
    return Run(
        folder,
        teacher,
        images,
        schedule,
        Settings(batch=course.batch, seed=SEED),
        identity=identity(key, images),
        monitor=watch,
        on_point=lambda point: report(key, point),
    )


def report(key: str, point: Point) -> None:
    if point.knn or point.step % 500 == 0:
        best = {name: max((scores["cls"] or []) + scores["patch"]) for name, scores in point.knn.items()}
        logs = " ".join(f"{name} {value:.3f}" for name, value in {**point.logs, **best}.items())
        print(
            f"{time.strftime('%H:%M')} {key:5} {point.images:>9,} images {point.cpu_seconds / 60:7.1f} min "
            f"loss {point.loss:.4f} {logs}",
            flush=True,
        )


def time_spent(folder: Path) -> float:
    """CPU-seconds of the checkpoint in a folder."""
    path = folder / CHECKPOINT
    return (
        float(torch.load(path, map_location="cpu", weights_only=True)["cpu_seconds"])
        if path.exists()
        else 0.0
    )


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
    keys = list(only or COURSES)
    while keys and not stopping:
        for key in sorted(keys, key=lambda key: time_spent(root / key)):
            with locked(root / key / "lock", wait=False) as mine:
                if not mine:
                    continue
                course = COURSES[key]
                run = open_run(
                    root / key, key, images, watch, Schedule(WARMUP, course.images // course.batch)
                )
                run.resume()
                end = run.cpu_seconds + minutes * 60
                run.train(stop=lambda: bool(stopping) or run.cpu_seconds >= end)  # noqa: B023 - called at once
                if run.step == run.schedule.total:
                    keys.remove(key)
            break
        else:
            time.sleep(10)  # every network is being taught by another process


@app.command
def status(root: Path = ROOT, *, layers: bool = True) -> None:
    """Print for each network: images seen, CPU time, loss, and k-NN of each layer at its last look.

    Parameters
    ----------
    root:
        Folder of checkpoints.
    layers:
        Show every layer, not only the best.
    """
    for key in COURSES:
        path = root / key / CHECKPOINT
        if not path.exists():
            print(f"{key:5} not begun")
            continue
        state = torch.load(path, map_location="cpu", weights_only=True)
        curve = [Point(**point) for point in state["curve"]]
        print(
            f"{key:5} {state['step'] * COURSES[key].batch:>9,} images {state['cpu_seconds'] / 60:7.1f} CPU-min "
            f"loss {curve[-1].loss if curve else float('nan'):.4f} "
            + " ".join(f"{name} {value:.3f}" for name, value in (curve[-1].logs if curve else {}).items())
        )
        looks = [point for point in curve if point.knn]
        for name, scores in (looks[-1].knn if looks else {}).items():
            for kind, values in scores.items():
                shown = " ".join(f"{value:.3f}" for value in values) if layers else f"best {max(values):.3f}"
                print(f"      {name} {kind:5} {shown}  (at {looks[-1].images:,} images)")


@app.command
def ship(
    root: Path = ROOT, to: Path = SHELF, *, share: float = 0.15, only: tuple[str, ...] = (), half: bool = True
) -> None:
    """Cool down a copy of each network and write its weights and model card.

    Parameters
    ----------
    root:
        Folder of checkpoints. Training may go on meanwhile: its checkpoints are read, not changed.
    to:
        Folder of the shipped cards.
    share:
        Length of the cool-down, as a share of the steps before it.
    only:
        Ship these networks and no others; `none` is the untaught one.
    half:
        Store float16.
    """
    torch.set_num_threads(1)
    images, watch = classroom(root)
    for key in only or (*COURSES, "none"):
        if key == "none":
            ship_untaught(to, watch, half)
            continue
        folder = root / "cooled" / key
        trunk = torch.load(root / key / CHECKPOINT, map_location="cpu", weights_only=True)
        cooldown = max(1, round(trunk["step"] * share))
        schedule = Schedule(WARMUP, trunk["step"] + cooldown, cooldown)
        run = open_run(folder, key, images, watch, schedule)
        run.resume(root / key / CHECKPOINT)
        run.train()
        write_card(
            to,
            key,
            run.teacher.encoder,
            name=f"zoo/{key}",
            architecture=ARCHITECTURE,
            options=OPTIONS,
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
        "recipe": asdict(recipe_for(key, COURSES[key].changes)),
        "seed": SEED,
        "batch": run.settings.batch,
        "optimiser": asdict(run.settings.rates),
        "images_seen": run.step * run.settings.batch,
        "cooldown_images": run.schedule.cooldown * run.settings.batch,
        "cpu_seconds": round(run.cpu_seconds),
        "loss": round(run.curve[-1].loss, 4),
        "knn": {name: {k: v for k, v in scores.items() if v} for name, scores in looks[-1].knn.items()},
        "learning_curve": learning_curve(looks),
    }


def ship_untaught(to: Path, watch: Monitor, half: bool) -> None:
    """The network that all six began as."""
    vit = create_encoder(ARCHITECTURE, OPTIONS, SEED)
    scores = {name: {k: v for k, v in vars(s).items() if v} for name, s in watch(vit).items()}
    write_card(
        to,
        "none",
        vit,
        name="zoo/none",
        architecture=ARCHITECTURE,
        options=OPTIONS,
        teaching="none",
        provenance={"seed": SEED, "images_seen": 0, "knn": scores},
        half=half,
    )


if __name__ == "__main__":
    app()
