"""J and F against the definitions of the official evaluation, written out with scikit-image, frame by frame."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import binary_dilation, gaussian_filter
from skimage.morphology import dilation, disk

from vitscope.tasks.davis_scores import boundary, boundary_accuracy, dilate, region_similarity


def blobs(count: int, size: tuple[int, int], seed: int, level: float = 0.0) -> np.ndarray:
    """Smooth random regions, some of them cut by the border."""
    noise = np.random.default_rng(seed).normal(size=(count, *size))
    return np.stack([gaussian_filter(n, 5) > level * 0.05 for n in noise])


def official_boundary(mask: np.ndarray) -> np.ndarray:
    """Pixel by pixel: differs from the right, the lower or the lower right neighbour; borders look one way only."""
    height, width = mask.shape
    edge = np.zeros_like(mask)
    for y in range(height):
        for x in range(width):
            right = mask[y, x + 1] if x + 1 < width else None
            below = mask[y + 1, x] if y + 1 < height else None
            corner = mask[y + 1, x + 1] if right is not None and below is not None else None
            edge[y, x] = any(other is not None and other != mask[y, x] for other in (right, below, corner))
    return edge


def official_f(truth: np.ndarray, predicted: np.ndarray) -> float:
    radius = int(np.ceil(0.008 * np.linalg.norm(truth.shape)))
    a, b = official_boundary(truth), official_boundary(predicted)
    near_a, near_b = (dilation(edge.astype(np.uint8), disk(radius)) > 0 for edge in (a, b))
    if not a.any() or not b.any():
        return float(not a.any() and not b.any())
    precision, recall = (b & near_a).sum() / b.sum(), (a & near_b).sum() / a.sum()
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


@pytest.mark.parametrize("size", [(48, 85), (31, 17), (60, 60)])
def test_boundaries_pixel_by_pixel(size: tuple[int, int]) -> None:
    for mask in blobs(4, size, seed=1):
        np.testing.assert_array_equal(boundary(mask), official_boundary(mask))


@pytest.mark.parametrize("radius", [1, 2, 3, 5, 8, 13])
def test_dilation_is_scikit_images(radius: int) -> None:
    masks = blobs(3, (70, 90), seed=radius) & (np.random.default_rng(0).random((3, 70, 90)) < 0.1)
    expected = np.stack([dilation(mask.astype(np.uint8), disk(radius)) > 0 for mask in masks])
    np.testing.assert_array_equal(dilate(masks, radius), expected)


def test_dilation_is_scipys_when_the_disk_is_larger_than_the_picture() -> None:
    mask = np.zeros((4, 9), bool)
    mask[1, 7] = True
    np.testing.assert_array_equal(dilate(mask, 6), binary_dilation(mask, disk(6)))


def test_j_and_f_of_many_layers_and_objects_at_once() -> None:
    truth = blobs(3, (60, 110), seed=2)  # three objects
    predicted = np.stack([np.roll(truth, shift, axis=-1) for shift in (0, 1, 4)] + [blobs(3, (60, 110), seed=5)])
    j, f = region_similarity(truth, predicted), boundary_accuracy(truth, predicted)
    assert j.shape == f.shape == (4, 3)
    for layer in range(4):
        for number in range(3):
            a, b = truth[number], predicted[layer, number]
            assert j[layer, number] == pytest.approx((a & b).sum() / (a | b).sum(), abs=1e-12)
            assert f[layer, number] == pytest.approx(official_f(a, b), abs=1e-12)
    assert (j[0] == 1).all()
    assert (f[0] == 1).all()


def test_noise_has_boundaries_everywhere_and_is_scored_the_same() -> None:
    generator = np.random.default_rng(3)
    truth, predicted = generator.random((2, 40, 52)) < 0.3
    assert boundary_accuracy(truth, predicted) == pytest.approx(official_f(truth, predicted), abs=1e-12)
