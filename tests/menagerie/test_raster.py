"""The polygon filler against a point-by-point winding number in exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitscope.menagerie.raster import fill

HEIGHT, WIDTH = 7, 9


def winding_number(corners: list[tuple[int, int]], x: int, y: int) -> int:
    """How often a closed polygon winds about a point: upward and downward crossings to the left of it."""
    turns = 0
    for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1], strict=True):
        if (y0 <= y) != (y1 <= y) and Fraction(y - y0, y1 - y0) * (x1 - x0) + x0 <= x:
            turns += 1 if y1 > y0 else -1
    return turns


corner = st.tuples(st.integers(-40, WIDTH * 16 + 40), st.integers(-40, HEIGHT * 16 + 40))


@given(st.lists(st.lists(corner, min_size=3, max_size=9), min_size=1, max_size=5))
@settings(max_examples=150, deadline=None)
def test_every_cell_shows_the_topmost_polygon_that_winds_about_its_centre(
    polygons: list[list[tuple[int, int]]],
) -> None:
    # Vertices at cell centres lie on the edge of the question; moving them keeps the oracle's convention simple.
    polygons = [[(x, y + (y % 16 == 8)) for x, y in polygon] for polygon in polygons]
    label = fill(np.concatenate(polygons), np.array([len(p) for p in polygons]), HEIGHT, WIDTH)
    for row in range(HEIGHT):
        for column in range(WIDTH):
            over = [winding_number(p, 16 * column + 8, 16 * row + 8) != 0 for p in polygons]
            expected = max((i + 1 for i, covers in enumerate(over) if covers), default=0)
            assert label[row, column] == expected


def test_neighbours_share_an_edge_without_gap_or_overlap() -> None:
    left = np.array([(0, 0), (37, 0), (81, 112), (0, 112)])
    right = np.array([(37, 0), (144, 0), (144, 112), (81, 112)])
    alone = [fill(p, np.array([4]), HEIGHT, WIDTH) for p in (left, right)]
    assert (alone[0] + alone[1] == 1).all()


def test_a_stroke_that_crosses_itself_is_filled() -> None:
    bow = np.array([(0, 0), (144, 112), (144, 0), (0, 112)])  # two triangles of opposite direction
    label = fill(bow, np.array([4]), HEIGHT, WIDTH)
    assert label[3, 0] == label[3, 8] == 1
    assert label[0, 4] == label[6, 4] == 0


def test_no_polygon_in_sight_leaves_the_canvas_empty() -> None:
    away = np.array([(-90, -90), (-20, -90), (-20, -20)])
    assert not fill(away, np.array([3]), HEIGHT, WIDTH).any()


def test_more_polygons_than_labels_are_refused() -> None:
    triangle = np.array([(0, 0), (16, 0), (0, 16)])
    with pytest.raises(ValueError, match="at most 255"):
        fill(np.tile(triangle, (256, 1)), np.full(256, 3), HEIGHT, WIDTH)
