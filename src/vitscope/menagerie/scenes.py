"""Who is where: pure descriptions, from which everything about a picture follows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Individual:
    """What stays with a creature wherever it is met."""

    id: str
    species: int  # index into SPECIES
    palette: str
    pattern: str
    shift: tuple[int, int, int]  # how its colours differ from the palette's, sRGB
    build: tuple[float, ...]  # (BUILD,) proportions in [-1, 1]
    grain: tuple[float, float, float]  # repeats of the pattern per body unit, and its phase along and up


@dataclass(frozen=True)
class Actor:
    """An individual in a scene. Lengths are in picture heights, places from the top left corner."""

    individual: Individual
    pose: tuple[float, ...]  # (POSE,) articulation in [-1, 1]
    place: tuple[float, float]  # of its centre
    size: float  # the longer side at rest
    turn: float = 0.0  # degrees, counter-clockwise
    flip: bool = False  # looks left
    stretch: float = 1.0  # width to height, as if seen at an angle


@dataclass(frozen=True)
class Cover:
    """Something that stands in front of the creatures; what it is, unless said, depends on the habitat."""

    x: float
    y: float
    size: float
    kind: str | None = None


@dataclass(frozen=True)
class Scene:
    name: str
    actors: tuple[Actor, ...]  # from back to front
    habitat: str
    scenery: str  # names the dice that place hills and things
    horizon: float  # where the ground begins
    clutter: int  # things behind the creatures
    covers: tuple[Cover, ...] = ()
    light: tuple[float, float, float] = (1.0, 1.0, 1.0)  # factor on red, green, blue
    aspect: float = 1.0  # width / height
