"""The pencil that species are drawn with: named, inked polygons, and the keypoints that sit on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from math import cos, pi, radians, sin

import numpy as np
from numpy.typing import NDArray

Point = tuple[float, float]
Points = NDArray[np.float64]

PARTS = ("body", "head", "leg", "tail", "ear", "wing", "eye", "mouth")
"""The vocabulary that all species share.

Ears are also horns and antennae, wings also fins, legs also arms, mouths also beaks and trunks.
"""

CIRCLE = np.array([(cos(2 * pi * i / 28), sin(2 * pi * i / 28)) for i in range(28)])
CAP = np.array([(cos(a), sin(a)) for a in (pi / 3, pi / 6, 0.0, -pi / 6, -pi / 3)])


@dataclass
class Shape:
    """One polygon. `ink` names a colour of whoever is drawn; shapes of one `group` show no outline between them."""

    outline: Points  # (n, 2)
    part: str
    ink: str
    group: int
    outlined: bool


@dataclass
class Keypoint:
    name: str
    at: Point
    part: str


@dataclass
class Sketch:
    """A creature in its own frame: facing right, y up, about two units long."""

    shapes: list[Shape] = field(default_factory=list)
    keypoints: list[Keypoint] = field(default_factory=list)
    _group: int = 0

    def _add(self, outline: Points, part: str, ink: str, join: bool, outlined: bool = True) -> None:
        self._group += not join
        self.shapes.append(Shape(outline, part, ink, self._group, outlined))

    def blob(
        self,
        part: str,
        at: Point,
        radii: Point,
        ink: str = "coat",
        *,
        turn: float = 0.0,
        join: bool = False,
        outlined: bool = True,
    ) -> None:
        """An ellipse, turned by degrees counter-clockwise."""
        c, s = cos(radians(turn)), sin(radians(turn))
        matrix = np.array([[c * radii[0], s * radii[0]], [-s * radii[1], c * radii[1]]])
        self._add(CIRCLE @ matrix + np.array(at), part, ink, join, outlined)

    def limb(
        self,
        part: str,
        points: Sequence[Point],
        widths: Sequence[float],
        ink: str = "coat",
        *,
        join: bool = False,
        outlined: bool = True,
    ) -> None:
        """A smooth, round-ended stroke through `points` whose half-width follows `widths`."""
        along, slope = _open_curve(len(points))
        bones = np.array([(x, y, w) for (x, y), w in zip(points, widths, strict=True)])
        line = along @ bones  # (m, 3)
        tangent = slope @ bones[:, :2]
        tangent /= np.sqrt((tangent**2).sum(1, keepdims=True)) + 1e-9
        normal = tangent[:, ::-1] * np.array([-1.0, 1.0])
        centre, width = line[:, :2], line[:, 2:]
        ahead = centre[-1] + width[-1] * (CAP[:, :1] * tangent[-1] + CAP[:, 1:] * normal[-1])
        behind = centre[0] - width[0] * (CAP[:, :1] * tangent[0] + CAP[:, 1:] * normal[0])
        left, right = centre + width * normal, centre - width * normal
        self._add(np.concatenate([left, ahead, right[::-1], behind]), part, ink, join, outlined)

    def patch(
        self,
        part: str,
        points: Sequence[Point],
        ink: str = "coat",
        *,
        smooth: bool = True,
        join: bool = False,
        outlined: bool = True,
    ) -> None:
        """A closed outline through `points`, rounded or with corners."""
        corners = np.array(points)
        self._add(_closed_curve(len(corners)) @ corners if smooth else corners, part, ink, join, outlined)

    def eye(self, at: Point, radius: float, name: str = "eye", *, look: Point = (0.25, -0.05)) -> None:
        self.blob("eye", at, (radius, radius), "white")
        pupil = (at[0] + look[0] * radius, at[1] + look[1] * radius)
        self.blob("eye", pupil, (0.62 * radius, 0.66 * radius), "black", outlined=False)
        glint = (pupil[0] + 0.22 * radius, pupil[1] + 0.25 * radius)
        self.blob("eye", glint, (0.2 * radius, 0.2 * radius), "white", outlined=False)
        self.mark(name, at, "eye")

    def mark(self, name: str, at: Point, part: str) -> None:
        """A keypoint: visible in a picture where its part is the topmost thing at that place."""
        self.keypoints.append(Keypoint(name, at, part))


def polar(start: Point, length: float, degrees: float) -> Point:
    return start[0] + length * cos(radians(degrees)), start[1] + length * sin(radians(degrees))


def chain(start: Point, *links: tuple[float, float]) -> list[Point]:
    """Joints of a limb: start, then each (length, absolute direction in degrees)."""
    points = [start]
    for length, degrees in links:
        points.append(polar(points[-1], length, degrees))
    return points


def between(a: Point, b: Point, share: float) -> Point:
    """The point that lies `share` of the way from a to b."""
    return a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share


def _catmull_rom(t: float) -> tuple[Points, Points]:
    value = np.array([-t + 2 * t**2 - t**3, 2 - 5 * t**2 + 3 * t**3, t + 4 * t**2 - 3 * t**3, -(t**2) + t**3]) / 2
    slope = np.array([-1 + 4 * t - 3 * t**2, -10 * t + 9 * t**2, 1 + 8 * t - 9 * t**2, -2 * t + 3 * t**2]) / 2
    return value, slope


@cache
def _open_curve(n: int, steps: int = 5) -> tuple[Points, Points]:
    """Matrices that turn n control points into points, and tangents, of the Catmull-Rom curve through them."""
    rows = [(min(i // steps, n - 2), i / steps - min(i // steps, n - 2)) for i in range(steps * (n - 1) + 1)]
    value, slope = np.zeros((len(rows), n)), np.zeros((len(rows), n))
    for r, (k, t) in enumerate(rows):
        for j, (v, s) in enumerate(zip(*_catmull_rom(t), strict=True)):
            column = min(max(k - 1 + j, 0), n - 1)
            value[r, column] += v
            slope[r, column] += s
    return value, slope


@cache
def _closed_curve(n: int, steps: int = 5) -> Points:
    value = np.zeros((steps * n, n))
    for r in range(steps * n):
        for j, v in enumerate(_catmull_rom(r % steps / steps)[0]):
            value[r, (r // steps - 1 + j) % n] += v
    return value
