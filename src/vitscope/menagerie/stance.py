"""From a creature's own frame (facing right, y up) to its place in a picture (y down)."""

from __future__ import annotations

from functools import cache
from math import cos, radians, sin

import numpy as np

from vitscope.menagerie.scenes import Actor
from vitscope.menagerie.sketch import Point, Points, Sketch
from vitscope.menagerie.species import BUILD, POSE, SPECIES, Species

Box = tuple[float, float, float, float]  # left, top, right, bottom


def placement(actor: Actor) -> tuple[Points, Points]:
    """(2, 2) matrix and (2,) offset: points of the species' sketch @ matrix + offset = picture coordinates."""
    centre, longer = _frame(SPECIES[actor.individual.species])
    matrix = _matrix(actor.size / longer, actor.turn, actor.stretch, actor.flip)
    return matrix, np.array(actor.place) - np.array(centre) @ matrix


def reach(species: Species, size: float, turn: float, stretch: float) -> Box:
    """Bounding box of a resting, right-looking creature about its place."""
    points = _resting(species) @ _matrix(size, turn, stretch, flip=False)
    (left, top), (right, bottom) = points.min(0).tolist(), points.max(0).tolist()
    return left, top, right, bottom


def footing(actor: Actor) -> tuple[float, float, float]:
    """Where a creature's shadow falls: x and y of its middle, and half its width."""
    left, _, right, bottom = reach(SPECIES[actor.individual.species], actor.size, actor.turn, actor.stretch)
    middle = (left + right) / 2
    x = actor.place[0] + (-middle if actor.flip else middle)
    return x, actor.place[1] + bottom, (right - left) * 0.42


@cache
def _frame(species: Species) -> tuple[Point, float]:
    """Centre and longer side of a species at rest, in its own units."""
    points = _outlines(species)
    low, high = points.min(0), points.max(0)
    return (float(low[0] + high[0]) / 2, float(low[1] + high[1]) / 2), float((high - low).max())


@cache
def _resting(species: Species) -> Points:
    """All corners at rest, about the centre, with the longer side as the unit."""
    centre, longer = _frame(species)
    return (_outlines(species) - centre) / longer


def _outlines(species: Species) -> Points:
    sketch = Sketch()
    species.draw(sketch, (0.0,) * BUILD, (0.0,) * POSE)
    return np.concatenate([shape.outline for shape in sketch.shapes])


def _matrix(size: float, turn: float, stretch: float, flip: bool) -> Points:
    """Stretch, turn, mirror, scale, and put y upside down."""
    c, s = cos(radians(turn)), sin(radians(turn))
    mirror = -1.0 if flip else 1.0
    wide = stretch**0.5
    return size * np.array([[mirror * wide * c, -wide * s], [-mirror * s / wide, -c / wide]])
