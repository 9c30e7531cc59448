"""Things that stand around in habitats: a few plain polygons each, never anybody's part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from vitscope.menagerie.colours import Colour, mixed, scaled
from vitscope.menagerie.dice import Dice
from vitscope.menagerie.sketch import CIRCLE, Points

WHITE = (255, 255, 255)


@dataclass(frozen=True)
class Tints:
    """The colours that a habitat lends to its things."""

    leaf: Colour
    light: Colour
    ground: tuple[Colour, Colour]
    haze: Colour


Piece = tuple[Points, Colour, Colour]  # outline in units of the thing's size (y down, 0 = foot), top, bottom colour


def _outline(*points: tuple[float, float]) -> Points:
    return np.array(points)


def grass(tints: Tints, dice: Dice) -> Iterator[Piece]:
    for lean in (-0.5, 0.0, 0.5):
        tip = (lean * 1.2, -0.9 + abs(lean) * 0.3)
        yield _outline((lean * 0.5 - 0.13, 0.0), tip, (lean * 0.5 + 0.13, 0.0)), tints.leaf, tints.leaf


def flower(tints: Tints, dice: Dice) -> Iterator[Piece]:
    yield _outline((-0.06, 0.0), (-0.06, -0.8), (0.06, -0.8), (0.06, 0.0)), tints.leaf, tints.leaf
    petals = dice.choice(((250, 240, 240), (250, 200, 90), (236, 140, 170), (190, 160, 230)))
    yield CIRCLE * 0.32 + (0.0, -0.9), petals, petals
    yield CIRCLE * 0.13 + (0.0, -0.9), (240, 190, 70), (240, 190, 70)


def bush(tints: Tints, dice: Dice) -> Iterator[Piece]:
    for x, radius in ((-0.5, 0.5), (0.5, 0.5), (0.0, 0.7)):
        yield CIRCLE * (radius, radius * 0.9) + (x, -radius * 0.7), tints.light, tints.leaf


def trunk(tints: Tints, dice: Dice) -> Iterator[Piece]:
    yield _outline((-0.6, 0.0), (-0.4, -8.0), (0.4, -8.0), (0.6, 0.0)), (118, 92, 70), (96, 74, 58)


def stone(tints: Tints, dice: Dice) -> Iterator[Piece]:
    top, bottom = (mixed(tints.ground[1], grey, 0.65) for grey in ((150, 150, 156), (96, 96, 104)))
    yield CIRCLE * (0.75, 0.45) + (0.0, -0.25), top, bottom


def cactus(tints: Tints, dice: Dice) -> Iterator[Piece]:
    stem, left, left_arm = (-0.16, -1.5, 0.16, 0.0), (-0.55, -1.0, -0.33, -0.55), (-0.55, -0.7, 0.0, -0.5)
    right, right_arm = (0.33, -1.25, 0.55, -0.8), (0.0, -0.95, 0.55, -0.75)
    for x0, y0, x1, y1 in (stem, left, left_arm, right, right_arm):
        yield _outline((x0, y0), (x1, y0), (x1, y1), (x0, y1)), (116, 156, 96), (116, 156, 96)


def dune(tints: Tints, dice: Dice) -> Iterator[Piece]:
    ridge = _outline((-1.6, 0.0), (-0.5, -0.4), (0.2, -0.5), (0.9, -0.25), (1.6, 0.0))
    yield ridge, scaled(tints.ground[0], 1.03), tints.ground[0]


def fir(tints: Tints, dice: Dice) -> Iterator[Piece]:
    for tier in range(3):
        wide, foot = 0.7 - 0.15 * tier, -0.2 - 0.5 * tier
        yield _outline((-wide, foot), (0.0, foot - 0.9), (wide, foot)), tints.light, tints.leaf


def weed(tints: Tints, dice: Dice) -> Iterator[Piece]:
    sway = dice.uniform(-0.3, 0.3)
    left = ((-0.12, 0.0), (0.1 + sway, -0.6), (-0.15, -1.2))
    right = ((0.12, -1.2), (0.3 + sway, -0.6), (0.15, 0.0))
    yield _outline(*left, (0.1 + sway, -1.9), *right), tints.light, tints.leaf


def shell(tints: Tints, dice: Dice) -> Iterator[Piece]:
    fan = _outline((0.0, 0.0), (-0.4, -0.3), (-0.25, -0.55), (0.0, -0.62), (0.25, -0.55), (0.4, -0.3))
    yield fan * 0.8, (250, 214, 200), (236, 170, 160)


def cloud(tints: Tints, dice: Dice) -> Iterator[Piece]:
    for x, radius in ((-0.7, 0.4), (0.7, 0.4), (0.0, 0.6)):
        yield (
            CIRCLE * (radius * 1.3, radius * 0.8) + (x, 0.0),
            (250, 251, 253),
            mixed(tints.haze, WHITE, 0.6),
        )


def bubble(tints: Tints, dice: Dice) -> Iterator[Piece]:
    yield CIRCLE * 0.35, (190, 232, 244), (140, 206, 232)


def star(tints: Tints, dice: Dice) -> Iterator[Piece]:
    rays = ((0.0, -0.3), (0.3, 0.0), (0.0, 0.3), (-0.3, 0.0))
    notches = ((0.07, -0.07), (0.07, 0.07), (-0.07, 0.07), (-0.07, -0.07))
    spark = [point for both in zip(rays, notches, strict=True) for point in both]
    yield _outline(*spark), (236, 232, 196), (236, 232, 196)


def moon(tints: Tints, dice: Dice) -> Iterator[Piece]:
    yield CIRCLE * 0.7, (240, 236, 210), (226, 220, 190)


@dataclass(frozen=True)
class Thing:
    draw: Callable[[Tints, Dice], Iterator[Piece]]
    level: Callable[[float, float], float]  # (y thrown in [0, 1], horizon) -> where its foot is
    hides: bool = False  # may stand in front of a creature


def _on_ground(y: float, horizon: float) -> float:
    return max(y, horizon + 0.04)


THINGS = {
    "grass": Thing(grass, _on_ground, hides=True),
    "flower": Thing(flower, _on_ground, hides=True),
    "bush": Thing(bush, _on_ground, hides=True),
    "trunk": Thing(trunk, _on_ground),
    "stone": Thing(stone, _on_ground, hides=True),
    "cactus": Thing(cactus, _on_ground, hides=True),
    "dune": Thing(dune, _on_ground),
    "fir": Thing(fir, _on_ground, hides=True),
    "weed": Thing(weed, _on_ground, hides=True),
    "shell": Thing(shell, _on_ground, hides=True),
    "cloud": Thing(cloud, lambda y, horizon: y * horizon * 0.7),
    "bubble": Thing(bubble, lambda y, horizon: y, hides=True),
    "star": Thing(star, lambda y, horizon: y * horizon),
    "moon": Thing(moon, lambda y, horizon: y * horizon * 0.6),
}
