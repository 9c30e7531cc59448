"""Aligned maps: hand-worked canvases, both protocols, offsets, groups, merging."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.attention.constructed import shifted, uniform, with_prefix
from tests.conftest import make_batch, random_attention, stream
from vitscope.attention.aligned import Aligned, AlignedStatistic, align, centroid, group_of, sources_per_offset
from vitscope.models.layout import Grid, TokenLayout


def slow_align(attention: Tensor, grid: Grid) -> Tensor:
    h, w = grid
    canvas = torch.zeros(2 * h - 1, 2 * w - 1, dtype=torch.float64)
    for i in range(h):
        for j in range(w):
            for k in range(h):
                for m in range(w):
                    canvas[k - i + h - 1, m - j + w - 1] += float(attention[i * w + j, k * w + m])
    return canvas


@pytest.mark.parametrize("grid", [(1, 1), (2, 2), (3, 5), (7, 4)])
def test_align_is_a_sum_over_sources(grid: Grid) -> None:
    n = grid[0] * grid[1]
    attention = torch.rand(2, 3, n, n, dtype=torch.float64)
    aligned = align(attention, grid)
    assert aligned.shape == (2, 3, 2 * grid[0] - 1, 2 * grid[1] - 1)
    torch.testing.assert_close(aligned[1, 2], slow_align(attention[1, 2], grid))


def test_how_many_sources_reach_an_offset() -> None:
    counts = sources_per_offset((14, 14))
    assert counts[13, 13] == 196
    assert counts[13, 14] == counts[12, 13] == 182
    assert counts[0, 0] == counts[26, 26] == 1
    assert sources_per_offset((2, 3)).tolist() == [[1, 2, 3, 2, 1], [2, 4, 6, 4, 2], [1, 2, 3, 2, 1]]


def run(attention: Tensor, grid: Grid, prefix: int = 1, images: int = 1) -> Aligned:
    layout = TokenLayout(grid, prefix, has_cls=prefix > 0)
    statistic = AlignedStatistic(layout, 1)
    for i in range(images):
        statistic.begin(make_batch([i]))
        statistic.attention(0, attention[None, None])
        statistic.end()
    return statistic.result()


def test_protocols_differ_only_in_their_divisor() -> None:
    result = run(with_prefix(uniform((14, 14)), 1, 0.4), (14, 14), images=3)
    # uniform attention: every reachable offset gets 1/196 from each source that reaches it
    torch.testing.assert_close(
        result.corrected[0, 0], torch.full((27, 27), 1 / 196, dtype=torch.float64), rtol=1e-5, atol=0
    )
    torch.testing.assert_close(result.paper[0, 0], sources_per_offset((14, 14)) / 196**2, rtol=1e-5, atol=0)


def test_offset_of_a_head_that_looks_one_to_the_right() -> None:
    result = run(with_prefix(shifted((14, 14), 0, 1), 1, 0.2), (14, 14))
    down, across = result.offset("paper")[0, 0].tolist()
    assert across == pytest.approx(0.0714286, abs=1e-6)
    assert down == pytest.approx(0, abs=1e-9)
    # corrected: 1 at the right neighbour (182 of 182 sources), 14/196 on itself; sum to one, times one step of 1/13
    assert result.offset("corrected")[0, 0, 1].item() == pytest.approx(1 / (1 + 14 / 196) / 13, abs=1e-6)
    assert result.corrected[0, 0, 13, 14].item() == pytest.approx(1.0, abs=1e-6)
    assert result.paper[0, 0, 13, 14].item() == pytest.approx(182 / 196, abs=1e-6)


def test_centroid_of_a_non_square_grid() -> None:
    aligned = torch.zeros(5, 9)  # grid (3, 5)
    aligned[2 + 1, 4 - 3] = 2.0
    assert centroid(aligned, (3, 5)).tolist() == pytest.approx([1 / 4, -3 / 4])


def test_all_attention_on_prefix_tokens_counts_as_nothing() -> None:
    attention = with_prefix(shifted((4, 4), 0, 0), 1, 1.0)
    result = run(attention, (4, 4))
    assert result.corrected.abs().sum() == 0
    assert not result.offset("corrected").isnan().any()


def test_groups_add_up_to_the_whole() -> None:
    layout = TokenLayout((3, 3), prefix=1)
    attention = random_attention(40, 1, 2, 10)
    statistic = AlignedStatistic(layout, 1)
    for start in range(0, 40, 5):
        stream(statistic, attention, range(start, start + 5), make_batch)
    result = statistic.result()
    assert result.group_sizes.tolist() == [4] * 10 + [0] * 6  # dealt four at a time
    torch.testing.assert_close(result.groups.sum(0) / 40, result.paper)
    spatial = attention[:, 0, :, 1:, 1:].double()
    pure = spatial / spatial.sum(-1, keepdim=True)
    expected = align(pure[group_of(torch.arange(40)) == 3], (3, 3)).sum(0) / 9
    torch.testing.assert_close(result.groups[3, 0], expected, rtol=1e-5, atol=1e-7)
