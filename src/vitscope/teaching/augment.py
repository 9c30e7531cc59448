"""Augmentations of whole batches at once: every one of them is a small matrix per image.

Cropping, resizing (antialiased), flipping and blurring act on rows and columns separately, so together they are two
matrices per image: `view = Y @ image @ X^T`. Brightness, saturation, hue and greyscale are one 3x3 colour matrix
per image. Nothing here loops over images, and everything draws from torch's global generator.
"""

from __future__ import annotations

import math
from typing import Annotated

import torch
from pydantic import Field, field_validator
from pydantic.dataclasses import dataclass
from torch import Tensor

from vitscope.teaching.config import STRICT, NotNegative, Positive, Probability, UpToAll

GREY = (0.299, 0.587, 0.114)  # luma of red, green and blue


@dataclass(frozen=True, config=STRICT)
class Augmentation:
    """How a view is made of an image.

    scale: share of the image's area that the crop keeps, from-to; ratio: aspect ratio of the crop, from-to.
    flip: probability of a mirror image. colour: probability that the next four act.
    hue: largest rotation of the hue in turns (0.5 reaches every hue).
    brightness, contrast, saturation: factors are drawn from [1 - x, 1 + x].
    grey: probability of greyscale. blur: probability of a Gaussian blur with a sigma from `sigma`, which is given in
    64ths of the view's edge (pixels at 64 px).
    """

    scale: tuple[UpToAll, UpToAll] = (1.0, 1.0)
    ratio: tuple[Positive, Positive] = (3 / 4, 4 / 3)
    flip: Probability = 0.5
    colour: Probability = 0.0
    hue: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    brightness: Probability = 0.0
    contrast: Probability = 0.0
    saturation: NotNegative = 0.0
    grey: Probability = 0.0
    blur: Probability = 0.0
    sigma: tuple[NotNegative, NotNegative] = (0.3, 1.2)

    @field_validator("scale", "ratio", "sigma")
    @classmethod
    def _ordered(cls, limits: tuple[float, float]) -> tuple[float, float]:
        if limits[0] > limits[1]:
            raise ValueError("from-to, the smaller number first")
        return limits

    def __call__(self, images: Tensor, size: tuple[int, int]) -> Tensor:
        """images: float (B, 3, H, W) in [0, 1]. Returns (B, 3, *size) in [0, 1]."""
        rows, columns = self.geometry(images, size)
        views = rows[:, None] @ images @ columns[:, None].mT  # (B, 3, h, w)
        if self.colour or self.grey:
            views = self.recolour(views)
        return views.clamp(0, 1)

    def geometry(self, images: Tensor, size: tuple[int, int]) -> tuple[Tensor, Tensor]:
        """Row and column matrices (B, h, H) and (B, w, W) of crop, resize, flip and blur."""
        batch, (height, width) = len(images), images.shape[-2:]
        top, left, tall, wide = random_boxes(batch, (height, width), self.scale, self.ratio, images.device)
        rows = resampling_matrices(top, tall, height, size[0])
        columns = resampling_matrices(left, wide, width, size[1])
        mirrored = torch.rand(batch, device=images.device) < self.flip
        columns = torch.where(mirrored[:, None, None], columns.flip(1), columns)
        if self.blur:
            low, high = self.sigma
            sigma = (low + (high - low) * torch.rand(batch, device=images.device)) / 64
            sigma = torch.where(torch.rand(batch, device=images.device) < self.blur, sigma, 0.0)
            rows = blurring_matrices(sigma * size[0], size[0]) @ rows
            columns = blurring_matrices(sigma * size[1], size[1]) @ columns
        return rows, columns

    def recolour(self, views: Tensor) -> Tensor:
        """Rotate hues, change saturation, brightness and contrast, and take the colour from some images."""
        batch, device = len(views), views.device

        def factors(strength: float) -> Tensor:
            return 1 + strength * (2 * torch.rand(batch, device=device) - 1)

        acts = torch.rand(batch, device=device) < self.colour
        matrices = hue_matrices(self.hue * (2 * torch.rand(batch, device=device) - 1))
        matrices = saturation_matrices(factors(self.saturation)) @ matrices
        matrices = matrices * factors(self.brightness)[:, None, None]
        matrices = torch.where(acts[:, None, None], matrices, torch.eye(3, device=device))
        contrast = torch.where(acts, factors(self.contrast), 1.0)[:, None, None, None]
        colourless = (torch.rand(batch, device=device) >= self.grey).float()
        matrices = saturation_matrices(colourless) @ matrices
        views = (matrices @ views.flatten(2)).view_as(views)
        middle = luma(views).mean((-2, -1), keepdim=True)  # (B, 1, 1, 1)
        return middle + contrast * (views - middle)


def random_boxes(
    batch: int,
    source: tuple[int, int],
    scale: tuple[float, float],
    ratio: tuple[float, float],
    device: torch.device,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Top, left, height, width (B,) in pixels: uniform area, log-uniform aspect ratio, uniform place."""
    draw = torch.rand(4, batch, device=device)
    area = scale[0] + (scale[1] - scale[0]) * draw[0]
    aspect = torch.exp(math.log(ratio[0]) + math.log(ratio[1] / ratio[0]) * draw[1])
    # A share of 1 leaves room for one shape only; the wish for an aspect ratio fades with the room that there is.
    aspect = aspect.clamp(min=area, max=1 / area)
    tall, wide = (area / aspect).sqrt() * source[0], (area * aspect).sqrt() * source[1]
    return draw[2] * (source[0] - tall), draw[3] * (source[1] - wide), tall, wide


def resampling_matrices(start: Tensor, length: Tensor, source: int, target: int) -> Tensor:
    """(B, target, source): `target` samples of the interval [start, start + length) of `source` pixels.

    Triangle filter, widened when the interval is shrunk (antialiasing); rows sum to one, edges repeat.
    """
    step = length / target  # (B,) source pixels per sample
    centres = start[:, None] + (torch.arange(target, device=start.device) + 0.5) * step[:, None]  # (B, target)
    centres = centres.clamp(0.5, source - 0.5)
    pixels = torch.arange(source, device=start.device) + 0.5
    width = step.clamp(min=1)[:, None, None]
    weights = (1 - (centres[..., None] - pixels).abs() / width).clamp(min=0)
    return weights / weights.sum(-1, keepdim=True)


def blurring_matrices(sigma: Tensor, size: int) -> Tensor:
    """(B, size, size): Gaussian blur of `sigma` (B,) pixels with renormalised borders; sigma 0 is the identity."""
    place = torch.arange(size, device=sigma.device, dtype=torch.float32)
    distance = (place[:, None] - place[None, :]) ** 2
    weights = torch.exp(-distance / (2 * sigma.clamp(min=1e-3)[:, None, None] ** 2))
    return weights / weights.sum(-1, keepdim=True)


def luma(images: Tensor) -> Tensor:
    """(B, 3, H, W) -> (B, 1, H, W)."""
    return (images * images.new_tensor(GREY)[:, None, None]).sum(1, keepdim=True)


def saturation_matrices(factor: Tensor) -> Tensor:
    """(B, 3, 3): from greyscale (0) to unchanged (1) and beyond."""
    identity = torch.eye(3, device=factor.device)
    grey = torch.tensor(GREY, device=factor.device).expand(3, 3)
    return grey + factor[:, None, None] * (identity - grey)


def hue_matrices(turns: Tensor) -> Tensor:
    """(B, 3, 3): rotation of colour space about the grey axis; one third of a turn sends red to green."""
    angle = 2 * math.pi * turns
    cosine, sine = angle.cos()[:, None, None], angle.sin()[:, None, None]
    identity = torch.eye(3, device=turns.device)
    axis = torch.full((3, 3), 1 / 3, device=turns.device)
    cross = torch.tensor([[0.0, -1, 1], [1, 0, -1], [-1, 1, 0]], device=turns.device) / math.sqrt(3)
    return cosine * identity + (1 - cosine) * axis + sine * cross


def to_float(images: Tensor) -> Tensor:
    """uint8 (B, 3, H, W) -> float32 in [0, 1]."""
    return images.float() / 255 if images.dtype == torch.uint8 else images


def normalise(images: Tensor) -> Tensor:
    """[0, 1] -> [-1, 1]: mean and standard deviation 0.5, the preprocessing that the model card states."""
    return images * 2 - 1
