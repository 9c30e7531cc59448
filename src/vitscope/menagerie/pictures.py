"""Scenes become pictures: the image and every annotation, all read from one label map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vitscope.core.errors import VitscopeError
from vitscope.menagerie.captions import caption
from vitscope.menagerie.colours import PALETTE, Ink, inks
from vitscope.menagerie.dice import Dice
from vitscope.menagerie.habitats import HABITAT, backdrop, foreground, shadow
from vitscope.menagerie.patterns import PERIOD
from vitscope.menagerie.scenes import Actor, Scene
from vitscope.menagerie.sketch import PARTS, Keypoint, Points, Sketch
from vitscope.menagerie.species import SPECIES
from vitscope.menagerie.stack import Coat, Stack
from vitscope.menagerie.stance import footing, placement


@dataclass(frozen=True)
class SeenKeypoint:
    """A named point in pixels (pixel centres at .5), visible if its part is the topmost thing there."""

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
    if not 16 <= size <= 2048:
        raise VitscopeError(f"pictures of {size} pixels cannot be drawn: choose a size from 16 to 2048")
    dice = Dice("menagerie", "scenery", scene.scenery)
    habitat = HABITAT[scene.habitat]
    stack = Stack(Ink.plain(*habitat.sky), aspect=scene.aspect, light=np.array(scene.light))
    backdrop(stack, habitat, dice, scene.horizon, scene.clutter)
    for actor in scene.actors:
        x, y, half_width = footing(actor)
        if y > scene.horizon:
            shadow(stack, habitat, x, y, half_width)
    sketches = [_enter(stack, actor, owner) for owner, actor in enumerate(scene.actors, start=1)]
    for cover in scene.covers:
        foreground(stack, habitat, dice, cover)
    image, parts, owners = stack.paint(size, round(size * scene.aspect))
    keypoints = tuple(
        _seen(sketch.keypoints, placement(actor), size, np.where(owners == owner, parts, 0))
        for owner, (actor, sketch) in enumerate(zip(scene.actors, sketches, strict=True), start=1)
    )
    return Picture(image, parts, owners, keypoints, scene)


def _enter(stack: Stack, actor: Actor, owner: int) -> Sketch:
    """Draw a creature onto the stack."""
    who = actor.individual
    sketch = Sketch()
    SPECIES[who.species].draw(sketch, who.build, actor.pose)
    matrix, offset = placement(actor)
    colours = inks(PALETTE[who.palette], who.shift, {shape.ink for shape in sketch.shapes})
    sizes = [len(shape.outline) for shape in sketch.shapes]
    corners = np.concatenate([shape.outline for shape in sketch.shapes]) @ matrix + offset
    beneath = stack.top_group
    for shape, end in zip(sketch.shapes, np.cumsum(sizes), strict=True):
        stack.add(
            corners[end - len(shape.outline) : end],
            colours[shape.ink],
            group=beneath + 1 + shape.group,
            outlined=shape.outlined,
            part=1 + PARTS.index(shape.part),
            owner=owner,
            patterned=shape.ink == "coat",
        )
    # Picture units to pattern units: undo the creature's place, lean and size.
    back = np.linalg.inv(matrix) * (who.grain[0] * PERIOD)
    phase = np.array(who.grain[1:]) * PERIOD - offset @ back
    stack.coats[owner] = Coat(who.pattern, np.concatenate([back, [phase]]))
    return sketch


def _seen(
    keypoints: list[Keypoint], place: tuple[Points, Points], size: int, parts: NDArray[np.uint8]
) -> tuple[SeenKeypoint, ...]:
    """Keypoints in pixels. parts: (h, w) what is seen of their creature."""
    height, width = parts.shape
    seen = []
    for keypoint in keypoints:
        x, y = ((np.array(keypoint.at) @ place[0] + place[1]) * size).tolist()
        row, column = int(y // 1), int(x // 1)
        inside = 0 <= row < height and 0 <= column < width
        visible = inside and parts[row, column] == 1 + PARTS.index(keypoint.part)
        seen.append(SeenKeypoint(keypoint.name, x, y, bool(visible)))
    return tuple(seen)
