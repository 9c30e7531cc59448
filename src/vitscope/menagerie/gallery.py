"""Pictures in bulk: arrays to learn from, individuals met again, and pairs with corresponding keypoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vitscope.menagerie.pictures import Picture, SeenKeypoint, render
from vitscope.menagerie.scenes import Scene
from vitscope.menagerie.species import SPECIES
from vitscope.menagerie.world import World


@dataclass(frozen=True)
class Shelf:
    """Pictures of one split as arrays."""

    images: NDArray[np.uint8]  # (n, size, size, 3)
    labels: NDArray[np.int64]  # (n,) indices into SPECIES
    captions: tuple[str, ...]
    individuals: tuple[str, ...]


def shelf(world: World, split: str, indices: Iterable[int], size: int = 64) -> Shelf:
    """Render the pictures `indices` of a split; each depends on nothing but the world, the split and its index."""
    pictures = [render(world.scene(split, index), size) for index in indices]
    return Shelf(
        images=np.stack([picture.image for picture in pictures]),
        labels=np.array([picture.species for picture in pictures], np.int64),
        captions=tuple(picture.caption for picture in pictures),
        individuals=tuple(picture.scene.actors[-1].individual.id for picture in pictures),
    )


def encounters(world: World, population: str, individuals: int, each: int) -> Iterator[Scene]:
    """`each` scenes of every one of the first `individuals` of a population: other poses, places, habitats."""
    for number in range(individuals):
        who = world.individual(population, number)
        for time in range(each):
            yield world.scene(population, number * each + time, who)


@dataclass(frozen=True)
class Pair:
    """Two pictures of one species, and the keypoints that are visible in both, in the same order."""

    source: Picture
    target: Picture
    matches: tuple[tuple[SeenKeypoint, SeenKeypoint], ...]


def pair(world: World, split: str, index: int, size: int = 64, *, same_individual: bool = False) -> Pair:
    """The index-th keypoint pair of a split: two individuals of a species, or one met twice."""
    number = (index // len(SPECIES)) * 2 * len(SPECIES) + index % len(SPECIES)
    who = world.individual(split, number)
    other = who if same_individual else world.individual(split, number + len(SPECIES))
    source, target = (render(world.scene(split, 2 * index + k, one), size) for k, one in enumerate((who, other)))
    matches = [(a, b) for a, b in zip(source.keypoints[0], target.keypoints[0], strict=True) if a.visible and b.visible]
    return Pair(source, target, tuple(matches))
