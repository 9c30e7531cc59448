"""Confidence intervals by bootstrap over pictures (or queries, pairs, videos)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

RESAMPLES = 1000
LEVEL = 0.95


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


def percentile_interval(samples: Tensor, level: float = LEVEL) -> Tensor:
    """The middle `level` of resampled values: (R, ...) -> (2, ...), low and high; NaN where a sample is NaN."""
    tail = (1 - level) / 2
    rows = np.ascontiguousarray(samples.double().cpu().flatten(1).numpy().T)
    interval = np.quantile(rows, (tail, 1 - tail), axis=1, overwrite_input=True)  # selects, where torch would sort
    return torch.from_numpy(interval).reshape(2, *samples.shape[1:])
