"""Sinks and collapse on attention whose answer is known."""

from __future__ import annotations

import math

import pytest
import torch

from vitscope.attention.sinks import SinkStatistic, attention_nmi, entropy_of, places_of, sink_map, sink_ratio
from vitscope.data.batches import Batch
from vitscope.models.layout import TokenLayout


def nmi_of(attention: torch.Tensor) -> float:
    received, rows = entropy_of(attention.mean(0)), entropy_of(attention).mean()
    return attention_nmi(received, rows, len(attention)).item()


def test_information_of_known_attention() -> None:
    n = 8
    assert nmi_of(torch.eye(n).double()) == pytest.approx(1)  # every query has a token of its own
    assert nmi_of(torch.full((n, n), 1 / n).double()) == pytest.approx(0, abs=1e-7)  # all look everywhere
    one = torch.zeros(n, n).double()
    one[:, 3] = 1
    assert nmi_of(one) == 0  # all look at one token
    halves = torch.zeros(n, n).double()  # two camps, each looking at a token: 1 bit of log 8, received 1 bit
    halves[: n // 2, 0] = halves[n // 2 :, 1] = 1
    assert nmi_of(halves) == pytest.approx(math.log(2) / math.sqrt(math.log(8) * math.log(2)))
    blur = 0.5 * torch.eye(n).double() + 0.5 / n  # H(mean) = log n; each row: one of .5 + .5/n, others .5/n
    top, rest = 0.5 + 0.5 / n, 0.5 / n
    row = -(top * math.log(top) + (n - 1) * rest * math.log(rest))
    assert nmi_of(blur) == pytest.approx((math.log(n) - row) / math.log(n))


def test_a_sink_of_ten_times_the_others() -> None:
    received = torch.ones(197)
    received[42] = 10
    assert sink_ratio(received / received.sum()).item() == pytest.approx(10)


def test_nothing_on_the_others_is_no_infinity() -> None:
    received = torch.zeros(100)
    received[0] = 1
    assert sink_ratio(received).item() == pytest.approx(100 * 100)  # the median counts a hundredth of 1 / 100


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (TokenLayout((2, 2)), {"cls": [0], "patch": [1, 2, 3, 4]}),
        (TokenLayout((2, 2), prefix=3), {"cls": [0], "register": [1, 2], "patch": [3, 4, 5, 6]}),
        (TokenLayout((2, 2), prefix=0, has_cls=False), {"patch": [0, 1, 2, 3]}),
        (TokenLayout((2, 2), prefix=1, has_cls=False), {"register": [0], "patch": [1, 2, 3, 4]}),
    ],
)
def test_every_token_has_its_place(layout: TokenLayout, expected: dict[str, list[int]]) -> None:
    found = places_of(torch.arange(layout.tokens), layout)
    assert {place: where.nonzero().flatten().tolist() for place, where in found.items()} == expected


def test_the_map_shows_where_the_sink_is() -> None:
    layout = TokenLayout((2, 3))
    attention = torch.full((2, 1, 7, 7), 0.1)
    attention[0, 0, :, 1 + 4] = 0.4  # patch 4: row 1, column 1
    attention[1, 0, :, 0] = 0.4  # CLS
    statistic = SinkStatistic(layout, 1)
    statistic.begin(Batch(torch.empty(2, 0), torch.arange(2), ["a", "b"], None, None))
    statistic.attention(0, attention)
    statistic.end()
    assert sink_map(statistic)[0, 0].tolist() == [[0, 0, 0], [0, 0.5, 0]]
