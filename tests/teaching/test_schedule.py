"""Schedules and momentum against closed forms."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from vitscope.teaching.images import batch_at, step_seed
from vitscope.teaching.schedule import Schedule, settle
from vitscope.teaching.teachers.base import follow, follower


def test_warm_up_plateau_and_cool_down() -> None:
    schedule = Schedule(warmup=4, total=20, cooldown=10)
    rates = [schedule.at(step).rate for step in range(21)]
    assert rates[:4] == [0.25, 0.5, 0.75, 1.0]
    assert rates[4:11] == [1.0] * 7
    expected = [(1 + math.cos(math.pi * i / 10)) / 2 for i in range(11)]
    assert rates[10:] == pytest.approx(expected)


def test_a_cool_down_of_the_whole_run_is_torchs_cosine() -> None:
    optimiser = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=50)
    schedule = Schedule(warmup=0, total=50, cooldown=50)
    for step in range(50):
        assert schedule.at(step).rate == pytest.approx(cosine.get_last_lr()[0])
        optimiser.step()
        cosine.step()


def test_a_plateau_without_end_never_cools() -> None:
    assert Schedule(warmup=10).at(10**9).rate == 1.0


def test_settle_goes_from_start_to_end() -> None:
    assert settle(0.99, 1.0, 0.0) == pytest.approx(0.99)
    assert settle(0.99, 1.0, 1.0) == pytest.approx(1.0)


def test_the_momentum_network_is_the_stated_average() -> None:
    torch.manual_seed(0)
    leader = nn.Linear(3, 2).double()
    copy = follower(leader)
    history = [leader.weight.detach().clone()]
    for _ in range(5):
        with torch.no_grad():
            leader.weight += torch.randn(2, 3, dtype=torch.float64)
        history.append(leader.weight.detach().clone())
        follow(copy, leader, 0.9)
    # closed form: 0.9^5 w0 + 0.1 * sum 0.9^(5 - t) w_t
    expected = 0.9**5 * history[0] + sum(0.1 * 0.9 ** (5 - t) * history[t] for t in range(1, 6))
    torch.testing.assert_close(copy.weight, expected)
    assert not copy.weight.requires_grad


def test_each_epoch_sees_every_image_once_in_another_order() -> None:
    seen = torch.cat([batch_at(step, images=10, batch=4, seed=3) for step in range(5)])
    assert sorted(seen[:10].tolist()) == list(range(10))
    assert sorted(seen[10:].tolist()) == list(range(10))
    assert seen[:10].tolist() != seen[10:].tolist()
    assert seen.tolist() != torch.cat([batch_at(step, 10, 4, 4) for step in range(5)]).tolist()


def test_a_batch_may_be_larger_than_the_data() -> None:
    batch = batch_at(1, images=3, batch=8, seed=0)  # positions 8..15: the last of epoch 2, epochs 3 and 4, one of 5
    assert sorted(batch[1:4].tolist()) == [0, 1, 2]
    assert sorted(batch[4:7].tolist()) == [0, 1, 2]


def test_steps_and_processes_have_their_own_seeds() -> None:
    seeds = {step_seed(seed, step, process) for seed in range(5) for step in range(50) for process in range(4)}
    assert len(seeds) == 1000
    assert all(0 <= seed < 2**63 for seed in seeds)
