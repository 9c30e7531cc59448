"""Scenes become pictures: the image and every annotation, all read from one label map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vitscope.data.menagerie.captions import caption
from vitscope.data.menagerie.colours import PALETTE, Ink, inks
from vitscope.data.menagerie.dice import Dice
from vitscope.data.menagerie.habitats import HABITAT, backdrop, foreground, shadow
from vitscope.data.menagerie.scenes import Actor, Scene, footing, frame, pose_matrix
from vitscope.data.menagerie.sketch import PARTS, Sketch
from vitscope.data.menagerie.species import SPECIES
from vitscope.data.menagerie.stack import Coat, Stack


@dataclass(frozen=True)
class SeenKeypoint:
    """A named point in pixels (pixel centres are at .5); visible where its part is the topmost thing at that place."""

    name: str
    x: float
    y: float
    visible: bool


@dataclass(frozen=True)
class Picture:
    image: NDArray[np.uint8]  # (h, w, 3)
    parts: NDArray[np.uint8]  # (h, w): 0 background, else 1 + index into PARTS
    owners: NDArray[np.uint8]  # (h, w): 0 background, else 1 + index into scene.actors
    keypoints: tuple[tuple[SeenKeypoint, ...], ...]  # of each actor
    scene: Scene

    @property
    def mask(self) -> NDArray[np.bool_]:
        """(h, w): all creatures."""
        return self.owners > 0

    @property
    def species(self) -> int:
        """Of the actor in front."""
        return self.scene.actors[-1].individual.species

    @property
    def caption(self) -> str:
        return caption(self.scene)


def render(scene: Scene, size: int = 64) -> Picture:
    """Paint a scene `size` pixels high (and size * scene.aspect wide)."""
    dice = Dice("menagerie", "scenery", scene.scenery)
    habitat = HABITAT[scene.habitat]
    stack = Stack(Ink.plain(*habitat.sky), aspect=scene.aspect, light=np.array(scene.light))
    backdrop(stack, habitat, dice, scene.horizon, scene.clutter)
    for actor in scene.actors:
        x, y, half_width = footing(actor)
        if y > scene.horizon:
            shadow(stack, habitat, x, y, half_width)
    points = [_enter(stack, actor, owner) for owner, actor in enumerate(scene.actors, start=1)]
    for x, y, extent in scene.cover:
        foreground(stack, habitat, dice, (x, y), extent)
    image, parts, owners = stack.paint(size, round(size * scene.aspect))
    seen = tuple(
        tuple(_seen(name, x * size, y * size, part, owner, parts, owners) for name, x, y, part in of_actor)
        for owner, of_actor in enumerate(points, start=1)
    )
    return Picture(image, parts, owners, seen, scene)


def _seen(
    name: str, x: float, y: float, part: int, owner: int, parts: NDArray[np.uint8], owners: NDArray[np.uint8]
) -> SeenKeypoint:
    height, width = parts.shape
    column, row = int(x // 1), int(y // 1)
    inside = 0 <= column < width and 0 <= row < height
    return SeenKeypoint(
        name, x, y, bool(inside and parts[row, column] == part and owners[row, column] == owner)
    )


def _enter(stack: Stack, actor: Actor, owner: int) -> list[tuple[str, float, float, int]]:
    """Put a creature on the stack; returns its keypoints (name, x, y, part) in picture units."""
    who = actor.individual
    species = SPECIES[who.species]
    sketch = Sketch()
    species.draw(sketch, who.build, actor.pose)
    (cx, cy), longer = frame(species)
    matrix = pose_matrix(actor.size / longer, actor.turn, actor.stretch, actor.flip)
    offset = np.array(actor.place) - np.array([cx, cy]) @ matrix
    colours = inks(PALETTE[who.palette], who.shift)
    outlines = np.concatenate([shape.outline for shape in sketch.shapes]) @ matrix + offset
    ends = np.cumsum([len(shape.outline) for shape in sketch.shapes])
    beneath = stack.top_group
    for shape, end in zip(sketch.shapes, ends, strict=True):
        stack.add(
            outlines[end - len(shape.outline) : end],
            colours[shape.ink],
            group=beneath + 1 + shape.group,
            outlined=shape.outlined,
            part=1 + PARTS.index(shape.part),
            owner=owner,
            patterned=shape.ink == "coat",
        )
    stack.coats[owner] = Coat(who.pattern, _coat_matrix(matrix, offset, who.grain))
    return [
        (k.name, *(np.array(k.at) @ matrix + offset).tolist(), 1 + PARTS.index(k.part))
        for k in sketch.keypoints
    ]


def _coat_matrix(
    matrix: NDArray[np.float64], offset: NDArray[np.float64], grain: tuple[float, float, float]
) -> NDArray[np.float64]:
    """(3, 2): picture units to pattern units, undoing the creature's place, lean and size."""
    back = np.linalg.inv(matrix) * (grain[0] * 1024)
    return np.concatenate([back, [np.array(grain[1:]) * 1024 - offset @ back]])
