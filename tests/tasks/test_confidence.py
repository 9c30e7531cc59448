"""Intervals: against resampling done the long way, and where there is nothing to resample."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from vitscope.core.bootstrap import mean_interval
from vitscope.tasks.confidence import grouped_ratio, grouped_ratio_interval, proportion_interval


def test_a_share_needs_no_drawing() -> None:
    hits = torch.arange(400) % 5 < torch.tensor([[1], [4]])  # shares 0.2 and 0.8
    exact = proportion_interval(hits.T)
    drawn = mean_interval(hits.T.double(), resamples=4000)
    torch.testing.assert_close(exact, drawn, atol=0.006, rtol=0)


def test_certain_shares_have_no_width() -> None:
    assert proportion_interval(torch.ones(50, 1, dtype=torch.bool)).flatten().tolist() == [1, 1]
    assert proportion_interval(torch.zeros(50, 1, dtype=torch.bool)).flatten().tolist() == [0, 0]


def test_one_item_has_no_interval() -> None:
    assert proportion_interval(torch.ones(1, 3, dtype=torch.bool)).isnan().all()
    lonely = grouped_ratio_interval(torch.ones(2, 3), torch.ones(2), torch.tensor([0, 1]))
    assert lonely.isnan().all()


def test_ratios_of_groups_by_hand() -> None:
    successes, totals = torch.tensor([[1.0], [3.0], [4.0]]), torch.tensor([2, 4, 4])
    assert grouped_ratio(successes, totals, torch.tensor([0, 0, 1])).item() == pytest.approx((4 / 6 + 1) / 2)
    assert grouped_ratio(successes, totals, torch.tensor([0, 0, 0])).item() == pytest.approx(8 / 10)


def test_groups_are_resampled_within_themselves() -> None:
    generator = np.random.default_rng(0)
    totals = torch.from_numpy(generator.integers(1, 9, 60))
    successes = (totals * torch.from_numpy(generator.random(60))).round()[:, None]
    groups = torch.from_numpy(generator.integers(0, 3, 60))
    found = grouped_ratio_interval(successes, totals, groups, seed=1)
    scores = []
    for _ in range(3000):
        shares = []
        for group in range(3):
            members = np.flatnonzero(groups.numpy() == group)
            drawn = generator.choice(members, len(members))
            shares.append(successes.numpy()[drawn, 0].sum() / totals.numpy()[drawn].sum())
        scores.append(np.mean(shares))
    np.testing.assert_allclose(found[:, 0].numpy(), np.quantile(scores, [0.025, 0.975]), atol=0.012)


def test_seeds_are_what_they_say() -> None:
    values, totals, groups = torch.rand(30, 2), torch.ones(30), torch.zeros(30, dtype=torch.int64)
    same = [grouped_ratio_interval(values, totals, groups, seed=s) for s in (0, 0, 1)]
    assert torch.equal(same[0], same[1])
    assert not torch.equal(same[0], same[2])
