"""The probe of very many images: a seeded choice of them is fitted, and nothing else is held in memory."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from vitscope.tasks.linear_probe import DEFAULT, evaluate, fitted, read_some


def problem(n: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % 3
    return torch.randn(n, 5, generator=generator) + 2 * torch.eye(3, 5)[labels], labels


def test_chosen_rows_are_read_block_by_block() -> None:
    array = torch.arange(40_000.0).view(-1, 2)
    rows = torch.tensor([0, 5, 8191, 8192, 19_999])
    assert torch.equal(read_some(array, rows), array[rows])
    assert torch.equal(read_some(array, None), array)


def test_a_choice_is_seeded_ascending_and_of_the_size_that_was_asked() -> None:
    labels = torch.zeros(1000, dtype=torch.int64)
    rows = fitted(labels, 100, seed=3)
    assert rows is not None
    assert len(rows) == 100
    assert (rows.diff() > 0).all()
    assert torch.equal(rows, fitted(labels, 100, seed=3))
    assert not torch.equal(rows, fitted(labels, 100, seed=4))
    assert fitted(labels, 1000, seed=3) is None


def test_fitting_a_choice_is_fitting_these_images_alone() -> None:
    train, labels = problem(300, 0)
    test, truth = problem(60, 1)
    config = replace(DEFAULT, most=120 * 4 * (2 * 5 + 4 * 3), penalties=(1e-3,))
    found = evaluate([train], labels, [test], truth, config=config)
    rows = fitted(labels, 120, seed=0)
    assert rows is not None
    alone = evaluate([train[rows]], labels[rows], [test], truth, config=replace(DEFAULT, penalties=(1e-3,)))
    assert (found.fitted, alone.fitted) == (120, 120)
    assert torch.equal(found.top1, alone.top1)
