"""Where creatures live: a sky, a ground, and a few things that stand around."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vitscope.data.menagerie.colours import Colour, mixed, scaled
from vitscope.data.menagerie.dice import Dice
from vitscope.data.menagerie.sketch import CIRCLE, Points
from vitscope.data.menagerie.stack import Stack


@dataclass(frozen=True)
class Habitat:
    name: str
    phrase: str
    sky: tuple[Colour, Colour]  # top, bottom
    ground: tuple[Colour, Colour]
    things: tuple[str, ...]
    thing: Colour


HABITATS = (
    Habitat(
        "meadow",
        "in the meadow",
        ((150, 206, 240), (214, 236, 246)),
        ((150, 204, 100), (112, 172, 80)),
        ("grass", "flower", "cloud"),
        (84, 146, 70),
    ),
    Habitat(
        "forest",
        "in the forest",
        ((112, 160, 122), (160, 194, 146)),
        ((108, 132, 78), (78, 102, 60)),
        ("trunk", "bush", "grass"),
        (62, 92, 58),
    ),
    Habitat(
        "savanna",
        "on the savanna",
        ((250, 206, 140), (252, 230, 180)),
        ((222, 184, 104), (196, 150, 80)),
        ("grass", "bush", "cloud"),
        (168, 136, 62),
    ),
    Habitat(
        "desert",
        "in the desert",
        ((246, 222, 186), (252, 238, 208)),
        ((236, 200, 142), (216, 172, 112)),
        ("stone", "cactus", "dune"),
        (150, 152, 96),
    ),
    Habitat(
        "snow",
        "in the snow",
        ((178, 204, 228), (222, 234, 244)),
        ((244, 248, 252), (212, 224, 240)),
        ("dune", "fir", "stone"),
        (120, 160, 160),
    ),
    Habitat(
        "sea",
        "in the sea",
        ((112, 200, 228), (64, 152, 206)),
        ((120, 170, 190), (92, 140, 172)),
        ("weed", "bubble", "stone"),
        (52, 132, 128),
    ),
    Habitat(
        "beach",
        "on the beach",
        ((168, 222, 240), (120, 196, 222)),
        ((248, 226, 172), (230, 200, 140)),
        ("stone", "shell", "cloud"),
        (196, 160, 120),
    ),
    Habitat(
        "night",
        "at night",
        ((58, 66, 122), (112, 110, 168)),
        ((84, 98, 130), (60, 70, 104)),
        ("star", "bush", "moon"),
        (56, 82, 98),
    ),
)
HABITAT = {habitat.name: habitat for habitat in HABITATS}


def backdrop(stack: Stack, habitat: Habitat, dice: Dice, horizon: float, clutter: int) -> None:
    """Sky, ground and `clutter` things behind the creatures. Pictures are one unit high and stack.aspect wide."""
    wide = stack.aspect
    if dice.chance(0.6):
        _hills(
            stack,
            horizon - dice.uniform(0.05, 0.14),
            mixed(habitat.sky[1], habitat.ground[0], 0.45),
            dice,
            0.07,
        )
    _hills(stack, horizon, habitat.ground[0], dice, 0.03, habitat.ground[1])
    for _ in range(3):  # light and shade on the ground
        tone = scaled(habitat.ground[1], dice.choice((0.94, 1.05)))
        at = (dice.uniform(0.0, wide), dice.uniform(horizon + 0.06, 1.0))
        stack.scenery(CIRCLE * (dice.uniform(0.1, 0.25), dice.uniform(0.012, 0.03)) + at, tone, tone)
    for _ in range(clutter):
        thing(
            stack,
            dice.choice(habitat.things),
            habitat,
            dice,
            horizon,
            (dice.uniform(0.0, wide), dice.uniform(0.0, 1.0)),
            dice.uniform(0.05, 0.11),
        )


def shadow(stack: Stack, habitat: Habitat, x: float, y: float, half_width: float) -> None:
    tone = scaled(habitat.ground[1], 0.8)
    stack.scenery(CIRCLE * (half_width, 0.035) + (x, y), tone, tone)


def foreground(stack: Stack, habitat: Habitat, dice: Dice, at: tuple[float, float], size: float) -> None:
    """One thing in front of the creatures."""
    thing(
        stack,
        dice.choice([t for t in habitat.things if t not in ("cloud", "star", "moon", "dune", "trunk")]),
        habitat,
        dice,
        0.0,
        at,
        size,
    )


def _hills(
    stack: Stack, level: float, colour: Colour, dice: Dice, swell: float, foot: Colour | None = None
) -> None:
    xs = np.linspace(-0.1, stack.aspect + 0.1, 13)
    a, b, phase = dice.uniform(1.5, 4.0), dice.uniform(4.0, 8.0), dice.uniform(0.0, 6.3)
    ys = level + swell * np.sin(a * xs + phase) * 0.7 + swell * 0.3 * np.sin(b * xs)
    outline = np.concatenate([np.stack([xs, ys], 1), [[stack.aspect + 0.1, 1.1], [-0.1, 1.1]]])
    stack.scenery(outline, colour, foot or colour)


def thing(
    stack: Stack,
    kind: str,
    habitat: Habitat,
    dice: Dice,
    horizon: float,
    at: tuple[float, float],
    size: float,
) -> None:
    x, y = at
    base = max(y, horizon + 0.04)
    colour = scaled(habitat.thing, dice.uniform(0.88, 1.12))
    light = mixed(colour, (255, 255, 255), 0.25)

    def put(outline: Points, top: Colour, bottom: Colour | None = None) -> None:
        stack.scenery(outline * size + (x, base), top, bottom or top)

    if kind == "grass":
        for lean in (-0.5, 0.0, 0.5):
            put(
                np.array(
                    [(lean * 0.5 - 0.13, 0.0), (lean * 1.2, -0.9 + abs(lean) * 0.3), (lean * 0.5 + 0.13, 0.0)]
                ),
                colour,
            )
    elif kind == "flower":
        put(np.array([(-0.06, 0.0), (-0.06, -0.8), (0.06, -0.8), (0.06, 0.0)]), colour)
        petals = dice.choice(((250, 240, 240), (250, 200, 90), (236, 140, 170), (190, 160, 230)))
        put(CIRCLE * 0.32 + (0.0, -0.9), petals)
        put(CIRCLE * 0.13 + (0.0, -0.9), (240, 190, 70))
    elif kind == "bush":
        for dx, r in ((-0.5, 0.5), (0.5, 0.5), (0.0, 0.7)):
            put(CIRCLE * (r, r * 0.9) + (dx, -r * 0.7), light, colour)
    elif kind == "trunk":
        put(np.array([(-0.3, 0.0), (-0.2, -4.0), (0.2, -4.0), (0.3, 0.0)]) * 2, (118, 92, 70), (96, 74, 58))
    elif kind == "stone":
        put(
            CIRCLE * (0.75, 0.45) + (0.0, -0.25),
            mixed(habitat.ground[1], (150, 150, 156), 0.65),
            mixed(habitat.ground[1], (96, 96, 104), 0.65),
        )
    elif kind == "cactus":
        for box in (
            (-0.16, -1.5, 0.16, 0.0),
            (-0.55, -1.0, -0.33, -0.55),
            (-0.55, -0.7, 0.0, -0.5),
            (0.33, -1.25, 0.55, -0.8),
            (0.0, -0.95, 0.55, -0.75),
        ):
            put(
                np.array([(box[0], box[1]), (box[2], box[1]), (box[2], box[3]), (box[0], box[3])]),
                (116, 156, 96),
            )
    elif kind == "dune":
        put(
            np.array([(-1.6, 0.0), (-0.5, -0.4), (0.2, -0.5), (0.9, -0.25), (1.6, 0.0)]),
            scaled(habitat.ground[0], 1.03),
            habitat.ground[0],
        )
    elif kind == "fir":
        for k in range(3):
            put(
                np.array(
                    [
                        (-0.7 + 0.15 * k, -0.2 - 0.5 * k),
                        (0.0, -1.1 - 0.5 * k),
                        (0.7 - 0.15 * k, -0.2 - 0.5 * k),
                    ]
                ),
                light,
                colour,
            )
    elif kind == "weed":
        sway = dice.uniform(-0.3, 0.3)
        put(
            np.array(
                [
                    (-0.12, 0.0),
                    (0.1 + sway, -0.6),
                    (-0.15, -1.2),
                    (0.1 + sway, -1.9),
                    (0.12, -1.2),
                    (0.3 + sway, -0.6),
                    (0.15, 0.0),
                ]
            ),
            light,
            colour,
        )
    elif kind == "shell":
        put(
            np.array([(0.0, 0.0), (-0.4, -0.3), (-0.25, -0.55), (0.0, -0.62), (0.25, -0.55), (0.4, -0.3)])
            * 0.8,
            (250, 214, 200),
            (236, 170, 160),
        )
    elif kind == "cloud":
        for dx, r in ((-0.7, 0.4), (0.7, 0.4), (0.0, 0.6)):
            stack.scenery(
                (CIRCLE * (r * 1.3, r * 0.8) + (dx, 0.0)) * size + (x, y * horizon * 0.7),
                (250, 251, 253),
                mixed(habitat.sky[1], (255, 255, 255), 0.6),
            )
    elif kind == "bubble":
        stack.scenery(CIRCLE * size * 0.35 + (x, y), (190, 232, 244), (140, 206, 232))
    elif kind == "star":
        spark = np.array(
            [
                (0.0, -0.3),
                (0.07, -0.07),
                (0.3, 0.0),
                (0.07, 0.07),
                (0.0, 0.3),
                (-0.07, 0.07),
                (-0.3, 0.0),
                (-0.07, -0.07),
            ]
        )
        stack.scenery(spark * size + (x, y * horizon), (236, 232, 196), (236, 232, 196))
    elif kind == "moon":
        stack.scenery(CIRCLE * size * 0.7 + (x, y * horizon * 0.6), (240, 236, 210), (226, 220, 190))
