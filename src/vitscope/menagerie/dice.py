"""Random numbers that are a pure function of what they are for."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

import numpy as np

T = TypeVar("T")


class Dice:
    """Throws named by a path such as ("menagerie", seed, split, index): the same path gives the same throws everywhere.

    Philox is counter-based and its raw words are guaranteed stable between numpy versions; everything here is
    integer arithmetic on those words or one exact division by a power of two, so no libm and no platform enters.

    >>> Dice("a", 1).uniform(0.0, 1.0) == Dice("a", 1).uniform(0.0, 1.0) != Dice("a", 2).uniform(0.0, 1.0)
    True
    """

    def __init__(self, *path: str | int) -> None:
        name = "\x1f".join(str(step) for step in path).encode()
        key = int.from_bytes(blake2b(name, digest_size=16).digest(), "little")
        self._bits = np.random.Philox(key=key)
        self._words: list[int] = []

    def _word(self) -> int:
        if not self._words:
            self._words = self._bits.random_raw(64).tolist()
        return self._words.pop()

    def uniform(self, low: float, high: float) -> float:
        """A number in [low, high)."""
        return low + (high - low) * ((self._word() >> 11) * 2.0**-53)

    def below(self, n: int) -> int:
        """An integer in [0, n)."""
        return ((self._word() >> 32) * n) >> 32

    def chance(self, p: float) -> bool:
        return self.uniform(0.0, 1.0) < p

    def choice(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def signs(self, n: int) -> tuple[float, ...]:
        """n numbers in [-1, 1): how articulations and proportions are thrown."""
        return tuple(self.uniform(-1.0, 1.0) for _ in range(n))
