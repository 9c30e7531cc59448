"""Maps small enough for a page: one byte per cell, on a square-root scale, as base64.

A map's largest value is kept beside it, so that the page can tell values: (byte / 255)^2 * largest. The step near the
top is 0.8 % of the largest value, and finer below, which is where attention lives.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor
from torch.nn import functional as F

from vitscope.report.page.words import rounded

ALIGNED_BUDGET = 3_600_000  # bytes for the aligned maps of all models, before base64 makes them a third larger
PLAIN_BUDGET = 1_200_000  # bytes for each kind of plain map
REACH = 3 / 4  # of the grid: offsets beyond it are reached by few sources, and are noise


def encode(maps: Tensor) -> dict[str, Any]:
    """maps: (L, H, h, w), or (L, h, w), non-negative; NaN counts as zero."""
    values = np.nan_to_num(maps.double().numpy()).clip(0)
    flat = values.reshape(-1, *values.shape[-2:])  # (maps, h, w)
    largest = flat.max((1, 2))
    share = flat / np.where(largest > 0, largest, 1)[:, None, None]
    data = np.rint(255 * np.sqrt(share)).astype(np.uint8)
    return {
        "size": values.shape[-2:],
        "top": [rounded(value) for value in largest.tolist()],
        "data": base64.b64encode(data.tobytes()).decode(),
    }


def decode(packed: dict[str, Any]) -> np.ndarray:
    """What the page sees: (maps, h, w)."""
    data = np.frombuffer(base64.b64decode(packed["data"]), dtype=np.uint8).reshape(-1, *packed["size"])
    found: np.ndarray = (data / 255.0) ** 2 * np.array(packed["top"])[:, None, None]
    return found


def aligned_reach(shapes: Sequence[tuple[int, ...]], budget: int = ALIGNED_BUDGET) -> float:
    """Which part of the grid aligned maps (L, H, 2h-1, 2w-1) are shown to: less where there are very many.

    >>> aligned_reach([(12, 12, 27, 27)] * 7)
    0.75
    """
    reach = REACH
    while reach > 0.1 and sum(_cropped_size(shape, reach) for shape in shapes) > budget:
        reach -= 0.05
    return reach


def _steps(length: int, reach: float) -> int:
    """How many steps each way: length is 2 h - 1."""
    return max(1, min((length - 1) // 2, math.floor(reach * (length + 1) / 2)))


def _cropped_size(shape: tuple[int, ...], reach: float) -> int:
    layers, heads, down, across = shape
    return layers * heads * (2 * _steps(down, reach) + 1) * (2 * _steps(across, reach) + 1)


def crop(aligned: Tensor, reach: float) -> Tensor:
    """The middle of aligned maps (..., 2h-1, 2w-1), the token itself at the centre."""
    down, across = _steps(aligned.shape[-2], reach), _steps(aligned.shape[-1], reach)
    i, j = aligned.shape[-2] // 2, aligned.shape[-1] // 2
    return aligned[..., max(i - down, 0) : i + down + 1, max(j - across, 0) : j + across + 1]


def pooled(maps: Tensor, factor: int) -> Tensor:
    """Means over factor x factor cells: (L, H, h, w) -> (L, H, ceil(h / factor), ceil(w / factor))."""
    if factor == 1:
        return maps
    return F.avg_pool2d(maps.float(), factor, ceil_mode=True, count_include_pad=False)


def pooling_factor(sizes: Sequence[int], budget: int = PLAIN_BUDGET) -> int:
    """
    >>> pooling_factor([12 * 12 * 14 * 14] * 7), pooling_factor([1_000_000] * 4)
    (1, 2)
    """
    return max(1, math.ceil(math.sqrt(sum(sizes) / budget)))
