"""What a species is: a way to be drawn, and a preference for colours, patterns and places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vitscope.menagerie.sketch import Sketch

BUILD = 6
"""Proportions of an individual: numbers in [-1, 1] that stay with it."""
POSE = 12
"""Articulation of a moment: numbers in [-1, 1] that change from picture to picture."""


@dataclass(frozen=True)
class Species:
    name: str
    draw: Callable[[Sketch, Sequence[float], Sequence[float]], None]  # (sketch, build (6,), pose (12,))
    palettes: tuple[str, str]  # the likely ones, first choice first
    patterns: tuple[str, str]
    habitats: tuple[str, str]
    symmetric: bool = False  # seen from the front or above: its left is always the picture's left, it is never mirrored
    turn: float = 24.0  # how far it may lean, degrees
