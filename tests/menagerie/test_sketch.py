"""The pencil: shapes with known areas and curves that pass through known points."""

from math import hypot, pi

import numpy as np
import pytest

from vitscope.menagerie.sketch import Sketch, between, chain, polar


def area(outline: np.ndarray) -> float:
    x, y = outline.T
    return abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1))) / 2


def test_a_blob_is_a_turned_ellipse() -> None:
    sketch = Sketch()
    sketch.blob("body", (1.0, -2.0), (0.5, 0.25), turn=90)
    outline = sketch.shapes[0].outline
    assert area(outline) == pytest.approx(pi * 0.5 * 0.25, rel=0.01)  # a 28-gon is 0.8 % smaller
    assert np.ptp(outline, axis=0) == pytest.approx([0.5, 1.0], abs=0.01)
    assert outline.mean(0) == pytest.approx([1.0, -2.0])


def test_a_straight_limb_is_a_bar_with_round_ends() -> None:
    sketch = Sketch()
    sketch.limb("leg", [(0, 0), (1, 0), (2, 0)], (0.1, 0.1, 0.1))
    outline = sketch.shapes[0].outline
    assert outline.min(0) == pytest.approx([-0.1, -0.1])
    assert outline.max(0) == pytest.approx([2.1, 0.1])
    assert area(outline) == pytest.approx(2 * 0.2 + pi * 0.1**2, rel=0.02)


def test_a_limb_runs_through_its_joints() -> None:
    joints = [(0.0, 0.0), (0.5, 0.4), (1.0, 0.1), (1.2, -0.5)]
    sketch = Sketch()
    sketch.limb("tail", joints, (0.0, 0.0, 0.0, 0.0))
    for joint in joints:
        assert np.abs(sketch.shapes[0].outline - joint).sum(1).min() < 1e-9


def test_a_smooth_patch_runs_through_its_corners_and_a_plain_one_is_them() -> None:
    corners = [(0.0, 0.0), (1.0, 0.1), (1.2, 1.0), (-0.1, 0.8)]
    sketch = Sketch()
    sketch.patch("wing", corners)
    sketch.patch("wing", corners, smooth=False)
    for corner in corners:
        assert np.abs(sketch.shapes[0].outline - corner).sum(1).min() < 1e-9
    assert sketch.shapes[1].outline.tolist() == [list(corner) for corner in corners]


def test_joined_shapes_share_a_group_and_others_do_not() -> None:
    sketch = Sketch()
    sketch.blob("body", (0, 0), (1, 1))
    sketch.blob("leg", (0, -1), (1, 1), join=True)
    sketch.blob("head", (1, 1), (1, 1))
    assert [shape.group for shape in sketch.shapes] == [1, 1, 2]


def test_chains_add_lengths_and_directions() -> None:
    points = chain((1.0, 1.0), (2.0, 0.0), (3.0, 90.0))
    assert np.array(points) == pytest.approx(np.array([(1, 1), (3, 1), (3, 4)]))
    assert polar((0.0, 0.0), 5.0, 36.8698976458) == pytest.approx((4.0, 3.0))
    assert between((0.0, 0.0), (4.0, 8.0), 0.25) == (1.0, 2.0)
    assert hypot(*polar((0.0, 0.0), 0.7, 123.0)) == pytest.approx(0.7)
