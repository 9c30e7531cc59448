"""Pooled features of every layer: against the tokens themselves."""

from __future__ import annotations

import pytest
import torch

from tests.features.made import check_order_free, inside, show_tokens, tiny
from vitscope.core.errors import BadData, VitscopeError
from vitscope.features.pooling import PooledStatistic, check_poolings, pool
from vitscope.models.layout import TokenLayout

LAYOUT = TokenLayout(grid=(1, 3), prefix=2)


def test_poolings_by_hand() -> None:
    tokens = torch.tensor([[[7.0, 1], [99, 99], [1, 2], [3, 6], [5, 1]]])  # CLS, a register, three spatial tokens
    assert pool(tokens, LAYOUT, "cls").tolist() == [[7, 1]]
    assert pool(tokens, LAYOUT, "mean").tolist() == [[3, 3]]
    assert pool(tokens, LAYOUT, "max").tolist() == [[5, 6]]
    assert torch.equal(pool(tokens, LAYOUT, "tokens"), tokens)
    with pytest.raises(ValueError, match="pooling must be"):
        pool(tokens, LAYOUT, "median")
    with pytest.raises(ValueError, match="no CLS"):
        pool(tokens, TokenLayout((1, 3), prefix=2, has_cls=False), "cls")


def test_which_poolings_a_model_has() -> None:
    without = TokenLayout((2, 2), prefix=0, has_cls=False)
    assert check_poolings(["mean", "cls", "mean"], LAYOUT, "m") == ("mean", "cls")
    assert check_poolings(["cls", "mean"], without, "m") == ("mean",)
    with pytest.raises(VitscopeError, match="'m' has no CLS token"):
        check_poolings(["cls"], without, "m")
    with pytest.raises(VitscopeError, match="no pooling 'avg'"):
        check_poolings(["avg"], LAYOUT, "m")


def test_block_outputs_before_the_final_norm_are_what_is_pooled() -> None:
    backbone = tiny()
    images = torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8)
    statistic = PooledStatistic(backbone.layout, ("cls", "mean", "max", "tokens"))
    statistic.begin(type("B", (), {"indices": torch.arange(4), "ids": list("abcd")})())
    backbone.trace(images, [statistic])
    statistic.end()
    found = statistic.result()
    layers = inside(backbone).forward_intermediates(
        backbone.preprocessing.normalise(images), intermediates_only=True, output_fmt="NLC", return_prefix_tokens=True
    )
    for layer, (spatial, prefix) in enumerate(layers):
        torch.testing.assert_close(found["cls"][:, layer], prefix[:, 0])
        torch.testing.assert_close(found["mean"][:, layer], spatial.mean(1))
        torch.testing.assert_close(found["max"][:, layer], spatial.amax(1))
        torch.testing.assert_close(found["tokens"][:, layer], torch.cat([prefix, spatial], dim=1))


def test_merging_is_order_free() -> None:
    layers = [torch.randn(10, LAYOUT.tokens, 4, generator=torch.Generator().manual_seed(i)) for i in range(3)]
    check_order_free(
        lambda: PooledStatistic(LAYOUT, ("cls", "mean")),
        lambda statistic, indices: show_tokens(statistic, layers, indices),
        lambda found: found,
        cuts=[0, 3, 4, 10],
    )


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_features_that_are_no_numbers_are_refused_by_name(bad: float) -> None:
    layers = [torch.zeros(4, LAYOUT.tokens, 4) for _ in range(2)]
    layers[1][2, 3, 0] = bad
    with pytest.raises(BadData, match="layer 2 gives NaN or infinite features for 2"):
        show_tokens(PooledStatistic(LAYOUT, ("mean",)), layers, range(4))


def test_numbers_too_large_for_half_precision_are_told() -> None:
    layers = [torch.full((2, LAYOUT.tokens, 4), 7e4)]
    show_tokens(PooledStatistic(LAYOUT, dtype=torch.float32), layers, range(2))
    with pytest.raises(VitscopeError, match=r"7e\+04.*store them as float32"):
        show_tokens(PooledStatistic(LAYOUT, dtype=torch.float16), layers, range(2))
