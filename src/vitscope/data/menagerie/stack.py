"""A picture before it is painted: a stack of coloured polygons, each with the annotation that its pixels carry."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vitscope.data.menagerie.colours import Colour, scaled
from vitscope.data.menagerie.patterns import marked
from vitscope.data.menagerie.raster import FIXED, fill
from vitscope.data.menagerie.sketch import Points

SHADES = 64  # steps of the light-to-shade ramp inside each polygon
SUPERSAMPLE = 3  # canvas cells per pixel edge; odd, so that a pixel's annotation is read at its very centre


@dataclass(frozen=True)
class Coat:
    """A pattern laid over one creature: picture coordinates (x, y, 1) @ matrix = pattern coordinates (u, v)."""

    pattern: str
    matrix: Points  # (3, 2)


@dataclass
class Stack:
    """Polygons from back to front in picture units (1 = the height), and what to paint them with."""

    aspect: float = 1.0
    light: tuple[float, float, float] = (1.0, 1.0, 1.0)
    outlines: list[Points] = field(default_factory=list)
    tops: list[Colour] = field(default_factory=list)
    bottoms: list[Colour] = field(default_factory=list)
    marks: list[Colour] = field(default_factory=list)
    edges: list[Colour] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    outlined: list[bool] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    patterned: list[bool] = field(default_factory=list)
    coats: dict[int, Coat] = field(default_factory=dict)
    _sky: tuple[Colour, Colour] = ((200, 220, 240), (230, 240, 250))

    def sky(self, top: Colour, bottom: Colour) -> None:
        self._sky = (top, bottom)

    def scenery(self, outline: Points, top: Colour, bottom: Colour) -> None:
        """Something that is nobody's part and has no outline."""
        self.add(outline, top, bottom, group=self.groups[-1] if self.groups else 0, outlined=False)

    def add(
        self,
        outline: Points,
        top: Colour,
        bottom: Colour,
        *,
        group: int,
        outlined: bool,
        mark: Colour = (0, 0, 0),
        edge: Colour = (0, 0, 0),
        part: int = 0,
        owner: int = 0,
        patterned: bool = False,
    ) -> None:
        self.outlines.append(outline)
        self.tops.append(top)
        self.bottoms.append(bottom)
        self.marks.append(mark)
        self.edges.append(edge)
        self.groups.append(group)
        self.outlined.append(outlined)
        self.parts.append(part)
        self.owners.append(owner)
        self.patterned.append(patterned)

    def paint(
        self, height: int, width: int
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
        """Image (h, w, 3), part of each pixel (h, w) with 0 for none, and owner of each pixel (h, w) with 0 for nobody."""
        rows, columns = height * SUPERSAMPLE, width * SUPERSAMPLE
        unit = rows * FIXED
        polygons = [np.rint(outline * unit).astype(np.int64) for outline in self.outlines]
        label = fill(polygons, rows, columns)
        kind = self._edge_kind(label, max(1, round(rows / 96)))
        self._lay_coats(label, kind, rows)
        shade = self._shade(label, polygons, rows)
        table = self._table()
        index = (label.astype(np.int32) * 3 + kind) * SHADES + shade
        image = _pool(table[index])
        centre = label[SUPERSAMPLE // 2 :: SUPERSAMPLE, SUPERSAMPLE // 2 :: SUPERSAMPLE]
        part, owner = np.array([0, *self.parts], np.uint8), np.array([0, *self.owners], np.uint8)
        return image, part[centre], owner[centre]

    def _edge_kind(self, label: NDArray[np.uint8], reach: int) -> NDArray[np.uint8]:
        """2 where a polygon with an outline lies within `reach` cells of something beneath it, else 0."""
        group = np.array([0, *self.groups], np.uint8)[label]
        lowest = _lowest_near(group, reach)
        return ((lowest < group) & np.array([False, *self.outlined])[label]).astype(np.uint8) * np.uint8(2)

    def _lay_coats(self, label: NDArray[np.uint8], kind: NDArray[np.uint8], rows: int) -> None:
        for owner, coat in self.coats.items():
            if coat.pattern == "plain":
                continue
            member = np.array(
                [False] + [p and o == owner for p, o in zip(self.patterned, self.owners, strict=True)]
            )
            where = member[label]
            ys, xs = np.flatnonzero(where.any(1)), np.flatnonzero(where.any(0))
            if not len(ys):
                continue
            top, bottom, left, right = ys[0], ys[-1] + 1, xs[0], xs[-1] + 1
            # Pattern coordinates are affine in the cell: 10 fractional bits keep them exact in 32-bit integers.
            (ux, vx), (uy, vy), (u0, v0) = (
                np.rint(coat.matrix / [[rows], [rows], [1]] * 1024).astype(np.int64).tolist()
            )
            x, y = (
                np.arange(left, right, dtype=np.int32)[None],
                np.arange(top, bottom, dtype=np.int32)[:, None],
            )
            u, v = (x * ux + y * uy + u0) >> 10, (x * vx + y * vy + v0) >> 10
            window = kind[top:bottom, left:right]
            window += (where[top:bottom, left:right] & (window == 0) & marked(coat.pattern, u, v)).view(
                np.uint8
            )

    def _shade(
        self, label: NDArray[np.uint8], polygons: list[NDArray[np.int64]], rows: int
    ) -> NDArray[np.int32]:
        """How far down its own polygon each cell lies, 0 .. SHADES - 1: creatures are lit from above."""
        tops = [0] + [max(0, int(p[:, 1].min()) // FIXED) for p in polygons]
        ends = [rows] + [min(rows, int(p[:, 1].max()) // FIXED + 1) for p in polygons]
        step = np.array(
            [SHADES * 4096 // max(1, end - top) for top, end in zip(tops, ends, strict=True)], np.int32
        )
        start = np.array(tops, np.int32) * step
        down = (np.arange(rows, dtype=np.int32)[:, None] * step[label] - start[label]) >> 12
        return np.clip(down, 0, SHADES - 1)

    def _table(self) -> NDArray[np.uint8]:
        """Colour of (polygon, plain / marked / edge, shade), flattened to rows: ((polygons + 1) * 3 * SHADES, 3)."""
        plain = np.array([self._sky, *zip(self.tops, self.bottoms, strict=True)], np.int32)  # (n, 2, 3)
        mark = np.array(
            [[(0, 0, 0)] * 2, *([scaled(m, 1.08), scaled(m, 0.86)] for m in self.marks)], np.int32
        )
        edge = np.array([[(0, 0, 0)] * 2, *([e, e] for e in self.edges)], np.int32)
        ends = np.stack([plain, mark, edge], 1)[:, :, :, None]  # (n, 3, 2, 1, 3)
        ramp = np.arange(SHADES, dtype=np.int32)[:, None]
        colours = (ends[:, :, 0] * (SHADES - 1 - ramp) + ends[:, :, 1] * ramp) // (
            SHADES - 1
        )  # (n, 3, SHADES, 3)
        lit = colours * np.rint(np.array(self.light) * 256).astype(np.int32) >> 8
        return np.clip(lit, 0, 255).astype(np.uint8).reshape(-1, 3)


def _lowest_near(group: NDArray[np.uint8], reach: int) -> NDArray[np.uint8]:
    """The minimum over an octagon of about `reach` cells around each cell."""
    lowest = group
    for step in range(reach):
        padded = np.pad(lowest, 1, mode="edge")
        across = np.minimum(
            np.minimum(padded[1:-1, :-2], padded[1:-1, 2:]), np.minimum(padded[:-2, 1:-1], padded[2:, 1:-1])
        )
        if step % 2:
            across = np.minimum(
                across,
                np.minimum(
                    np.minimum(padded[:-2, :-2], padded[2:, 2:]), np.minimum(padded[:-2, 2:], padded[2:, :-2])
                ),
            )
        lowest = np.minimum(lowest, across)
    return lowest


def _pool(cells: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Mean of each SUPERSAMPLE x SUPERSAMPLE block: (3h, 3w, 3) -> (h, w, 3)."""
    rows = cells[0::3].astype(np.uint16) + cells[1::3] + cells[2::3]
    total = rows[:, 0::3] + rows[:, 1::3] + rows[:, 2::3]
    return ((total + 4) // 9).astype(np.uint8)
