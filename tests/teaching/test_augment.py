"""Augmentations against torch's, scipy's and hand-made resampling and colour."""

from __future__ import annotations

import pytest
import torch
from scipy.ndimage import gaussian_filter1d
from torch.nn import functional as F

from vitscope.teaching.augment import (
    Augmentation,
    blurring_matrices,
    hue_matrices,
    random_boxes,
    resampling_matrices,
    saturation_matrices,
    to_float,
)


@pytest.mark.parametrize(("source", "target"), [(16, 16), (16, 7), (16, 40), (33, 8)])
def test_resampling_is_antialiased_bilinear_interpolation(source: int, target: int) -> None:
    image = torch.rand(1, 1, source, source)
    rows = resampling_matrices(torch.zeros(1), torch.full((1,), float(source)), source, target)
    expected = F.interpolate(image, (target, target), mode="bilinear", antialias=True, align_corners=False)
    torch.testing.assert_close(rows[0] @ image[0, 0] @ rows[0].T, expected[0, 0], atol=1e-5, rtol=1e-5)


def test_a_crop_shows_its_part_of_the_image() -> None:
    image = torch.rand(20)
    matrix = resampling_matrices(torch.tensor([4.0]), torch.tensor([8.0]), 20, 8)[0]
    torch.testing.assert_close(matrix @ image, image[4:12])


def test_blur_is_scipys_gaussian_away_from_the_borders() -> None:
    line = torch.rand(64, dtype=torch.float64)
    blurred = blurring_matrices(torch.tensor([1.3]), 64)[0].double() @ line
    expected = torch.from_numpy(gaussian_filter1d(line.numpy(), 1.3, truncate=9))
    torch.testing.assert_close(blurred[12:-12], expected[12:-12], atol=1e-6, rtol=0)


def test_no_blur_is_the_identity() -> None:
    torch.testing.assert_close(blurring_matrices(torch.zeros(1), 5)[0], torch.eye(5))


def test_a_third_of_a_turn_sends_red_to_green_and_keeps_grey() -> None:
    matrix = hue_matrices(torch.tensor([1 / 3]))[0]
    torch.testing.assert_close(matrix @ torch.tensor([1.0, 0, 0]), torch.tensor([0.0, 1, 0]), atol=1e-6, rtol=0)
    torch.testing.assert_close(matrix @ torch.full((3,), 0.4), torch.full((3,), 0.4))


def test_saturation_zero_is_luma_and_one_is_unchanged() -> None:
    colour = torch.tensor([0.2, 0.5, 0.9])
    grey, same = saturation_matrices(torch.tensor([0.0, 1.0]))
    torch.testing.assert_close(grey @ colour, torch.full((3,), 0.299 * 0.2 + 0.587 * 0.5 + 0.114 * 0.9))
    torch.testing.assert_close(same @ colour, colour)


def test_boxes_lie_inside_and_have_the_wanted_areas() -> None:
    torch.manual_seed(0)
    top, left, tall, wide = random_boxes(5000, (30, 60), (0.2, 0.9), (3 / 4, 4 / 3), torch.device("cpu"))
    assert (top >= 0).all()
    assert (top + tall <= 30 + 1e-4).all()
    assert (left + wide <= 60 + 1e-4).all()
    share = tall * wide / (30 * 60)
    assert 0.2 <= share.min() < 0.21
    assert 0.89 < share.max() <= 0.9001
    assert share.mean() == pytest.approx(0.55, abs=0.01)


def test_the_plain_augmentation_changes_nothing() -> None:
    images = to_float(torch.randint(0, 256, (3, 3, 12, 12), dtype=torch.uint8))
    torch.testing.assert_close(Augmentation(flip=0)(images, (12, 12)), images)


def test_a_flip_mirrors_the_columns() -> None:
    images = torch.rand(4, 3, 8, 8)
    torch.testing.assert_close(Augmentation(flip=1)(images, (8, 8)), images.flip(3))


def test_half_of_the_images_are_flipped_and_each_by_itself() -> None:
    torch.manual_seed(0)
    images = torch.rand(1, 3, 6, 6).expand(400, 3, 6, 6)
    views = Augmentation(flip=0.5)(images, (6, 6))
    flipped = (views - images.flip(3)).abs().amax((1, 2, 3)) < 1e-5
    kept = (views - images).abs().amax((1, 2, 3)) < 1e-5
    assert (flipped ^ kept).all()
    assert 160 < flipped.sum() < 240


def test_grey_views_have_equal_channels_and_contrast_keeps_the_mean() -> None:
    torch.manual_seed(0)
    images = 0.4 + 0.2 * torch.rand(16, 3, 8, 8)
    grey = Augmentation(flip=0, grey=1.0)(images, (8, 8))
    torch.testing.assert_close(grey[:, 0], grey[:, 2])
    contrasted = Augmentation(flip=0, colour=1.0, contrast=0.5)(images, (8, 8))
    weights = torch.tensor([0.299, 0.587, 0.114])[:, None, None]
    torch.testing.assert_close((contrasted * weights).sum(1).mean((1, 2)), (images * weights).sum(1).mean((1, 2)))
    spread = contrasted.std((1, 2, 3)) / images.std((1, 2, 3))
    assert spread.min() < 0.7
    assert spread.max() > 1.3


def test_views_stay_between_black_and_white_in_another_size() -> None:
    full = Augmentation((0.1, 1), colour=1, hue=0.5, brightness=0.9, contrast=0.9, saturation=0.9, grey=0.3, blur=1)
    views = full(torch.rand(32, 3, 20, 24), (10, 6))
    assert views.shape == (32, 3, 10, 6)
    assert views.min() >= 0
    assert views.max() <= 1
