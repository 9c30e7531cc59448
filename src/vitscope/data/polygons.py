"""COCO's polygons drawn as COCO's own tools draw them, pixel for pixel, without trusting them.

The reference follows the outline on a grid five times as fine, and notes where it crosses the middle of a column of
pixels: down the columns, every crossing switches between outside and inside. A polygon that crosses itself is
therefore hollow where it overlaps itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

FINE = 5  # steps of the outline per pixel
LONGEST = 2_000_000  # steps; no real outline comes near it, and a hostile one would fill the memory


def rasterise(polygons: Sequence[np.ndarray], height: int, width: int) -> np.ndarray:
    """The union of polygons as bool (height, width). polygons: (2n,) x, y in pixels each.

    >>> rasterise([np.array([1.0, 0, 3, 0, 3, 2, 1, 2])], 2, 4).astype(int)
    array([[0, 1, 1, 0],
           [0, 1, 1, 0]])
    """
    union = np.zeros((height, width), dtype=bool)
    for polygon in polygons:
        union |= _inside(polygon, height, width)
    return union


def _inside(polygon: np.ndarray, height: int, width: int) -> np.ndarray:
    x, y = polygon[0::2], polygon[1::2]
    near = (x >= -width) & (x <= 2 * width) & (y >= -height) & (y <= 2 * height)
    if not near.all():  # also NaN
        raise ValueError("a polygon lies far outside the image")
    u, v = _outline((FINE * x + 0.5).astype(np.int64), (FINE * y + 0.5).astype(np.int64))
    across = np.flatnonzero(u[1:] != u[:-1])  # steps that change columns of the fine grid
    column = (np.maximum(u[across], u[across + 1]) - 1 + 0.5) / FINE - 0.5
    row = np.ceil((np.minimum(v[across], v[across + 1]) + 0.5) / FINE - 0.5).clip(0, height)
    middle = (column == np.floor(column)) & (column >= 0) & (column <= width - 1)
    crossings = column[middle].astype(np.int64) * height + row[middle].astype(np.int64)
    switches = np.bincount(crossings, minlength=height * width + 1)[:-1]  # the last is beyond the last pixel
    found: np.ndarray = (np.cumsum(switches) % 2 == 1).reshape(width, height).T
    return found


def _outline(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All points of the closed outline on the fine grid. x, y: int (k,) corners; returns int (m,) each.

    An edge is walked in single steps along its longer side. Both directions round alike, so that two polygons that
    share an edge meet without a gap: that is why edges are turned round before the points between are computed.
    """
    ends = np.roll(x, -1), np.roll(y, -1)
    dx, dy = np.abs(ends[0] - x), np.abs(ends[1] - y)
    flat = dx >= dy
    turned = np.where(flat, x > ends[0], y > ends[1])
    first_x, last_x = np.where(turned, ends[0], x), np.where(turned, x, ends[0])
    first_y, last_y = np.where(turned, ends[1], y), np.where(turned, y, ends[1])
    steps = np.maximum(dx, dy)
    slope = np.where(flat, last_y - first_y, last_x - first_x) / np.maximum(steps, 1)
    points = steps + 1
    if points.sum() > LONGEST:
        raise ValueError("a polygon's outline is too long to be one of an object")
    edge = np.repeat(np.arange(len(x)), points)
    step = np.arange(len(edge)) - np.repeat(np.cumsum(points) - points, points)
    step = np.where(turned[edge], steps[edge] - step, step)
    shorter = (np.where(flat, first_y, first_x)[edge] + slope[edge] * step + 0.5).astype(np.int64)
    longer = np.where(flat, first_x, first_y)[edge] + step
    return np.where(flat[edge], longer, shorter), np.where(flat[edge], shorter, longer)
