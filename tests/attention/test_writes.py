"""Head writes in closed form; that their sum is what a network adds is tested with the trace."""

from __future__ import annotations

import torch

from vitscope.attention.writes import WriteStatistic, write_norms
from vitscope.models.layout import TokenLayout


def test_norms_are_those_of_the_written_vectors() -> None:
    generator = torch.Generator().manual_seed(0)
    mixed, weight = torch.randn(2, 5, 12, generator=generator), torch.randn(7, 12, generator=generator)
    found = write_norms(mixed, weight, heads=3)
    for head in range(3):
        part = slice(4 * head, 4 * head + 4)
        expected = (mixed[..., part] @ weight[:, part].T).norm(dim=-1)
        torch.testing.assert_close(found[..., head], expected)


def test_a_silent_head_writes_nothing_and_a_loud_one_all() -> None:
    statistic = WriteStatistic(TokenLayout((2, 2)), heads=2)
    weight = torch.eye(4)
    mixed = torch.zeros(1, 5, 4)
    mixed[..., :2] = 3.0
    statistic.writes(0, mixed, weight)
    assert statistic._pending["cls"][0].tolist() == [[1.0, 0.0]]
    assert statistic._pending["patches"][0].tolist() == [[1.0, 0.0]]
