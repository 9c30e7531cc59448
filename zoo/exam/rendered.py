"""Rendered pictures as the loaders' own types, kept in memory: the measures need not know that no file was read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vitscope.data.davis import VideoSequence
from vitscope.data.keypoints import KeypointPair, KeypointSet
from vitscope.data.samples import Annotation, PixelSample, SampleList
from vitscope.menagerie import PARTS, SPECIES, Pair, Picture
from vitscope.menagerie.export.files import box


@dataclass(frozen=True, kw_only=True, eq=False)
class RenderedRegion(Annotation):
    region: NDArray[np.bool_]  # (h, w)

    def decode(self) -> NDArray[np.bool_]:
        return self.region


@dataclass(frozen=True, kw_only=True, eq=False)
class RenderedVideo(VideoSequence):
    pictures: tuple[Picture, ...]

    def frame(self, index: int) -> Image.Image:
        return Image.fromarray(self.pictures[index].image)

    def _values(self, index: int) -> NDArray[np.uint8]:
        return self.pictures[index].owners


def sample_of(picture: Picture, *, parts: bool = False) -> PixelSample:
    """parts: with one annotation for each part that is seen."""
    name, regions = picture.scene.name, tuple[RenderedRegion, ...]()
    if parts:
        seen = ((number, picture.parts == number + 1) for number in range(len(PARTS)))
        regions = tuple(RenderedRegion(number, region=mask) for number, mask in seen if mask.any())
    return PixelSample(name, Path(name), picture.species, regions, pixels=picture.image)


def samples_of(pictures: Iterable[Picture], *, parts: bool = False) -> SampleList:
    return SampleList(
        (sample_of(picture, parts=parts) for picture in pictures),
        classes=[species.name for species in SPECIES],
        categories=PARTS,
        origin="menagerie",
    )


def keypoints_of(pairs: Iterable[Pair]) -> KeypointSet:
    """Pairs without a keypoint that is visible in both pictures are left out."""
    pictures, known = list[Picture](), list[KeypointPair]()
    for pair in pairs:
        if not pair.matches:
            continue
        # a keypoint's pixel has its centre at .5, a point of a pair its pixel's centre at 0
        source, target = (
            tuple((point.x - 0.5, point.y - 0.5) for point in side) for side in zip(*pair.matches, strict=True)
        )
        x1, y1, x2, y2 = box(pair.target.mask)
        here = len(pictures)
        pictures += [pair.source, pair.target]
        species = SPECIES[pair.source.species].name
        corners = (float(x1), float(y1), float(x2), float(y2))
        known.append(KeypointPair(pair.source.scene.name, species, here, here + 1, source, target, corners))
    sizes = tuple(picture.owners.shape for picture in pictures)
    return KeypointSet("menagerie pairs", samples_of(pictures), sizes, tuple(known))


def video_of(name: str, pictures: tuple[Picture, ...]) -> RenderedVideo:
    paths = tuple(Path(picture.scene.name) for picture in pictures)
    height, width = pictures[0].owners.shape
    return RenderedVideo(name, paths, paths, binary=False, size=(height, width), pictures=pictures)
