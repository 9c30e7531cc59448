"""Confidence intervals by bootstrap over images (or queries, pairs, videos)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import torch
from scipy.special import ndtri  # not scipy.stats, which takes half a second to import
from torch import Tensor

RESAMPLES = 1000
LEVEL = 0.95
MANY = 20_000  # items: of more, resamples would take gigabytes, and the mean's distribution is normal to three digits


@lru_cache(maxsize=1)  # the measures of one pass are of the same images; nobody may write into it
def resampling_counts(n: int, resamples: int = RESAMPLES, seed: int = 0) -> Tensor:
    """How often each of n items is drawn in each bootstrap resample: (resamples, n), float64, rows sum to n."""
    generator = np.random.default_rng(seed)
    counts = generator.multinomial(n, np.full(n, 1 / n), size=resamples)
    return torch.from_numpy(counts.astype(np.float64))


def mean_interval(values: Tensor, *, resamples: int = RESAMPLES, level: float = LEVEL, seed: int = 0) -> Tensor:
    """Percentile bootstrap interval of the mean over axis 0. values: (n, ...) -> (2, ...), low and high.

    NaN where there is a single item, or where values are NaN.
    """
    n = len(values)
    if n < 2:
        return torch.full((2, *values.shape[1:]), torch.nan, dtype=torch.float64)
    means = resampling_counts(n, resamples, seed) @ values.double().reshape(n, -1) / n  # (R, X)
    return percentile_interval(means, level).reshape(2, *values.shape[1:])


def streamed_mean(blocks: Iterable[Tensor], *, level: float = LEVEL) -> tuple[Tensor, Tensor, int]:
    """Mean over rows that come in blocks (m, ...), its interval (2, ...), and how many rows there were.

    Up to `MANY` rows the interval is the bootstrap's. Beyond, it is what that one approaches, mean +- z * sd / sqrt(n),
    from sums that are all of the rows that is kept.
    """
    kept: list[Tensor] = []
    n, mean, squares = 0, torch.zeros(()), torch.zeros(())  # squares: of deviations from the mean
    for block in blocks:
        rows = block.double()
        n, before = n + len(rows), n
        kept = [*kept, rows] if n <= MANY else []
        shift = rows.mean(0) - mean  # parts are joined as Chan, Golub and LeVeque do
        mean = mean + shift * (len(rows) / n)
        squares = squares + (rows - rows.mean(0)).square().sum(0) + shift.square() * (before * len(rows) / n)
    if n <= MANY:
        values = torch.cat(kept)
        return values.mean(0), mean_interval(values, level=level), n
    reach = ndtri((1 + level) / 2) * (squares / (n - 1) / n).sqrt()
    return mean, torch.stack([mean - reach, mean + reach]), n


def percentile_interval(samples: Tensor, level: float = LEVEL) -> Tensor:
    """The middle `level` of resampled values: (R, ...) -> (2, ...), low and high; NaN where a sample is NaN."""
    tail = (1 - level) / 2
    rows = np.ascontiguousarray(samples.double().cpu().flatten(1).numpy().T)
    interval = np.quantile(rows, (tail, 1 - tail), axis=1, overwrite_input=True)  # selects, where torch would sort
    return torch.from_numpy(interval).reshape(2, *samples.shape[1:])
