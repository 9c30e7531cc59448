"""A fixed set of corruptions of images, in three strengths, each the same whenever it falls on the same pixels."""

from __future__ import annotations

import io
import zlib
from typing import Literal

import numpy as np
from PIL import Image, ImageEnhance, ImageFilter

Corruption = Literal["noise", "blur", "brightness", "contrast", "jpeg", "occlusion"]
Strength = Literal[1, 2, 3]
STRENGTHS: tuple[Strength, ...] = (1, 2, 3)
LEVELS: dict[Corruption, tuple[float, float, float]] = {
    "noise": (0.08, 0.16, 0.3),  # deviation of Gaussian noise, of the whole range
    "blur": (0.01, 0.02, 0.04),  # deviation of a Gaussian, of the longer side
    "brightness": (1.4, 1.8, 2.4),  # factor
    "contrast": (0.5, 0.3, 0.15),  # factor, towards the mean
    "jpeg": (25, 12, 5),  # quality
    "occlusion": (0.1, 0.25, 0.45),  # share of the image behind one grey square
}
CORRUPTIONS: tuple[Corruption, ...] = tuple(LEVELS)
GREY = 128


def corrupt(image: Image.Image, corruption: Corruption, strength: int) -> Image.Image:
    """An RGB image with one corruption. strength: 1 to 3. Chance is seeded by the image's own pixels."""
    level = LEVELS[corruption][strength - 1]
    pixels = np.asarray(image)
    generator = np.random.default_rng([zlib.crc32(pixels.tobytes()), strength])
    match corruption:
        case "noise":
            noisy = pixels + 255 * level * generator.standard_normal(pixels.shape)
            return Image.fromarray(noisy.round().clip(0, 255).astype(np.uint8))
        case "blur":
            return image.filter(ImageFilter.GaussianBlur(level * max(image.size)))
        case "brightness":
            return ImageEnhance.Brightness(image).enhance(level)
        case "contrast":
            return ImageEnhance.Contrast(image).enhance(level)
        case "jpeg":
            buffer = io.BytesIO()
            image.save(buffer, format="JPEG", quality=int(level))
            return Image.open(buffer).convert("RGB")
    high, wide = (max(round(side * level**0.5), 1) for side in pixels.shape[:2])
    top, left = (
        int(generator.integers(0, side - part + 1)) for side, part in zip(pixels.shape, (high, wide), strict=False)
    )
    hidden = pixels.copy()
    hidden[top : top + high, left : left + wide] = GREY
    return Image.fromarray(hidden)
