"""Means with intervals from blocks of rows: the bootstrap's for few, what it approaches for very many."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from scipy.stats import norm
from torch import Tensor

from vitscope.core.bootstrap import MANY, mean_interval, streamed_mean


def blocks(values: Tensor, size: int) -> Iterator[Tensor]:
    yield from values.split(size)


def test_few_rows_in_blocks_have_the_mean_and_the_interval_of_all_at_once() -> None:
    values = torch.rand(97, 3, 2, generator=torch.Generator().manual_seed(0))
    mean, interval, n = streamed_mean(blocks(values, 10))
    assert n == 97
    assert torch.equal(mean, values.double().mean(0))
    assert torch.equal(interval, mean_interval(values))


def test_many_rows_have_the_normal_interval_however_they_are_cut() -> None:
    values = 5 + 3 * torch.randn(MANY + 777, 4, generator=torch.Generator().manual_seed(1))
    exact = values.double().numpy()
    reach = norm.ppf(0.975) * exact.std(0, ddof=1) / np.sqrt(len(exact))
    for size in (512, 9999, len(values)):
        mean, (low, high), n = streamed_mean(blocks(values, size))
        assert n == len(values)
        np.testing.assert_allclose(mean.numpy(), exact.mean(0), rtol=1e-12)
        np.testing.assert_allclose(low.numpy(), exact.mean(0) - reach, rtol=1e-10)
        np.testing.assert_allclose(high.numpy(), exact.mean(0) + reach, rtol=1e-10)


def test_the_two_intervals_agree_where_they_meet() -> None:
    """At the border the bootstrap's ends are off by its own noise only: a few per cent of the reach."""
    values = torch.rand(MANY, 1, generator=torch.Generator().manual_seed(2)).square()
    _, few, _ = streamed_mean([values])
    _, many, _ = streamed_mean([values, values[:1]])
    reach = float(many[1] - many[0])
    assert (few - many).abs().max() < 0.05 * reach
