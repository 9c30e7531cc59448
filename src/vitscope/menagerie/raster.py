"""Fill a stack of polygons exactly: integer arithmetic only, so every machine gives every cell the same polygon."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FIXED = 16
"""Polygon vertices are integers in units of 1/16 canvas cell."""

Integers = NDArray[np.int64]


def fill(vertices: Integers, sizes: Integers, height: int, width: int) -> NDArray[np.uint8]:
    """Which polygon covers the centre of each canvas cell: the last one wins, 0 where there is none.

    vertices: (v, 2) corners (x, y) of up to 255 closed polygons, one after the other, in 1/16 cells;
    sizes: (n,) corners of each polygon. The non-zero winding rule decides what is inside.
    Returns (height, width): 1 + the index of the topmost polygon.

    >>> square = np.array([(0, 0), (32, 0), (32, 32), (0, 32)])
    >>> fill(np.concatenate([square, square + 16]), np.array([4, 4]), 3, 4).tolist()
    [[1, 1, 0, 0], [1, 2, 2, 0], [0, 2, 2, 0]]
    """
    if len(sizes) > 255:
        raise ValueError(f"a picture holds at most 255 polygons, not {len(sizes)}")
    canvas = np.zeros(height * width, np.uint8)
    line, column, downward = _crossings(vertices, sizes, height, width)
    # One sort puts the crossings of each row of each polygon side by side, left to right; the direction rides
    # in the last bit.
    key = (line * (width + 1) + column) * 2 + downward
    key.sort()
    winding = np.cumsum(((key & 1) << 1) - 1)  # back at 0 at the end of each row of each polygon
    inside = np.flatnonzero(winding)  # between crossing i and i + 1
    place = key >> 1
    start = place[inside]
    length = place[inside + 1] - start
    line = start // (width + 1)
    polygon = line // height
    begin = start - line - polygon * (height * width)  # flat index of the first cell of the run
    runs = np.cumsum(length)
    cells = np.arange(runs[-1] if len(runs) else 0) + np.repeat(begin - (runs - length), length)
    np.maximum.at(canvas, cells, np.repeat((polygon + 1).astype(np.uint8), length))
    return canvas.reshape(height, width)


def _crossings(vertices: Integers, sizes: Integers, height: int, width: int) -> tuple[Integers, Integers, Integers]:
    """Where edges cross the centre lines of canvas rows.

    Returns (c,) each: polygon * height + row, the first column whose centre is not left of the crossing, and
    whether the edge runs downwards (0 or 1).
    """
    last = np.cumsum(sizes)
    following = np.arange(1, len(vertices) + 1)
    following[last - 1] = last - sizes
    (x0, y0), (x1, y1) = vertices.T, vertices[following].T
    downward = y0 < y1
    top, bottom, left, right = (np.where(downward, a, b) for a, b in ((y0, y1), (y1, y0), (x0, x1), (x1, x0)))
    half = FIXED // 2
    # Row j has its centre at y = 16 j + 8; an edge crosses rows first <= j < stop.
    first = np.clip((top - half + FIXED - 1) // FIXED, 0, height)
    stop = np.clip((bottom - half + FIXED - 1) // FIXED, 0, height)
    count = stop - first
    ends = np.cumsum(count)
    edge = np.repeat(np.arange(len(vertices)), count)
    row = np.arange(len(edge)) + (first - ends + count)[edge]
    rise = (bottom - top)[edge]
    # The crossing is at left + (y - top) * (right - left) / rise; both sides of the division stay integers.
    over = (left - half)[edge] * rise + (row * FIXED + (half - top)[edge]) * (right - left)[edge]
    column = np.clip(-(-over // (FIXED * rise)), 0, width)
    polygon = np.repeat(np.arange(len(sizes)), sizes)[edge]
    return polygon * height + row, column, downward[edge].astype(np.int64)
