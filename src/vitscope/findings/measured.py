"""Numbers with intervals, and when a difference between two of them is clear."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from vitscope.findings.outcome import Evidence


@dataclass(frozen=True)
class Measured:
    """A value and its 95 % interval; without one, low and high are the value itself."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, value: float, low: float | None = None, high: float | None = None) -> Measured:
        """NaN or None for a bound: there is no interval."""
        if low is None or high is None or math.isnan(low) or math.isnan(high):
            return cls(value, value, value)
        return cls(value, min(low, value), max(high, value))

    @property
    def has_interval(self) -> bool:
        return self.low < self.high

    def __sub__(self, other: Measured) -> Measured:
        """The difference and its interval, from the two intervals (their reaches add like independent errors).

        Numbers of the same images vary together, so that the true interval of a difference is narrower.

        >>> Measured(0.8, 0.77, 0.84) - Measured(0.5, 0.46, 0.53)  # 0.3 - hypot(0.03, 0.03), 0.3 + hypot(0.04, 0.04)
        Measured(value=0.3..., low=0.257..., high=0.356...)
        """
        value = self.value - other.value
        down = math.hypot(self.value - self.low, other.high - other.value)
        up = math.hypot(self.high - self.value, other.value - other.low)
        return Measured(value, value - down, value + up)

    def clearly_above(self, other: Measured, margin: float = 0.0) -> bool:
        """Above by at least `margin`, and by an interval that excludes zero."""
        difference = self - other
        return difference.value >= margin and difference.low > 0

    def as_evidence(self, what: str) -> Evidence:
        return Evidence(what, self.value, *((self.low, self.high) if self.has_interval else (None, None)))

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)


def mean_of(numbers: Sequence[Measured]) -> Measured:
    """The mean; bounds are averaged too, as if all were off in the same direction: never too narrow."""
    return Measured(
        fmean(number.value for number in numbers),
        fmean(number.low for number in numbers),
        fmean(number.high for number in numbers),
    )


def best_of(numbers: Sequence[Measured]) -> int:
    """Position of the largest value, the first of equals."""
    return max(range(len(numbers)), key=lambda i: (numbers[i].value, -i))
