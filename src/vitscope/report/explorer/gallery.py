"""The images beside the one that is looked at: a folder of somebody's, or the menagerie, rendered when looked at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vitscope.core.reading import user_path
from vitscope.data.openers import images, masks, recognise
from vitscope.data.samples import Annotation, Sample, SampleList
from vitscope.menagerie import PARTS, SPECIES, Picture, World, render

PIXELS = 224  # edge of a rendered picture
SHELF = 48  # pictures of the menagerie on show
FIRST = (7, 7 + len(SPECIES))  # two of one species, to begin with
MOST = 4096  # images of a folder that can be chosen
WORLD = World()
MENAGERIE = "menagerie"


@lru_cache(maxsize=256)
def rolled(split: str, number: int) -> Picture:
    """The number-th picture of a split of the built-in world: the same number is always the same picture."""
    return render(WORLD.scene(split, number), PIXELS)


@dataclass(frozen=True)
class RenderedPart(Annotation):
    """One part of a rendered creature."""

    split: str
    number: int

    def decode(self) -> NDArray[np.bool_]:
        region: NDArray[np.bool_] = rolled(self.split, self.number).parts == 1 + self.category
        return region


@dataclass(frozen=True)
class RenderedSample(Sample):
    """A picture of the menagerie; its path is a name."""

    number: int = 0

    def load(self) -> Image.Image:
        return Image.fromarray(rolled("shelf", self.number).image)

    @property
    def fingerprint(self) -> str:
        return self.id


def menagerie_gallery(count: int = SHELF) -> SampleList:
    samples = []
    for i in range(count):
        parts = tuple(RenderedPart(category, "shelf", i) for category in range(len(PARTS)))
        samples.append(RenderedSample(f"menagerie/{i:02d}", Path(f"menagerie/{i:02d}"), None, parts, number=i))
    return SampleList(samples, categories=PARTS, origin=MENAGERIE)


def open_gallery(path: Path | None) -> SampleList:
    """The images of a folder, with masks if it has some; without a folder, the menagerie."""
    if path is None:
        return menagerie_gallery()
    found = masks(path) if recognise(user_path(path)) == "masks" else images(path)
    return found.limit(MOST).samples if found.count > MOST else found.samples
