"""Which of several models is best for a task, and whether anyone can tell: statistics alone, no names of tasks.

Models were asked the same units (queries, pairs, videos), so they are compared unit by unit. The layer of a model is
chosen by cross-fitting: on one half of the units, scored on the other, both ways, over several divisions in halves. The
leader is recommended only if it is clearly better than every layer of every other model, than the untrained network and
than no network at all. "Clearly" is simultaneous for all models and layers: the critical value is that of the largest
of all these differences in a bootstrap (Gaussian multipliers, studentised), carried over to Student's t for few units.
Two made-up units, one for and one against, as large as any difference seen, stand beside the real ones: three queries
that all agree are not certainty (`fewest` says how many could be).

`MARGIN` never decides who is taken. Where nobody can be, it divides ties from too little data: models are tied if the
interval of their difference lies within it. It is a choice, of the size of what other choices do to scores that are not
the models' (docs/tasks.md has the figures); so many points apart, nobody would choose by the score.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

RESAMPLES = 1000
LEVEL = 0.95
DIVISIONS = 10  # in halves
MARGIN = 0.02  # of scores between 0 and 1: models whose difference is surely smaller are tied

Array = np.ndarray
Kind = Literal["take", "tied", "undecided", "nothing"]


@dataclass(frozen=True)
class Difference:
    """How much better the leader is than another, each at its cross-fitted layer, and the simultaneous interval."""

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Decision:
    """kind: take the leader; the leader and `others` are tied; too little data to choose among them (`more` units
    would be enough); or no model is clearly better than `others`, which were not taught."""

    kind: Kind
    leader: str
    layer: int  # of the leader, from 1: the best on all units
    as_good: tuple[int, ...]  # its layers that are not clearly worse than that one
    score: float  # of the leader, cross-fitted
    flattered: float  # how much higher the score of its best layer looks, for having been chosen on the same units
    others: tuple[Difference, ...]
    n: int
    fewest: int  # units that can decide anything, if they all agree
    more: int | None = None
    next: Difference | None = None  # the nearest of the other taught models
    fitted: Mapping[str, float] = field(default_factory=dict)  # cross-fitted scores of all models


def decide(
    scores: Mapping[str, Array], floors: Mapping[str, Array], untaught: Mapping[str, Sequence[str]]
) -> Decision | None:
    """scores: of each model, (n, L); floors: of what needs no network, (n,) each; untaught: for each candidate, the
    networks that it must be better than because they learned nothing. None if there is no candidate, or nothing to
    compare it with."""
    if not untaught or len(scores) + len(floors) < 2:
        return None
    field_ = _Field(scores, floors, list(untaught))
    best = {name: float(scores[name].mean(0).max()) for name in untaught}
    ranked = sorted(untaught, key=lambda name: -best[name])
    below = {name: field_.not_below(name, [*untaught[name], *floors]) for name in ranked}
    worthy = [name for name in ranked if not below[name]]
    leader = worthy[0] if worthy else ranked[0]
    candidates = [name for name in ranked if name != leader]
    others = field_.not_below(leader, candidates) if worthy else below[leader]
    kind: Kind = "take"
    if not worthy:
        kind = "nothing"
    elif others:
        kind = "tied" if all(one.low >= -MARGIN and one.high <= MARGIN for one in others) else "undecided"
    means = scores[leader].mean(0)
    nearest = [field_.difference(leader, name) for name in candidates]
    return Decision(
        kind=kind,
        leader=leader,
        layer=int(means.argmax()) + 1,
        as_good=field_.layers_as_good(leader),
        score=field_.fitted(leader),
        flattered=float(means.max()) - field_.fitted(leader),
        others=tuple(others),
        n=field_.n,
        fewest=fewest(field_.critical),
        more=field_.more(leader, others) if kind in ("undecided", "nothing") else None,
        next=min(nearest, key=lambda one: one.value, default=None),
        fitted={name: field_.fitted(name) for name in scores},
    )


def cross_fitted(scores: Array, halves: Array) -> Array:
    """Each unit's score at the layer that is best on the other half. scores: (n, L), halves: bool (S, n) -> (n,)."""
    first = halves.astype(float)
    on_first = (first @ scores).argmax(1)  # (S,): layer chosen on each half
    on_second = ((1 - first) @ scores).argmax(1)
    fitted: Array = np.where(halves.T, scores[:, on_second], scores[:, on_first]).mean(1)
    return fitted


def fewest(critical: float) -> int:
    """How many units it takes until something can be clear.

    Nothing is clearer than n equal differences d. With the two made-up ones their mean is d n / (n + 2) and its
    standard error 2 d / (n + 2), so n must be more than twice Student's value.

    >>> fewest(1.96)  # one comparison
    6
    """
    return next(n for n in count(2) if n > 2 * student(critical, n))


def student(critical: float, n: int) -> float:
    """The value of Student's t that is as improbable for n units as a normal one beyond the critical value."""
    return float(-stdtrit(max(n - 1, 1), ndtr(-critical)))


@lru_cache(maxsize=2)
def divisions(n: int) -> Array:
    """Seeded halves of n units: bool (S, n)."""
    generator = np.random.default_rng(0)
    ranks = generator.random((DIVISIONS, n)).argsort(1).argsort(1)
    halves: Array = ranks < n // 2
    return halves


@lru_cache(maxsize=2)
def _multipliers(n: int) -> Array:
    return np.random.default_rng(1).standard_normal((RESAMPLES, n), dtype=np.float32)


class _Field:
    """All columns that are compared: cross-fitted scores of the candidates, every layer of every model, the floors."""

    def __init__(self, scores: Mapping[str, Array], floors: Mapping[str, Array], candidates: Sequence[str]) -> None:
        self.n = len(next(iter(scores.values())))
        halves = divisions(self.n)
        everything = {**scores, **{name: values[:, None] for name, values in floors.items()}}
        self.scores = {name: values.astype(float) for name, values in everything.items()}
        self.chosen = {name: cross_fitted(values, halves) for name, values in self.scores.items()}
        self.critical = _critical({name: self.chosen[name] for name in candidates}, self.scores)

    def fitted(self, name: str) -> float:
        return float(self.chosen[name].mean())

    def bounds(self, differences: Array) -> tuple[Array, Array]:
        """Simultaneous interval of means, with the two made-up units: (n, K) -> (K,), (K,)."""
        middle, reach = self._interval(differences.mean(0), differences.var(0), np.abs(differences).max(0), self.n)
        return middle - reach, middle + reach

    def _interval(self, mean: Array, variance: Array, largest: Array, n: int) -> tuple[Array, Array]:
        """Middle and half width for n units of this mean, variance and largest size."""
        middle = mean * n / (n + 2)
        squares = n * (variance + (mean - middle) ** 2) + 2 * (largest**2 + middle**2)
        return middle, student(self.critical, n) * np.sqrt(squares / (n + 1) / (n + 2))

    def not_below(self, name: str, others: Sequence[str]) -> list[Difference]:
        """Those of `others` of which some layer is not clearly worse than `name`."""
        mine = self.chosen[name][:, None]
        return [
            self.difference(name, other)
            for other in others
            if (self.bounds(mine - self.scores[other])[0] <= 0).any() or (self.bounds(mine - self._its(other))[0] <= 0)
        ]

    def _its(self, name: str) -> Array:
        return self.chosen[name][:, None]

    def difference(self, name: str, other: str) -> Difference:
        differences = self._its(name) - self._its(other)
        low, high = self.bounds(differences)
        return Difference(other, float(differences.mean()), float(low[0]), float(high[0]))

    def layers_as_good(self, name: str) -> tuple[int, ...]:
        values = self.scores[name]
        best = values[:, [int(values.mean(0).argmax())]]
        return tuple((np.flatnonzero(self.bounds(best - values)[0] <= 0) + 1).tolist())

    def more(self, name: str, others: Sequence[Difference]) -> int | None:
        """Units that would be needed beyond those there are, if differences and spread stayed as they are.

        Differences below the margin need no more than to be shown to be below it. None if what is ahead stays ahead.
        """
        if any(one.value < -MARGIN for one in others):
            return None
        rivals = [self._its(one.name) for one in others] + [self.scores[one.name] for one in others]
        differences = self._its(name) - np.hstack(rivals)
        differences = differences[:, self.bounds(differences)[0] <= 0]
        mean, variance = differences.mean(0).clip(MARGIN), differences.var(0)
        largest = np.maximum(np.abs(differences).max(0), mean)

        def enough(n: int) -> bool:
            middle, reach = self._interval(mean, variance, largest, n)
            return bool((middle > reach).all())

        low, high = self.n, 2 * self.n
        while not enough(high):
            low, high = high, 2 * high
        while high - low > 1:
            low, high = (low, middle) if enough(middle := (low + high) // 2) else (middle, high)
        return _rounded(max(high - self.n, math.ceil(self.n / 4)))


def _critical(chosen: Mapping[str, Array], scores: Mapping[str, Array]) -> float:
    """The 95 % quantile of the largest studentised difference between a candidate and any layer of another."""
    columns = np.concatenate([*(values[:, None] for values in chosen.values()), *scores.values()], axis=1)
    owner = np.repeat([*chosen, *scores], [1] * len(chosen) + [values.shape[1] for values in scores.values()])
    n = len(columns)
    centred = columns - columns.mean(0)
    drawn = _multipliers(n) @ centred.astype(np.float32) / np.float32(math.sqrt(n))  # (R, P)
    variance = np.einsum("np,np->p", centred, centred) / n
    largest = np.zeros(len(drawn), np.float32)
    for a, name in enumerate(chosen):
        spread = variance[a] + variance - 2 * (centred[:, a] @ centred) / n
        others = (owner != name) & (spread > 1e-9)
        if others.any():
            ratio = np.abs(drawn[:, [a]] - drawn[:, others]) / np.sqrt(spread[others]).astype(np.float32)
            largest = np.maximum(largest, ratio.max(1))
    return max(float(np.quantile(largest, LEVEL)), float(-ndtri((1 - LEVEL) / 2)))


def _rounded(number: int) -> int:
    """Two digits, upwards: 1,234 -> 1,300."""
    unit: int = 10 ** max(len(str(number)) - 2, 0)
    return -(-number // unit) * unit
