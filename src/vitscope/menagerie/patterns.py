"""Coat patterns as integer arithmetic on body coordinates: they move, turn and scale with the creature."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Cells = NDArray[np.int32]
PERIOD = 1024  # one repeat of a pattern in pattern units


def _wave(x: Cells) -> Cells:
    """A triangle wave of period 2 * PERIOD and range 0 .. PERIOD."""
    found: Cells = np.abs((x & (2 * PERIOD - 1)) - PERIOD)
    return found


def marked(pattern: str, u: Cells, v: Cells) -> NDArray[np.bool_]:
    """Where the coat carries the second colour; u runs along the body, v upwards (shapes that broadcast)."""
    if pattern == "striped":
        return ((u + (_wave(v) >> 2)) & (PERIOD - 1)) < 440
    if pattern == "banded":
        return ((v + (_wave(u) >> 3)) & (PERIOD - 1)) < 440
    if pattern == "spotted":
        shifted = u + ((v >> 10) & 1) * (PERIOD // 2)
        across, up = (shifted & (PERIOD - 1)) - PERIOD // 2, (v & (PERIOD - 1)) - PERIOD // 2
        return across * across + up * up < 310 * 310
    if pattern == "patched":
        return _wave(u + (_wave(v) >> 1)) + _wave(v + 700 - (_wave(u) >> 2)) > 1180
    raise ValueError(f"unknown pattern {pattern!r}")
