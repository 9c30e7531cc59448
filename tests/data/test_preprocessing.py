"""Geometry against torchvision: its arithmetic written out, and its own pixels."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F

from tests.support.real import photos
from vitscope.data.preprocessing import Placement, Preprocessing, covering, in_geometry

SIZES = (32, 96, 224, 384, 518)


def noise(width: int, height: int, seed: int = 0, mode: str = "RGB") -> Image.Image:
    shape = (height, width, 3) if mode == "RGB" else (height, width)
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8))


def as_torchvision(image: Image.Image, size: int, interpolation: InterpolationMode) -> np.ndarray:
    return np.asarray(F.center_crop(F.resize(image, [size], interpolation), [size, size]))


def rounded_half_to_even(number: Fraction) -> int:
    below = math.floor(number)
    half = number - below - Fraction(1, 2)
    return below + (half > 0 or (half == 0 and below % 2 == 1))


def marked(width: int, height: int) -> Image.Image:
    """An image whose pixels say where they are, as far as a byte can: red the column, green the row."""
    rows, columns = np.mgrid[:height, :width]
    return Image.fromarray(np.stack([columns % 256, rows % 256, columns // 256 + 16 * (rows // 256)], -1).astype("u1"))


def test_the_long_side_is_truncated() -> None:
    """500 x 375 at 224: 224 * 500 / 375 = 298.67."""
    assert covering((375, 500), (224, 224)) == (224, 298)
    assert covering((500, 375), (224, 224)) == (298, 224)
    assert covering((480, 640), (224, 224)) == (224, 298)
    assert covering((300, 300), (224, 224)) == (224, 224)


def test_sizes_as_in_exact_arithmetic() -> None:
    dice = random.Random(0)
    for _ in range(600):
        width, height, size = dice.randint(2, 3000), dice.randint(2, 3000), dice.choice(SIZES)
        short, long = min(width, height), max(width, height)
        longer = math.floor(Fraction(size * long, short))
        expected = (size, longer) if width >= height else (longer, size)
        assert covering((height, width), (size, size)) == expected, (width, height, size)


def test_inputs_that_are_not_square_are_covered_and_nothing_more() -> None:
    dice = random.Random(1)
    for _ in range(300):
        image = (dice.randint(2, 2000), dice.randint(2, 2000))
        size = (dice.choice(SIZES), dice.choice(SIZES))
        scale = max(Fraction(size[0], image[0]), Fraction(size[1], image[1]))
        assert covering(image, size) == tuple(math.floor(side * scale) for side in image)


def test_the_crop_starts_at_the_rounded_half() -> None:
    """Images that need no resizing show where the crop is: 0.5 rounds to 0, 1.5 to 2, 2.5 to 2, 37.5 to 38."""
    for longer in range(225, 320):
        start = rounded_half_to_even(Fraction(longer - 224, 2))
        wide = np.asarray(Preprocessing((224, 224)).geometry(marked(longer, 224)))
        assert (wide[0, 0, 0] + 256 * int(wide[0, 0, 2] % 16), wide[0, 0, 1]) == (start, 0)
        tall = np.asarray(Preprocessing((224, 224)).geometry(marked(224, longer)))
        assert (tall[0, 0, 0], tall[0, 0, 1] + 256 * int(tall[0, 0, 2] // 16)) == (0, start)


@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
def test_pixels_are_torchvisions(interpolation: str) -> None:
    dice = random.Random(2)
    sizes = [(dice.randint(20, 700), dice.randint(20, 700)) for _ in range(40)] + [(500, 375), (375, 500), (224, 224)]
    for seed, (width, height) in enumerate(sizes):
        image, size = noise(width, height, seed), dice.choice(SIZES[:3])
        expected = as_torchvision(image, size, InterpolationMode(interpolation))
        found = Preprocessing((size, size), interpolation=interpolation).geometry(image)
        np.testing.assert_array_equal(np.asarray(found), expected, err_msg=f"{width}x{height} at {size}")
    for path in photos(12):
        image = Image.open(path).convert("RGB")
        found = Preprocessing((224, 224), interpolation=interpolation).geometry(image)
        np.testing.assert_array_equal(
            np.asarray(found), as_torchvision(image, 224, InterpolationMode(interpolation)), err_msg=path.name
        )


def test_masks_follow_the_geometry_of_images() -> None:
    dice = random.Random(3)
    for seed in range(20):
        mask = noise(dice.randint(20, 400), dice.randint(20, 400), seed, mode="L")
        expected = as_torchvision(mask, 96, InterpolationMode.BOX)
        np.testing.assert_array_equal(
            np.asarray(Preprocessing((96, 96)).geometry(mask, Image.Resampling.BOX)), expected
        )


def test_shrunk_images_are_thumbnails_that_torchvision_enlarges() -> None:
    for width, height in ((640, 427), (333, 500), (1024, 768), (60, 40)):
        image = noise(width, height)
        small = image.copy()
        small.thumbnail((96, 96), Image.Resampling.LANCZOS)
        found = in_geometry(Preprocessing((96, 96)), "shrunk").geometry(image)
        np.testing.assert_array_equal(np.asarray(found), as_torchvision(small, 96, InterpolationMode.BICUBIC))


def test_padded_images_keep_all_of_themselves() -> None:
    """The long side is the input's, the other one rounded in exact arithmetic, the rest halved and truncated."""
    dice = random.Random(4)
    for _ in range(400):
        height, width, size = dice.randint(20, 2000), dice.randint(20, 2000), dice.choice(SIZES)
        long = max(height, width)
        resized = tuple(max(rounded_half_to_even(Fraction(size * side, long)), 1) for side in (height, width))
        place = Placement.of((height, width), (size, size))
        assert place.resized == resized
        assert (place.top, place.left) == tuple((size - side) // 2 for side in resized)


def test_a_padded_side_that_ends_on_a_half_rounds_to_the_even_number() -> None:
    """224 * 3k / 192 is 3.5 k, which no product with the inexact 224 / 192 may miss."""
    for k in range(1, 64, 2):
        assert Placement.of((3 * k, 192), (224, 224)).resized[0] == rounded_half_to_even(Fraction(7 * k, 2))


def test_points_as_published() -> None:
    """500 x 375 at 224: scale .448, 168 rows from row 28; and a tall image, whose columns are moved."""
    place = Placement.of((375, 500), (224, 224))
    points = torch.tensor([[0.0, 0.0], [250.0, 187.5], [499.0, 374.0]], dtype=torch.float64)
    expected = torch.tensor([[0.0, 28.0], [112.0, 112.0], [223.552, 195.552]], dtype=torch.float64)
    torch.testing.assert_close(place.to_input_paper(points), expected)
    torch.testing.assert_close(place.to_image_paper(expected), points)
    tall = Placement.of((400, 100), (32, 32))
    assert tall.to_input_paper(torch.tensor([[50.0, 100.0]])).tolist() == [[16.0, 8.0]]  # 12 + 50 * .08, 100 * .08


def test_padded_as_published_is_lanczos_on_black() -> None:
    for width, height, (top, left, inner) in ((500, 375, (28, 0, (224, 168))), (100, 400, (0, 84, (56, 224)))):
        image = noise(width, height)
        canvas = np.zeros((224, 224, 3), np.uint8)
        canvas[top : top + inner[1], left : left + inner[0]] = np.asarray(image.resize(inner, Image.Resampling.LANCZOS))
        found = in_geometry(Preprocessing((224, 224)), "padded black").geometry(image)
        np.testing.assert_array_equal(np.asarray(found), canvas)
