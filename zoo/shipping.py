"""From a network that is still being taught to one on the shelf: a cooled copy of it, and its model card."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from vitscope.models.registry import ZOO
from vitscope.teaching.card import learning_curve, write_card
from vitscope.teaching.loop import CHECKPOINT, Run
from vitscope.teaching.monitor import LayerScores, Monitor
from vitscope.teaching.schedule import Schedule
from vitscope.teaching.teachers.registry import recipe_for
from vitscope.teaching.vit import create_encoder
from zoo import courses
from zoo.courses import ROOT, classroom, open_run
from zoo.driver import reporter


def ship(
    root: Path = ROOT, to: Path = ZOO, *, share: float | None = None, only: tuple[str, ...] = (), half: bool = True
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
            run.encoder,
            name=f"zoo/{key}",
            architecture=courses.ARCHITECTURE,
            options=courses.OPTIONS,
            teaching=courses.COURSES[key].teacher or key,
            provenance=provenance(key, run),
            taught_on={"dataset": "the menagerie", "labels": run.teacher.needs == "labels"},
            half=half,
        )


def provenance(key: str, run: Run) -> dict[str, Any]:
    """What a reader of the card wants to know about how the weights came to be."""
    looks = [point for point in run.curve if point.knn]
    return {
        "data": f"menagerie, {len(run.images):,} rendered images of the nature-like world",
        "data_digest": run.images.digest,
        "recipe": asdict(recipe_for(courses.COURSES[key].teacher or key, courses.COURSES[key].changes)),
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
