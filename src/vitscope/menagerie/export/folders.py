"""Plain folders: one per species with captions beside them, or one per individual."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from vitscope.menagerie.export.files import save_png
from vitscope.menagerie.gallery import encounters
from vitscope.menagerie.pictures import render
from vitscope.menagerie.species import SPECIES
from vitscope.menagerie.world import World


def write_imagefolder(folder: Path, world: World, split: str, count: int, size: int, tick: Callable[[], None]) -> None:
    """<species>/<index>.png, and captions.json: {"cat/000008.png": "a striped cat in the snow", ...}."""
    captions = {}
    for index in range(count):
        picture = render(world.scene(split, index), size)
        name = f"{SPECIES[picture.species].name}/{index:06d}.png"
        save_png(folder / name, picture.image)
        captions[name] = picture.caption
        tick()
    (folder / "captions.json").write_text(json.dumps(captions, indent=1) + "\n", encoding="utf-8")


def write_conflict(folder: Path, world: World, count: int, size: int, tick: Callable[[], None]) -> None:
    """<shape>/<shape>1-<texture>1.png, as Geirhos et al. name images whose cues are in conflict."""
    for index in range(count):
        scene, other = world.conflict("conflict", index)
        picture = render(scene, size)
        shape, texture = SPECIES[picture.species].name, SPECIES[other].name
        number = 1 + index // (len(SPECIES) * (len(SPECIES) - 1))  # all pairs once, then all of them again
        save_png(folder / shape / f"{shape}{number}-{texture}{number}.png", picture.image)
        tick()


def write_individuals(
    folder: Path, world: World, individuals: int, each: int, size: int, tick: Callable[[], None]
) -> None:
    """<species>-<identity>/<encounter>.png."""
    for number, scene in enumerate(encounters(world, "herd", individuals, each)):
        who = scene.actors[0].individual
        save_png(
            folder / f"{SPECIES[who.species].name}-{who.id}" / f"{number % each:02d}.png",
            render(scene, size).image,
        )
        tick()
