"""Masks made of rectangles, as BEiT hides patches."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

SMALLEST_BLOCK = 16 / 196  # of the grid
ASPECT = 0.3  # blocks are between 0.3 and 1/0.3 times as tall as wide
TRIES = 10


def block_masks(batch: int, grid: tuple[int, int], share: float) -> Tensor:
    """bool (B, h * w): rectangles of random size, shape and place until `share` of each grid is covered.

    Seeded from torch's generator. No block brings a mask above its share by more than it has left, so every image has
    at most round(share * h * w) masked patches, and at least one.
    """
    random = np.random.default_rng(int(torch.randint(2**62, ())))
    wanted = max(1, round(share * grid[0] * grid[1]))
    smallest = max(1, round(SMALLEST_BLOCK * grid[0] * grid[1]))
    masks = np.zeros((batch, *grid), dtype=bool)
    for mask in masks:
        while (left := wanted - mask.sum()) > 0 and add_block(mask, left, smallest, random):
            pass
    return torch.from_numpy(masks.reshape(batch, -1))


def add_block(mask: np.ndarray, left: int, smallest: int, random: np.random.Generator) -> bool:
    """Hide one more rectangle with at most `left` new patches; False when none was found."""
    height, width = mask.shape
    for _ in range(TRIES):
        area = random.uniform(min(smallest, left), max(smallest, left))
        aspect = math.exp(random.uniform(math.log(ASPECT), -math.log(ASPECT)))
        tall, wide = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if not (1 <= tall <= height and 1 <= wide <= width):
            continue
        top, side = random.integers(height - tall + 1), random.integers(width - wide + 1)
        block = mask[top : top + tall, side : side + wide]
        if 0 < (~block).sum() <= left:
            block[:] = True
            return True
    return not mask.any()
