"""When to learn fast and when to settle: warm-up, a plateau, cool-down.

A plateau instead of one long cosine lets training go on for as long as there is time: a snapshot is made by cooling
down a copy. With `cooldown` as long as the run this is the familiar warm-up and cosine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """Where training is. warmth: 0 to 1 during warm-up; cooling: 0 to 1 during cool-down."""

    step: int
    warmth: float
    cooling: float

    @property
    def rate(self) -> float:
        """Factor of the learning rate."""
        return self.warmth * settle(1.0, 0.0, self.cooling)


@dataclass(frozen=True)
class Schedule:
    """All in steps; `total` None is a plateau without end."""

    warmup: int
    total: int | None = None
    cooldown: int = 0

    def at(self, step: int) -> Progress:
        """Progress for the step with this number, counted from 0."""
        warmth = min(1.0, (step + 1) / max(1, self.warmup))
        cooling = 0.0
        if self.total is not None and self.cooldown:
            cooling = (step - (self.total - self.cooldown)) / self.cooldown
        return Progress(step, warmth, min(1.0, max(0.0, cooling)))


def settle(start: float, end: float, cooling: float) -> float:
    """Half a cosine from `start` to `end`.

    >>> settle(0.99, 1.0, 0.5)
    0.995
    """
    return end + (start - end) * (1 + math.cos(math.pi * cooling)) / 2
