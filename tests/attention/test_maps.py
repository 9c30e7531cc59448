"""Mean maps and rollout against float64 and by hand; models without CLS; order of observers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.attention.constructed import shifted, with_prefix
from tests.conftest import make_batch, random_attention, stream
from vitscope.attention.maps import MapStatistic
from vitscope.models.layout import TokenLayout


@pytest.mark.parametrize(("prefix", "has_cls"), [(0, False), (1, True), (4, False)])
def test_maps_against_float64(prefix: int, has_cls: bool) -> None:
    layout = TokenLayout((2, 3), prefix, has_cls)
    attention = random_attention(4, 2, 3, layout.tokens)
    statistic = MapStatistic(layout, 2)
    stream(statistic, attention, range(4), make_batch)
    result = statistic.result()
    exact = attention.double()
    spatial = exact[..., prefix:, :]
    pure = spatial[..., prefix:] / spatial[..., prefix:].sum(-1, keepdim=True)

    def mean(values: Tensor) -> Tensor:
        return values.mean(0).unflatten(-1, (2, 3))

    torch.testing.assert_close(result.all, mean(exact.mean(-2)[..., prefix:]), rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(result.spatial, mean(spatial.mean(-2)[..., prefix:]), rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(result.pure, mean(pure.mean(-2)), rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(result.prefix, spatial.mean(-2)[..., :prefix].mean(0), rtol=1e-5, atol=1e-7)
    for name, token in {"top": 1, "left": 3, "centre": 4, "right": 5, "bottom": 4}.items():  # of two rows of three
        row = exact[..., prefix + token, :]
        torch.testing.assert_close(result.places[name], mean(row[..., prefix:]), rtol=1e-5, atol=1e-7)
        torch.testing.assert_close(result.cells[name], row[..., :prefix].mean(0), rtol=1e-5, atol=1e-7)
    if has_cls:
        torch.testing.assert_close(result.cls, mean(exact[..., 0, prefix:]), rtol=1e-5, atol=1e-7)
    else:
        assert result.cls is None  # never token 0 by accident


def test_a_map_and_its_prefix_cells_hold_all_attention() -> None:
    layout = TokenLayout((3, 3), prefix=2)
    statistic = MapStatistic(layout, 2)
    stream(statistic, random_attention(3, 2, 4, 11), range(3), make_batch)
    result = statistic.result()
    assert result.cls is not None
    shown = {"cls": result.cls, "all": result.all, "spatial": result.spatial, **result.places}
    assert shown.keys() == result.cells.keys()
    for name, values in shown.items():
        total = values.sum((-1, -2)) + result.cells[name].sum(-1)
        torch.testing.assert_close(total, torch.ones(2, 4, dtype=torch.float64), rtol=0, atol=1e-6)


def test_sources_that_see_prefix_tokens_only_are_counted() -> None:
    layout = TokenLayout((2, 2), prefix=1)
    statistic = MapStatistic(layout, 1)
    attention = with_prefix(shifted((2, 2), 0, 0), 1, 0.0)
    attention[2] = torch.tensor([1.0, 0, 0, 0, 0])
    stream(statistic, attention[None, None, None], [0], make_batch)
    assert statistic.result().nulls.tolist() == [[1]]
    assert statistic.result().pure.sum().item() == pytest.approx(3 / 4)


def test_half_precision_sums_do_not_stall() -> None:
    """Summed in half precision, 4,000 pictures of weight one would stall at 2,048."""
    layout = TokenLayout((1, 2), prefix=1)
    statistic = MapStatistic(layout, 1)
    attention = torch.tensor([[0.0, 1.0, 0.0]] * 3).half().expand(500, 1, 1, 3, 3)
    for start in range(0, 4000, 500):
        statistic.begin(make_batch(range(start, start + 500)))
        statistic.attention(0, attention[:, 0])
        statistic.end()
    cls = statistic.result().cls
    assert cls is not None
    assert cls[0, 0].tolist() == [[1.0, 0.0]]
