"""States that merge: which images were seen, in whatever order, at a cost that grows with what is merged."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.conftest import make_batch
from vitscope.attention.analysis import AllAttention
from vitscope.core.statistic import Positions, Statistic, compensated
from vitscope.features.gram_statistic import GramStatistic
from vitscope.features.pooling import PooledStatistic
from vitscope.models.layout import TokenLayout

LAYOUT = TokenLayout(grid=(2, 2))


def test_positions_know_what_they_hold() -> None:
    seen = Positions()
    assert seen.holds(torch.tensor([0, 5])).tolist() == [False, False]
    assert (len(seen), seen.numbers.tolist()) == (0, [])
    seen.add(torch.tensor([4, 2]))
    seen.add(torch.tensor([], dtype=torch.int64))
    seen.add(torch.tensor([100]))
    assert seen.numbers.tolist() == [4, 2, 100]
    assert len(seen) == 3
    assert seen.holds(torch.tensor([[2, 3], [100, 10_000]])).tolist() == [[True, False], [True, False]]
    assert Positions(torch.tensor([7])).holds(torch.tensor([7, 8])).tolist() == [True, False]


def test_numbers_are_a_copy() -> None:
    """Several statistics of one pass write theirs into one file: they must not share memory."""
    given = torch.tensor([1, 2])
    seen = Positions(given)
    assert seen.numbers.data_ptr() != given.data_ptr()


def test_rows_come_in_the_order_of_the_list_that_is_meant() -> None:
    statistic = PooledStatistic(LAYOUT, ("cls",))
    for indices in ([2, 3], [0, 1]):  # shards in another order
        statistic.begin(make_batch(indices))
        statistic.tokens(0, torch.tensor(indices).float()[:, None, None].expand(2, LAYOUT.tokens, 1))
        statistic.end()
    assert statistic.rows_of("cls/0").flatten().tolist() == [0, 1, 2, 3]
    places = torch.tensor([3, 0, 2, 1])  # image 0 of the stream stands at place 3
    assert statistic.rows_of("cls/0", places).flatten().tolist() == [1, 3, 2, 0]


def test_compensated_sums_keep_what_float32_loses() -> None:
    values = torch.full((3000, 2), 0.1)
    values[0] = torch.tensor([2.0**24, -(2.0**27)])  # one unit of whose last digit is 1, or 8
    exact = values.double().sum(0)
    plain, total, lost = values[0], values[0], None
    for value in values[1:]:
        plain = plain + value
        total, lost = compensated(total, lost, value)
    assert lost is not None
    torch.testing.assert_close(total.double() + lost.double(), exact, rtol=1e-9, atol=0)
    assert torch.equal(plain, values[0]), "the small ones vanish"


# -- merging is linear in shards ------------------------------------------------------------------------------------

SHARD = 4  # images
MAKE: dict[str, Callable[[], Statistic]] = {
    "pooled": lambda: PooledStatistic(LAYOUT, ("cls",)),
    "grams": lambda: GramStatistic(LAYOUT, 1, block=SHARD),
    "attention": lambda: AllAttention(LAYOUT, 1, (8, 8)),
}


def states(make: Callable[[], Statistic], count: int) -> list[dict[str, Tensor]]:
    """States of so many shards: one that was computed, under other positions and numbers of blocks."""
    torch.manual_seed(0)
    one = make()
    one.begin(make_batch(range(SHARD)))
    one.attention(0, torch.rand(SHARD, 2, LAYOUT.tokens, LAYOUT.tokens).softmax(-1))
    one.tokens(0, torch.randn(SHARD, LAYOUT.tokens, 3))
    one.end()
    found = []
    for shard in range(count):
        state = dict(one.state())
        for name, value in state.items():
            if name.endswith("indices"):
                state[name] = value + SHARD * shard
            elif name == "row/number":
                state[name] = value + shard
        found.append(state)
    return found


def merged(make: Callable[[], Statistic], shards: list[dict[str, Tensor]]) -> tuple[Statistic, float]:
    """All shards in one, and the seconds that took (of the processor: others may be busy)."""
    parts = []
    for state in shards:
        part = make()
        part.load_state(state)
        parts.append(part)
    whole, start = make(), time.process_time()
    for part in parts:
        whole.merge(part)
    return whole, time.process_time() - start


@pytest.mark.parametrize("name", MAKE)
def test_eight_times_the_shards_cost_about_eight_times(name: str) -> None:
    """ImageNet has 500 shards. Asking every earlier one would cost 64 times; less than half of that is allowed."""
    make = MAKE[name]
    few, many = states(make, 100), states(make, 800)
    ratios = []
    for _ in range(3):
        (_, short), (whole, long) = merged(make, few), merged(make, many)
        ratios.append(long / short)
    assert whole.count == 800 * SHARD
    assert min(ratios) < 24, ratios


@pytest.mark.parametrize("name", MAKE)
def test_among_many_shards_an_image_counted_twice_is_still_found(name: str) -> None:
    make = MAKE[name]
    shards = states(make, 60)
    whole, _ = merged(make, shards)
    again = make()
    again.load_state(shards[17])
    with pytest.raises(ValueError, match="4 images were counted in both states, such as 68"):
        whole.merge(again)
