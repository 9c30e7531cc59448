"""Maps of single pictures: the right picture at its place, however the list was cut; broken ones left out."""

from __future__ import annotations

import pytest
import torch

from tests.conftest import make_batch, random_attention, stream
from vitscope.attention.examples import ExampleStatistic, at_most
from vitscope.data.dataset import EXAMPLES
from vitscope.models.layout import TokenLayout


@pytest.mark.parametrize(("prefix", "has_cls"), [(0, False), (1, True), (4, False)])
def test_maps_are_those_of_the_first_images(prefix: int, has_cls: bool) -> None:
    layout = TokenLayout((2, 3), prefix, has_cls)
    attention = random_attention(8, 2, 3, layout.tokens)
    statistic = ExampleStatistic(layout, 2)
    order = [6, 1, 3, 0, 7, 2, 4, 5]
    stream(statistic, attention, order, make_batch)
    exact = attention[:EXAMPLES].double()
    expected = exact[..., 0, prefix:] if has_cls else exact[..., prefix:, prefix:].mean(-2)
    result = statistic.result()
    assert result is not None
    torch.testing.assert_close(result.maps, expected.unflatten(-1, (2, 3)), rtol=1e-5, atol=1e-7)
    assert len(result.images) == EXAMPLES


def test_an_image_that_was_never_seen_leaves_no_empty_map() -> None:
    layout = TokenLayout((2, 2), prefix=1)
    attention = random_attention(10, 1, 1, layout.tokens)
    statistic = ExampleStatistic(layout, 1)
    stream(statistic, attention, [0, 2, 9], make_batch)
    result = statistic.result()
    assert result is not None
    assert result.maps.shape == (2, 1, 1, 2, 2)
    torch.testing.assert_close(result.maps[1, 0, 0].flatten(), attention[2, 0, 0, 0, 1:].double())
    late = ExampleStatistic(layout, 1)
    stream(late, attention, [7, 8, 9], make_batch)
    assert late.result() is None


def test_large_maps_are_averaged_and_keep_their_mean() -> None:
    maps = torch.rand(2, 3, 56, 28, dtype=torch.float64)
    small = at_most(maps, 28)
    assert small.shape == (2, 3, 28, 14)
    torch.testing.assert_close(small, maps.unflatten(2, (28, 2)).unflatten(4, (14, 2)).mean((3, 5)))
