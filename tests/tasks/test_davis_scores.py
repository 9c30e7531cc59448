"""J, F and their statistics on masks small enough to work out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import binary_dilation

from vitscope.tasks.davis_scores import (
    boundary,
    boundary_accuracy,
    boundary_radius,
    dilate,
    frame_statistics,
    region_similarity,
)


def square(left: int, top: int, side: int, size: int = 20) -> np.ndarray:
    mask = np.zeros((size, size), bool)
    mask[top : top + side, left : left + side] = True
    return mask


def test_j_of_shifted_squares() -> None:
    # 4 x 4 squares, two columns apart: 8 pixels shared, 24 covered
    assert region_similarity(square(2, 2, 4), square(4, 2, 4)) == pytest.approx(8 / 24)


def test_an_absent_object_that_is_not_predicted_is_right() -> None:
    nothing = np.zeros((20, 20), bool)
    assert region_similarity(nothing, nothing) == 1
    assert boundary_accuracy(nothing, nothing) == 1


def test_an_absent_object_that_is_predicted_is_wrong_and_the_other_way_round() -> None:
    nothing, something = np.zeros((20, 20), bool), square(5, 5, 6)
    for a, b in ((nothing, something), (something, nothing)):
        assert region_similarity(a, b) == 0
        assert boundary_accuracy(a, b) == 0


def test_an_object_that_fills_the_frame_has_no_boundary() -> None:
    everything = np.ones((20, 20), bool)
    assert not boundary(everything).any()
    assert boundary_accuracy(everything, everything) == 1
    assert boundary_accuracy(everything, square(5, 5, 6)) == 0


def test_void_pixels_count_for_nothing() -> None:
    truth, predicted = square(2, 2, 4), square(4, 2, 4)
    void = np.zeros((20, 20), bool)
    void[:, 6:] = True  # hides the part that was predicted too much
    assert region_similarity(truth, predicted, void) == pytest.approx(8 / 16)
    void[:, :] = True
    assert region_similarity(truth, predicted, void) == 1
    assert boundary_accuracy(truth, predicted, void) == 1


def test_the_boundary_lies_towards_the_origin() -> None:
    mask = np.zeros((5, 6), bool)
    mask[2:4, 2:5] = True
    assert boundary(mask).astype(int).tolist() == [
        [0, 0, 0, 0, 0, 0],
        [0, 1, 1, 1, 1, 0],  # above the object, one step to the left too
        [0, 1, 0, 0, 1, 0],  # left of it, and its last column
        [0, 1, 1, 1, 1, 0],  # its last row
        [0, 0, 0, 0, 0, 0],
    ]


def test_an_object_at_the_lower_right_has_no_boundary_with_the_outside() -> None:
    mask = np.zeros((3, 3), bool)
    mask[2, 2] = True
    assert boundary(mask).astype(int).tolist() == [[0, 0, 0], [0, 1, 1], [0, 1, 0]]


def test_f_forgives_what_is_within_the_tolerance_and_nothing_beyond() -> None:
    assert boundary_radius((100, 100)) == 2
    truth = square(20, 20, 40, size=100)
    assert boundary_accuracy(truth, square(22, 20, 40, size=100)) == 1
    shifted = square(24, 20, 40, size=100)  # left and right sides are four pixels off, top and bottom overlap
    edges = boundary(truth).sum()
    # the top and bottom rows agree but for two columns at the far end of each; the sides are lost but near the corners
    assert 0.4 < boundary_accuracy(truth, shifted) < 0.6
    assert edges == 4 * 40


def test_f_by_hand() -> None:
    truth, predicted = np.zeros((10, 12), bool), np.zeros((10, 12), bool)  # radius 1
    truth[:, :4] = True  # boundary: column 3, ten pixels
    predicted[:5, :4] = True  # upper half only: column 3 of rows 0..4, and row 4 of columns 0..3
    # boundary of the prediction: rows 0..4 of column 3 and columns 0..3 of row 4: 5 + 4 - 1 = 8 pixels
    # precision: rows 0..4 of column 3 and column 2 of row 4 are within 1 of the truth: 6 of 8
    # recall: rows 0..5 of column 3: 6 of 10
    assert boundary_accuracy(truth, predicted) == pytest.approx(2 * 0.75 * 0.6 / (0.75 + 0.6))


def test_statistics_of_frames() -> None:
    values = np.array([1.0, 0.9, 0.8, 0.7, 0.5, 0.4, 0.3, 0.2])
    found = frame_statistics(values)
    assert found.mean == pytest.approx(0.6)
    assert found.recall == pytest.approx(4 / 8)  # 0.5 itself is no success
    # bins end at frames round(1, 2.75, 4.5, 6.25, 8) = 1, 3, 4 or 5, 6, 8: the first holds frames 1..3, the last 6..8
    assert found.decay == pytest.approx((1.0 + 0.9 + 0.8) / 3 - (0.4 + 0.3 + 0.2) / 3)


def test_statistics_of_a_single_frame() -> None:
    found = frame_statistics(np.array([[0.7], [0.2]]))
    assert found.mean.tolist() == [0.7, 0.2]
    assert found.decay.tolist() == [0, 0]


def test_long_sequences_do_not_wrap_around() -> None:
    values = np.concatenate([np.ones(600), np.zeros(200)])  # the official indices are bytes
    assert frame_statistics(values).decay == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("size", [(5, 1), (4, 63), (9, 64), (30, 65), (20, 130)])
@pytest.mark.parametrize("counted", ["NumPy 2", "NumPy 1"])
def test_rows_that_fill_whole_words_and_rows_that_do_not(
    size: tuple[int, int], counted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pixels are packed in words of 64: what leaves a row must not arrive in the next."""
    if counted == "NumPy 1":
        monkeypatch.delattr(np, "bitwise_count", raising=False)
    generator = np.random.default_rng(0)
    masks = generator.random((2, 3, *size)) < 0.1
    masks[0, 0, :, [0, -1]] = True  # both edges
    for radius in (1, 3, 8):
        disk = np.hypot(*np.mgrid[-radius : radius + 1, -radius : radius + 1]) <= radius
        expected = binary_dilation(masks, disk[None, None])
        assert np.array_equal(dilate(masks, radius), expected)
    truth, predicted = masks
    shared, either = (truth & predicted).sum((-1, -2)), (truth | predicted).sum((-1, -2))
    assert np.array_equal(region_similarity(truth, predicted), np.where(either == 0, 1, shared / np.maximum(either, 1)))
