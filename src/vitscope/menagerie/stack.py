"""A picture before it is painted: a stack of inked polygons, each with the annotation that its pixels carry."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vitscope.menagerie.colours import Colour, Ink
from vitscope.menagerie.patterns import marked
from vitscope.menagerie.raster import FIXED, Integers, fill
from vitscope.menagerie.sketch import Points

SHADES = 64
"""Steps from light to shade down each polygon."""
SUPERSAMPLE = 3
"""Canvas cells per pixel edge; odd, so that a pixel's annotation is read at its very centre."""
OUTLINE = 1 / 96
"""Width of the dark outlines inside shapes, in picture heights."""

Cells = NDArray[np.uint8]


@dataclass(frozen=True)
class Coat:
    """A pattern laid over one creature: picture coordinates (x, y, 1) @ matrix = pattern coordinates (u, v)."""

    pattern: str
    matrix: Points  # (3, 2)


@dataclass
class Stack:
    """Polygons from back to front in picture units (1 = the height), and what to paint them with."""

    sky: Ink
    aspect: float = 1.0
    light: Points = field(default_factory=lambda: np.ones(3))  # factor on red, green, blue
    outlines: list[Points] = field(default_factory=list)  # each (corners, 2)
    inks: list[Ink] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    outlined: list[bool] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)  # 0 for none
    owners: list[int] = field(default_factory=list)  # 0 for nobody
    patterned: list[bool] = field(default_factory=list)
    coats: dict[int, Coat] = field(default_factory=dict)  # by owner

    def add(
        self, outline: Points, ink: Ink, group: int, outlined: bool, part: int, owner: int, patterned: bool
    ) -> None:
        """Lay a polygon on top. Polygons of one group show no outline between them; groups only grow."""
        self.outlines.append(outline)
        self.inks.append(ink)
        self.groups.append(group)
        self.outlined.append(outlined)
        self.parts.append(part)
        self.owners.append(owner)
        self.patterned.append(patterned)

    def scenery(self, outline: Points, top: Colour, bottom: Colour) -> None:
        """Something that is nobody's part and has no outline."""
        self.add(outline, Ink.plain(top, bottom), self.top_group, False, 0, 0, False)

    @property
    def top_group(self) -> int:
        return self.groups[-1] if self.groups else 0

    def paint(self, height: int, width: int) -> tuple[Cells, Cells, Cells]:
        """Image (height, width, 3), and part and owner of each pixel (height, width)."""
        rows, columns = height * SUPERSAMPLE, width * SUPERSAMPLE
        sizes = np.array([len(outline) for outline in self.outlines])
        vertices = np.rint(np.concatenate(self.outlines) * (rows * FIXED)).astype(np.int64)
        label = fill(vertices, sizes, rows, columns)
        kind = self._outline_cells(label, max(1, round(rows * OUTLINE)))
        for owner, coat in self.coats.items():
            if coat.pattern != "plain":
                self._lay_coat(owner, coat, label, kind)
        # Cells look up their colour in a table of (polygon, plain / marked / edge, shade); the shade depends on
        # polygon and row only.
        shade = self._shades(vertices, sizes, rows)  # (rows, polygons + 1)
        first = shade + np.arange(shade.shape[1], dtype=np.int32) * (3 * SHADES)
        line = np.arange(rows, dtype=np.int32)[:, None] * shade.shape[1]
        entry = first.ravel().take(label + line)
        entry += kind.astype(np.int32) * SHADES
        image = _pooled(self._table(), entry)
        centre = label[SUPERSAMPLE // 2 :: SUPERSAMPLE, SUPERSAMPLE // 2 :: SUPERSAMPLE]
        part, owners = np.array([0, *self.parts], np.uint8), np.array([0, *self.owners], np.uint8)
        return image, part[centre], owners[centre]

    def _outline_cells(self, label: Cells, reach: int) -> Cells:
        """2 where an outlined polygon lies within `reach` cells of something beneath it, else 0."""
        group = np.array([0, *self.groups], np.uint8).take(label)
        edge = _lowest_near(group, reach) < group
        found: Cells = (edge & np.array([False, *self.outlined]).take(label)).view(np.uint8) * np.uint8(2)
        return found

    def _lay_coat(self, owner: int, coat: Coat, label: Cells, kind: Cells) -> None:
        """Set kind to 1 where the pattern marks a cell of the owner's coat that is not outline."""
        wears = [p and o == owner for p, o in zip(self.patterned, self.owners, strict=True)]
        coated = np.array([False, *wears]).take(label)
        ys, xs = np.flatnonzero(coated.any(1)), np.flatnonzero(coated.any(0))
        if not len(ys):
            return
        window = np.s_[ys[0] : ys[-1] + 1, xs[0] : xs[-1] + 1]
        rows = len(label)
        # Pattern coordinates are affine in the cell; 10 fractional bits keep them exact in 32-bit integers.
        affine = np.rint(coat.matrix / [[rows], [rows], [1]] * 1024).astype(np.int64).tolist()
        (ux, vx), (uy, vy), (u0, v0) = affine
        y, x = (axis.astype(np.int32) for axis in np.ogrid[window])
        u, v = (x * ux + (y * uy + u0)) >> 10, (x * vx + (y * vy + v0)) >> 10
        cells = kind[window]
        cells += (coated[window] & (cells == 0) & marked(coat.pattern, u, v)).view(np.uint8)

    def _shades(self, vertices: Integers, sizes: Integers, rows: int) -> NDArray[np.int32]:
        """(rows, polygons + 1): how far down a polygon each row lies, 0 .. SHADES - 1; all are lit from above."""
        first = np.cumsum(sizes) - sizes
        low = np.maximum(np.minimum.reduceat(vertices[:, 1], first) // FIXED, 0)
        high = np.minimum(np.maximum.reduceat(vertices[:, 1], first) // FIXED + 1, rows)
        low, high = np.append(0, low), np.append(rows, high)  # the sky is the polygon beneath all others
        step = SHADES * 4096 // np.maximum(1, high - low)
        down = (np.arange(rows)[:, None] * step - low * step) >> 12
        found: NDArray[np.int32] = np.clip(down, 0, SHADES - 1).astype(np.int32)
        return found

    def _table(self) -> NDArray[np.uint64]:
        """Colour of (polygon, plain / marked / edge, shade), flat; red, green, blue in 12 bits each."""
        ramps = [self.sky.ramps, *(ink.ramps for ink in self.inks)]
        ends: NDArray[np.int32] = np.stack(ramps)[:, :, :, None]  # (n, 3, 2, 1, 3)
        down = np.arange(SHADES, dtype=np.int32)[:, None]
        colours: NDArray[np.int32] = (ends[:, :, 0] * (SHADES - 1 - down) + ends[:, :, 1] * down) // (SHADES - 1)
        light = np.rint(self.light * 256).astype(np.int32)
        lit = np.clip((colours * light) >> 8, 0, 255)  # (n, 3, SHADES, 3)
        found: NDArray[np.uint64] = (
            (lit.astype(np.uint64) << np.array([0, 12, 24], np.uint64)).sum(-1, dtype=np.uint64).ravel()
        )
        return found


def _pooled(table: NDArray[np.uint64], entry: NDArray[np.int32]) -> Cells:
    """Mean colour of each SUPERSAMPLE x SUPERSAMPLE block of table entries: (3h, 3w) -> (h, w, 3).

    Sums of nine bytes fit into 12 bits, so the three colours are added in one word.
    """
    cells = table.take(entry)
    rows = cells[0::3] + cells[1::3] + cells[2::3]
    total = rows[:, 0::3] + rows[:, 1::3] + rows[:, 2::3]
    channels = [(total >> np.uint64(shift) & np.uint64(4095)).astype(np.uint16) for shift in (0, 12, 24)]
    return ((np.stack(channels, -1) + 4) // 9).astype(np.uint8)


def _lowest_near(group: Cells, reach: int) -> Cells:
    """The minimum over an octagon of about `reach` cells around each cell."""
    for step in range(reach):
        lowest = group.copy()
        for here, there in ((np.s_[1:], np.s_[:-1]), (np.s_[:-1], np.s_[1:])):
            np.minimum(lowest[here], group[there], out=lowest[here])
            np.minimum(lowest[:, here], group[:, there], out=lowest[:, here])
            if step % 2:
                for across, beside in ((np.s_[1:], np.s_[:-1]), (np.s_[:-1], np.s_[1:])):
                    np.minimum(lowest[here, across], group[there, beside], out=lowest[here, across])
        group = lowest
    return group
