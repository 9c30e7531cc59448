"""Short films: two creatures walk, bend, pass behind each other and behind something that stands in front."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import pi, sin

from vitscope.menagerie.dice import Dice
from vitscope.menagerie.habitats import HABITATS
from vitscope.menagerie.pictures import Picture, render
from vitscope.menagerie.scenes import Actor, Cover, Individual, Scene
from vitscope.menagerie.species import POSE, SPECIES
from vitscope.menagerie.world import World


@dataclass(frozen=True)
class _Walk:
    """One creature's way through a film."""

    who: Individual
    start: tuple[float, float]
    stop: tuple[float, float]
    size: tuple[float, float]  # first and last frame
    turn: tuple[float, float]
    flip: bool
    base: tuple[float, ...]
    swing: tuple[float, ...]
    phase: tuple[float, ...]
    beats: float  # strides in the film

    def at(self, t: float) -> Actor:
        """The actor at time t in [0, 1]."""
        pose = tuple(
            max(-1.0, min(1.0, b + 0.6 * s * sin(2 * pi * (self.beats * t + p / 2))))
            for b, s, p in zip(self.base, self.swing, self.phase, strict=True)
        )
        step = 0.015 * sin(4 * pi * self.beats * t)
        x, y = (a + (b - a) * t for a, b in zip(self.start, self.stop, strict=True))
        size, turn = (a + (b - a) * t for a, b in (self.size, self.turn))
        return Actor(self.who, pose, (x, y + step), size, turn, self.flip)


def film(world: World, split: str, index: int, frames: int = 20, aspect: float = 1.75) -> tuple[Scene, ...]:
    """The scenes of one film. Even films have one creature, odd ones two that cross; every film has an occluder."""
    dice = Dice("menagerie", world.seed, "film", split, index)
    duo = index % 2 == 1
    walks = []
    leftward = dice.chance(0.5)
    for k in range(2 if duo else 1):
        # Number the cast so that all species appear, and two in one film differ.
        who = world.individual(f"{split}-cast", index * 5 + k * (1 + dice.below(len(SPECIES) - 1)))
        walks.append(_walk(who, dice, leftward ^ (k == 1), aspect, 0.1 * k - 0.05 * duo))
    horizon = dice.uniform(0.25, 0.5)
    hidden = dice.uniform(0.4, 0.6) * aspect
    cover = Cover(hidden, dice.uniform(0.88, 0.96), dice.uniform(0.22, 0.3), dice.choice(("stone", "bush")))
    glow = dice.uniform(0.9, 1.05)
    still = Scene(
        name=f"{split}-film-{index:03d}",
        actors=(),
        habitat=dice.choice(HABITATS).name,
        scenery=f"{world.seed}/{split}/film/{index}",
        horizon=horizon,
        clutter=round(4 * aspect),
        covers=(cover,),
        light=(glow, glow, glow),
        aspect=aspect,
    )
    return tuple(
        replace(
            still,
            name=f"{still.name}-{f:02d}",
            actors=tuple(walk.at(f / max(1, frames - 1)) for walk in walks),
        )
        for f in range(frames)
    )


def play(scenes: tuple[Scene, ...], size: int = 64) -> tuple[Picture, ...]:
    """Render each frame; Picture.owners holds the instance of each pixel, the same number through the film."""
    return tuple(render(scene, size) for scene in scenes)


def _walk(who: Individual, dice: Dice, leftward: bool, aspect: float, drop: float) -> _Walk:
    size = dice.uniform(0.5, 0.62)
    path = [dice.uniform(0.26, 0.34) * aspect, dice.uniform(0.66, 0.74) * aspect]
    if leftward:
        path.reverse()
    level = dice.uniform(0.52, 0.6) + drop
    return _Walk(
        who=who,
        start=(path[0], level),
        stop=(path[1], level + dice.uniform(-0.06, 0.06)),
        size=(size, size * dice.uniform(0.85, 1.18)),
        turn=(dice.uniform(-10.0, 10.0), dice.uniform(-10.0, 10.0)),
        flip=leftward and not SPECIES[who.species].symmetric,
        base=tuple(0.5 * s for s in dice.signs(POSE)),
        swing=dice.signs(POSE),
        phase=dice.signs(POSE),
        beats=dice.uniform(1.2, 2.2),
    )
