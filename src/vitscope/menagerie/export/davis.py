"""Videos in the layout of DAVIS 2017."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PIL import Image

from vitscope.menagerie.export.files import save_jpeg
from vitscope.menagerie.pictures import render
from vitscope.menagerie.species import SPECIES
from vitscope.menagerie.videos import film
from vitscope.menagerie.world import World

PALETTE = (0, 0, 0, 128, 0, 0, 0, 128, 0)
"""Background, first and second object, as DAVIS colours them."""


def write_davis(folder: Path, world: World, videos: int, frames: int, height: int, tick: Callable[[], None]) -> None:
    """JPEGImages/480p/<video>/00000.jpg, indexed Annotations/480p/<video>/00000.png, ImageSets/2017/val.txt.

    "480p" is the name that DAVIS gives the folder; frames are `height` pixels high.
    """
    names = []
    for index in range(videos):
        scenes = film(world, "film", index, frames)
        cast = "-".join(SPECIES[actor.individual.species].name for actor in scenes[0].actors)
        names.append(f"{index:02d}-{cast}")
        for number, scene in enumerate(scenes):
            picture = render(scene, height)
            save_jpeg(folder / "JPEGImages/480p" / names[-1] / f"{number:05d}.jpg", picture.image)
            path = folder / "Annotations/480p" / names[-1] / f"{number:05d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            indexed = Image.fromarray(picture.owners, "P")
            indexed.putpalette(PALETTE)
            indexed.save(path)
            tick()
    listing = folder / "ImageSets" / "2017" / "val.txt"
    listing.parent.mkdir(parents=True, exist_ok=True)
    listing.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
