"""Who is where: pure descriptions of individuals and scenes, thrown by named dice."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import cos, radians, sin

import numpy as np

from vitscope.data.menagerie.colours import PALETTES, PATTERNS
from vitscope.data.menagerie.dice import Dice
from vitscope.data.menagerie.habitats import HABITATS
from vitscope.data.menagerie.sketch import Sketch
from vitscope.data.menagerie.species import BUILD, POSE, SPECIES, Species

SIZES = (0.58, 0.94)
"""How much of the picture's height a creature takes, from far to near."""


@dataclass(frozen=True)
class Individual:
    """What stays with a creature wherever it is met."""

    id: str
    species: int  # index into SPECIES
    palette: str
    pattern: str
    shift: tuple[int, int, int]  # its coat's distance from the palette, sRGB
    build: tuple[float, ...]  # proportions in [-1, 1]
    grain: tuple[float, float, float]  # repeats of the pattern per body unit, and its phase along and up


@dataclass(frozen=True)
class Actor:
    """An individual in a scene. Places are in picture heights from the top left; size is the longer side at rest."""

    individual: Individual
    pose: tuple[float, ...]  # articulation in [-1, 1]
    place: tuple[float, float]
    size: float
    turn: float = 0.0  # degrees, counter-clockwise
    flip: bool = False  # looks left
    stretch: float = 1.0  # width to height, as if seen at an angle


@dataclass(frozen=True)
class Scene:
    name: str
    actors: tuple[Actor, ...]  # from back to front
    habitat: str
    scenery: str  # names the dice that place hills and things
    horizon: float  # where the ground begins
    clutter: int  # things behind the creatures
    cover: tuple[tuple[float, float, float], ...] = ()  # things in front: x, y, size
    light: tuple[float, float, float] = (1.0, 1.0, 1.0)
    aspect: float = 1.0  # width / height


@dataclass(frozen=True)
class World:
    """A reproducible population. `correlation` is how often a species wears its usual colours, pattern and place.

    0 makes the world appearance-free: then nothing but shape tells species apart.
    """

    seed: int = 0
    correlation: float = 0.6

    def individual(self, population: str, number: int) -> Individual:
        """The number-th creature of a population; species take turns, so that any run of numbers is balanced."""
        dice = Dice("menagerie", self.seed, "individual", population, number)
        kind = number % len(SPECIES)
        species = SPECIES[kind]
        return Individual(
            id=f"{population}-{number:05d}",
            species=kind,
            palette=self._pick(dice, species.palettes, [p.name for p in PALETTES]),
            pattern=self._pick(dice, species.patterns, PATTERNS),
            shift=(dice.below(37) - 18, dice.below(37) - 18, dice.below(37) - 18),
            build=dice.signs(BUILD),
            grain=(dice.uniform(3.0, 4.6), dice.uniform(0.0, 1.0), dice.uniform(0.0, 1.0)),
        )

    def scene(self, split: str, index: int, individual: Individual | None = None) -> Scene:
        """A picture of one creature: by default each picture of a split meets a new one."""
        who = individual or self.individual(split, index)
        dice = Dice("menagerie", self.seed, "scene", split, index)
        species = SPECIES[who.species]
        habitat = self._pick(dice, species.habitats, [h.name for h in HABITATS])
        actor = _meet(who, dice)
        cover: tuple[tuple[float, float, float], ...] = ()
        if dice.chance(0.25):
            cover = (
                (
                    actor.place[0] + dice.uniform(-0.35, 0.35),
                    actor.place[1] + dice.uniform(0.2, 0.45),
                    dice.uniform(0.1, 0.16),
                ),
            )
        glow, warmth = dice.uniform(0.86, 1.08), dice.uniform(-0.05, 0.05)
        return Scene(
            name=f"{split}-{index:06d}",
            actors=(actor,),
            habitat=habitat,
            scenery=f"{self.seed}/{split}/{index}",
            horizon=dice.uniform(
                0.22, max(0.3, min(0.8, footing(actor)[1] - 0.04))
            ),  # everybody is met above ground
            clutter=2 + dice.below(4),
            cover=cover,
            light=(glow * (1 + warmth), glow, glow * (1 - warmth)),
        )

    def _pick(self, dice: Dice, usual: tuple[str, str], all_: list[str] | tuple[str, ...]) -> str:
        likely = usual[0] if dice.chance(0.65) else usual[1]
        return likely if dice.chance(self.correlation) else dice.choice(all_)


def _meet(who: Individual, dice: Dice, aspect: float = 1.0) -> Actor:
    species = SPECIES[who.species]
    turn = dice.uniform(-species.turn, species.turn)
    stretch = dice.uniform(0.85, 1.12)
    # Long thin creatures are met at closer range than round ones, so that all are about equally much to look at.
    low, high = _reach(species, 1.0, turn, stretch)
    wide, tall = high[0] - low[0], high[1] - low[1]
    longer = max(wide, tall)
    size = min(dice.uniform(*SIZES) * 2 / (longer + (wide * tall) ** 0.5), 1.04 / longer)
    low, high = (low[0] * size, low[1] * size), (high[0] * size, high[1] * size)
    flip = not species.symmetric and dice.chance(0.5)
    if flip:
        low, high = (-high[0], low[1]), (-low[0], high[1])
    # The whole creature fits at rest, but for a little that the edge may cut off.
    x = dice.uniform(*sorted((-low[0] - 0.05, aspect - high[0] + 0.05)))
    y = dice.uniform(*sorted((-low[1] - 0.05, 1.0 - high[1] + 0.05)))
    return Actor(who, dice.signs(POSE), (x, y), size, turn, flip, stretch)


@cache
def frame(species: Species) -> tuple[tuple[float, float], float]:
    """Centre and longer side of a species at rest, in its own units."""
    sketch = Sketch()
    species.draw(sketch, (0.0,) * BUILD, (0.0,) * POSE)
    points = np.concatenate([shape.outline for shape in sketch.shapes])
    low, high = points.min(0), points.max(0)
    return (float(low[0] + high[0]) / 2, float(low[1] + high[1]) / 2), float((high - low).max())


@cache
def _rest(species: Species) -> np.ndarray:
    sketch = Sketch()
    species.draw(sketch, (0.0,) * BUILD, (0.0,) * POSE)
    centre, longer = frame(species)
    return (np.concatenate([shape.outline for shape in sketch.shapes]) - centre) / longer


def _reach(
    species: Species, size: float, turn: float, stretch: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Bounding box of the resting creature about its place (y down), before mirroring."""
    points = _rest(species) @ pose_matrix(size, turn, stretch, False)
    low, high = points.min(0), points.max(0)
    return (float(low[0]), float(low[1])), (float(high[0]), float(high[1]))


def footing(actor: Actor) -> tuple[float, float, float]:
    """Where a creature's shadow falls: centre x, y of the lowest point, half-width, for the resting pose."""
    low, high = _reach(SPECIES[actor.individual.species], actor.size, actor.turn, actor.stretch)
    middle = (low[0] + high[0]) / 2
    return (
        actor.place[0] + (-middle if actor.flip else middle),
        actor.place[1] + high[1],
        (high[0] - low[0]) * 0.42,
    )


def pose_matrix(size: float, turn: float, stretch: float, flip: bool) -> np.ndarray:
    """(2, 2): creature units (y up, centred, longer side 1) @ matrix = picture units about the place (y down)."""
    c, s = cos(radians(turn)), sin(radians(turn))
    mirror = -1.0 if flip else 1.0
    wide = stretch**0.5
    return size * np.array([[mirror * wide * c, -wide * s], [-mirror * s / wide, -c / wide]])
