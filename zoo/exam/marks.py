"""From scores of every layer and seed to one honest figure with an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from scipy.stats import t as student
from torch import Tensor

LEVEL = 0.95
CHOICE = "for each seed, the layer that is best on the other seeds"


@dataclass(frozen=True)
class Scores:
    """One measure of one network: values (seeds, kinds, L). kinds: heads, or CLS and patches; "" if there is one."""

    values: Tensor
    kinds: tuple[str, ...] = ("",)

    def name(self, kind: int, layer: int) -> str:
        """
        >>> Scores(torch.zeros(3, 1, 12), ("CLS",)).name(0, 4)
        'CLS, layer 5'
        """
        return ", ".join(filter(None, [self.kinds[kind], f"layer {layer + 1}" if self.values.shape[2] > 1 else ""]))


@dataclass(frozen=True)
class Figure:
    """Mean over seeds with a 95 % interval; at: where the network is best on all seeds together."""

    mean: float
    low: float
    high: float
    seeds: tuple[float, ...]
    at: str = ""


def figure(scores: Scores) -> Figure:
    """The best of all kinds and layers, without the optimism of a maximum.

    What a seed is scored at is chosen on the other seeds only, so that noise is never rewarded.
    """
    seeds, _, layers = scores.values.shape
    flat = scores.values.double().flatten(1)  # (S, K * L)
    others = (flat.sum(0) - flat) / (seeds - 1)  # (S, K * L): means without each seed
    chosen = others.argmax(1)
    mean, low, high = interval(flat[torch.arange(seeds), chosen])
    best = int(flat.mean(0).argmax())
    return Figure(
        mean,
        low,
        high,
        tuple(flat[torch.arange(seeds), chosen].tolist()),
        scores.name(best // layers, best % layers),
    )


def interval(values: Tensor, level: float = LEVEL) -> tuple[float, float, float]:
    """Mean of (n,) values, and Student's interval of it.

    >>> [round(x, 3) for x in interval(torch.tensor([0.4, 0.5, 0.6]).double())]  # 0.5 -+ 4.303 * 0.1 / sqrt(3)
    [0.5, 0.252, 0.748]
    """
    mean = float(values.mean())
    half = float(student.ppf((1 + level) / 2, len(values) - 1)) * float(values.std()) / len(values) ** 0.5
    return mean, mean - half, mean + half


def difference(one: Figure, other: Figure) -> tuple[float, float, float]:
    """Mean of one figure minus another, and its interval.

    Seed by seed: all networks are asked about the same pictures, so that a hard film is hard for both and cancels out.
    That shows smaller differences than two intervals that do not overlap.
    """
    return interval(torch.tensor(one.seeds, dtype=torch.float64) - torch.tensor(other.seeds, dtype=torch.float64))


def curves(scores: Scores) -> dict[str, list[float]]:
    """Mean over seeds at each layer, of each kind; of many kinds (heads) the best of each layer."""
    means = scores.values.double().mean(0)  # (K, L)
    if len(scores.kinds) > 2:
        return {"best": _rounded(means.amax(0))}
    return {kind or "all": _rounded(row) for kind, row in zip(scores.kinds, means, strict=True)}


def stacked(per_seed: Sequence[Tensor], kinds: Sequence[str] = ("",)) -> Scores:
    """per_seed: (K, L) each, or (L,) for one kind."""
    return Scores(torch.stack([values.reshape(len(kinds), -1) for values in per_seed]), tuple(kinds))


def _rounded(values: Tensor) -> list[float]:
    return [round(value, 4) for value in values.tolist()]
