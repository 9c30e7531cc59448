"""Where creatures live: a sky, a ground, and a few things that stand around."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vitscope.menagerie.colours import Colour, mixed, scaled
from vitscope.menagerie.dice import Dice
from vitscope.menagerie.scenes import Cover
from vitscope.menagerie.sketch import CIRCLE
from vitscope.menagerie.stack import Stack
from vitscope.menagerie.things import THINGS, WHITE, Tints


@dataclass(frozen=True)
class Habitat:
    name: str
    phrase: str  # how captions say it
    sky: tuple[Colour, Colour]  # top, bottom
    ground: tuple[Colour, Colour]  # horizon, foreground
    things: tuple[str, ...]  # keys of THINGS
    leaf: Colour


# fmt: off
HABITATS = (
    Habitat("meadow", "in the meadow", ((150, 206, 240), (214, 236, 246)),
            ((150, 204, 100), (112, 172, 80)), ("grass", "flower", "cloud"), (84, 146, 70)),
    Habitat("forest", "in the forest", ((112, 160, 122), (160, 194, 146)),
            ((108, 132, 78), (78, 102, 60)), ("trunk", "bush", "grass"), (62, 92, 58)),
    Habitat("savanna", "on the savanna", ((250, 206, 140), (252, 230, 180)),
            ((222, 184, 104), (196, 150, 80)), ("grass", "bush", "cloud"), (168, 136, 62)),
    Habitat("desert", "in the desert", ((246, 222, 186), (252, 238, 208)),
            ((236, 200, 142), (216, 172, 112)), ("stone", "cactus", "dune"), (150, 152, 96)),
    Habitat("snow", "in the snow", ((178, 204, 228), (222, 234, 244)),
            ((244, 248, 252), (212, 224, 240)), ("dune", "fir", "stone"), (120, 160, 160)),
    Habitat("sea", "in the sea", ((112, 200, 228), (64, 152, 206)),
            ((120, 170, 190), (92, 140, 172)), ("weed", "bubble", "stone"), (52, 132, 128)),
    Habitat("beach", "on the beach", ((168, 222, 240), (120, 196, 222)),
            ((248, 226, 172), (230, 200, 140)), ("stone", "shell", "cloud"), (196, 160, 120)),
    Habitat("night", "at night", ((58, 66, 122), (112, 110, 168)),
            ((84, 98, 130), (60, 70, 104)), ("star", "bush", "moon"), (56, 82, 98)),
)
# fmt: on
HABITAT = {habitat.name: habitat for habitat in HABITATS}


def backdrop(stack: Stack, habitat: Habitat, dice: Dice, horizon: float, clutter: int) -> None:
    """Hills, ground and `clutter` things behind the creatures, in picture heights (stack.aspect wide)."""
    far, near = habitat.ground
    if dice.chance(0.6):
        distance = dice.uniform(0.05, 0.14)
        hazy = mixed(habitat.sky[1], far, 0.45)
        _hills(stack, dice, horizon - distance, 0.07, hazy, hazy)
    _hills(stack, dice, horizon, 0.03, far, near)
    for _ in range(3):  # light and shade on the ground
        tone = scaled(near, dice.choice((0.94, 1.05)))
        at = (dice.uniform(0.0, stack.aspect), dice.uniform(horizon + 0.06, 1.0))
        stack.scenery(CIRCLE * (dice.uniform(0.1, 0.25), dice.uniform(0.012, 0.03)) + at, tone, tone)
    for _ in range(clutter):
        kind = dice.choice(habitat.things)
        at = (dice.uniform(0.0, stack.aspect), dice.uniform(0.0, 1.0))
        _place(stack, habitat, dice, kind, at, dice.uniform(0.05, 0.11), horizon)


def shadow(stack: Stack, habitat: Habitat, x: float, y: float, half_width: float) -> None:
    tone = scaled(habitat.ground[1], 0.8)
    stack.scenery(CIRCLE * (half_width, 0.035) + (x, y), tone, tone)


def foreground(stack: Stack, habitat: Habitat, dice: Dice, cover: Cover) -> None:
    """Something in front of the creatures."""
    kind = cover.kind or dice.choice([kind for kind in habitat.things if THINGS[kind].hides])
    _place(stack, habitat, dice, kind, (cover.x, cover.y), cover.size, horizon=0.0)


def _place(
    stack: Stack,
    habitat: Habitat,
    dice: Dice,
    kind: str,
    at: tuple[float, float],
    size: float,
    horizon: float,
) -> None:
    leaf = scaled(habitat.leaf, dice.uniform(0.88, 1.12))
    tints = Tints(leaf, mixed(leaf, WHITE, 0.25), habitat.ground, haze=habitat.sky[1])
    foot = (at[0], THINGS[kind].level(at[1], horizon))
    for outline, top, bottom in THINGS[kind].draw(tints, dice):
        stack.scenery(outline * size + foot, top, bottom)


def _hills(stack: Stack, dice: Dice, level: float, swell: float, top: Colour, bottom: Colour) -> None:
    """Everything below a gently waving line."""
    xs = np.linspace(-0.1, stack.aspect + 0.1, 13)
    slow, quick, phase = dice.uniform(1.5, 4.0), dice.uniform(4.0, 8.0), dice.uniform(0.0, 6.3)
    ys = level + swell * (0.7 * np.sin(slow * xs + phase) + 0.3 * np.sin(quick * xs))
    below = [[stack.aspect + 0.1, 1.1], [-0.1, 1.1]]
    stack.scenery(np.concatenate([np.stack([xs, ys], 1), below]), top, bottom)
