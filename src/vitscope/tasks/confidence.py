"""Confidence intervals of task scores, by bootstrap over queries, sequences or pairs."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from vitscope.core.bootstrap import LEVEL, RESAMPLES, percentile_interval, resampling_counts


def proportion_interval(hits: Tensor, *, level: float = LEVEL) -> Tensor:
    """Interval of a share of successes: hits, bool (n, ...) -> (2, ...), low and high.

    Drawing n of n successes and failures with replacement gives binomial counts, so the percentiles that resampling
    approaches are known exactly: nothing is drawn, and 50,000 queries cost no more than fifty.
    """
    from scipy.stats import binom  # half a second: not for workers that only run networks

    n = len(hits)
    if n < 2:
        return torch.full((2, *hits.shape[1:]), torch.nan, dtype=torch.float64)
    share = hits.double().mean(0).numpy()
    tail = (1 - level) / 2
    low, high = binom.ppf(tail, n, share) / n, binom.ppf(1 - tail, n, share) / n
    return torch.from_numpy(np.stack([low, high]))


def grouped_ratio(successes: Tensor, totals: Tensor, groups: Tensor) -> Tensor:
    """Mean over groups of the share of successes in each: successes (n, ...), totals (n,), groups (n,) -> (...)."""
    return _ratio(torch.ones(1, len(totals), dtype=torch.float64), successes, totals, groups)[0]


def grouped_ratio_interval(
    successes: Tensor, totals: Tensor, groups: Tensor, *, seed: int = 0, level: float = LEVEL
) -> Tensor:
    """Bootstrap interval of `grouped_ratio`, the items of each group drawn anew: (2, ...).

    NaN if no group has two items: there is nothing to tell how far a score could be off.
    """
    sizes = groups.bincount()
    if int(sizes.max()) < 2:
        return torch.full((2, *successes.shape[1:]), torch.nan, dtype=torch.float64)
    counts = torch.zeros(RESAMPLES, len(groups), dtype=torch.float64)
    for group in sizes.nonzero().flatten().tolist():
        members = (groups == group).nonzero().flatten()
        counts[:, members] = resampling_counts(len(members), seed=seed + group)
    scores = _ratio(counts, successes, totals, groups)  # (R, ...)
    return percentile_interval(scores, level)


def _ratio(counts: Tensor, successes: Tensor, totals: Tensor, groups: Tensor) -> Tensor:
    """counts: (R, n), how often each item is in each resample -> (R, ...)."""
    flat = successes.double().reshape(len(successes), -1)
    shares = []
    for group in groups.unique().tolist():
        members = (groups == group).nonzero().flatten()
        drawn = counts[:, members]
        shares.append((drawn @ flat[members]) / (drawn @ totals.double()[members])[:, None])
    return torch.stack(shares).mean(0).reshape(len(counts), *successes.shape[1:])
