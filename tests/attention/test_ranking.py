"""Ranking by packed integers is torch's stable sort."""

from __future__ import annotations

import torch

from vitscope.attention.ranking import rank


def test_ranking_is_a_stable_descending_sort_with_ties_zeros_and_extremes() -> None:
    generator = torch.Generator().manual_seed(0)
    maps = torch.rand(5, 3, 196, generator=generator).softmax(-1)
    maps[0] = torch.randint(0, 4, (3, 196), generator=generator).float()  # ties
    maps[1, 0] = 0
    maps[2, 0, :4] = torch.tensor([1e-45, 3e38, 1e-38, 0.0])
    values, order = rank(maps)
    expected = maps.double().sort(dim=-1, descending=True, stable=True)
    assert torch.equal(values.double(), expected.values)
    assert torch.equal(order, expected.indices)


def test_part_of_a_larger_map_and_a_single_token_are_ranked_too() -> None:
    maps = torch.rand(4, 2, 9, 9)
    assert torch.equal(rank(maps[:, :, 0, 1:]).values, maps[:, :, 0, 1:].sort(-1, descending=True).values)
    assert rank(torch.ones(2, 1)).order.tolist() == [[0], [0]]
