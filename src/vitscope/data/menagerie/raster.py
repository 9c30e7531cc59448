"""Fill a stack of polygons exactly: integer arithmetic only, so that every machine gives every pixel the same polygon."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FIXED = 16  # polygon vertices are integers in units of 1/16 canvas cell


def fill(polygons: Sequence[NDArray[np.int64]], height: int, width: int) -> NDArray[np.uint8]:
    """Which polygon covers the centre of each canvas cell: the last one wins, 0 where there is none.

    polygons: up to 255 closed outlines (n, 2) of (x, y) in 1/16 cells; the non-zero winding rule decides what is inside.
    Returns (height, width): 1 + the index of the topmost polygon.
    """
    canvas = np.zeros(height * width, np.uint8)
    if len(polygons) > 255:
        raise ValueError(f"a picture holds at most 255 polygons, not {len(polygons)}")
    if not polygons:
        return canvas.reshape(height, width)
    owner, row, column, turn = _crossings(polygons, height, width)
    # One sort puts the crossings of each polygon's row beside each other, left to right; the turn rides in the last bit.
    key = ((owner * height + row) * (width + 1) + column) * 2 + turn
    key.sort()
    winding = np.cumsum(((key & 1) << 1) - 1)  # returns to 0 at the end of each row of each polygon
    place = key >> 1
    inside = np.flatnonzero(winding[:-1])  # between crossing i and i + 1
    start, length = place[inside], place[inside + 1] - place[inside]
    line = start // (width + 1)  # polygon * height + row
    shape = line // height
    begin = start - line - shape * (height * width)  # flat cell index
    ends = np.cumsum(length)
    cells = np.arange(ends[-1] if len(ends) else 0) + np.repeat(begin - (ends - length), length)
    np.maximum.at(canvas, cells, np.repeat((shape + 1).astype(np.uint8), length))
    return canvas.reshape(height, width)


def _crossings(
    polygons: Sequence[NDArray[np.int64]], height: int, width: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Where edges cross the centre lines of canvas rows: polygon, row, first column to the right, direction (0 or 1)."""
    sizes = np.array([len(p) for p in polygons])
    start = np.concatenate(polygons)
    after = np.arange(1, len(start) + 1)
    last = np.cumsum(sizes)
    after[last - 1] = last - sizes
    end = start[after]
    down = start[:, 1] < end[:, 1]
    upper, lower = np.where(down[:, None], start, end), np.where(down[:, None], end, start)
    half = FIXED // 2
    # Row j has its centre at y = 16 j + 8; an edge crosses rows first <= j < stop.
    first = np.clip(-((half - upper[:, 1]) // FIXED), 0, height)
    stop = np.clip(-((half - lower[:, 1]) // FIXED), 0, height)
    count = stop - first
    total = np.cumsum(count)
    edge = np.repeat(np.arange(len(start)), count)
    row = np.arange(total[-1]) - np.repeat(total - count, count) + first[edge]
    dx, dy = (lower - upper).T
    run = row * FIXED + half - upper[edge, 1]
    scale = dy[edge]
    over = (upper[edge, 0] - half) * scale + run * dx[edge]
    column = np.clip(-(-over // (FIXED * scale)), 0, width)
    owner = np.repeat(np.arange(len(polygons)), sizes)[edge]
    return owner, row, column, down[edge].astype(np.int64)
