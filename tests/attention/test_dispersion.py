"""Prefix mass, entropy and deviations against torch's own float64 reductions, and by hand."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import entropy as scipy_entropy

from tests.attention.constructed import uniform, with_prefix
from tests.conftest import make_batch, random_attention, stream
from vitscope.attention.dispersion import (
    DispersionStatistic,
    deviation_over_heads,
    deviation_over_positions,
    entropy,
)
from vitscope.models.layout import TokenLayout


@pytest.mark.parametrize(("prefix", "has_cls"), [(0, False), (1, True), (5, True)])
def test_against_float64(prefix: int, has_cls: bool) -> None:
    layout = TokenLayout((3, 4), prefix, has_cls)
    attention = random_attention(5, 2, 3, layout.tokens)
    statistic = DispersionStatistic(layout, 2)
    stream(statistic, attention, range(5), make_batch)
    result = statistic.result()
    exact = attention.double()
    spatial = exact[..., prefix:, prefix:]
    expected = {
        "prefix_mass": exact[..., prefix:, :prefix].sum(-1).mean(-1),
        "first_spatial_mass": exact[..., prefix:, prefix].mean(-1),
        "entropy": torch.from_numpy(scipy_entropy(exact.numpy(), axis=-1)).mean(-1),
        "head_deviation": spatial.std(dim=2, correction=1).mean((-1, -2)),
        "position_deviation": spatial.std(dim=3, correction=1).mean(-1),
    }
    for name, value in expected.items():
        torch.testing.assert_close(getattr(result, name), value, rtol=2e-5, atol=2e-6)
    torch.testing.assert_close(entropy(exact), expected["entropy"])
    torch.testing.assert_close(deviation_over_heads(spatial[:, 0]), expected["head_deviation"][:, 0])
    torch.testing.assert_close(deviation_over_positions(spatial[:, 0]), expected["position_deviation"][:, 0])


def test_the_published_cls_measure_reads_the_top_left_patch() -> None:
    layout = TokenLayout((2, 2), prefix=1)
    attention = torch.zeros(5, 5)
    attention[:, 0], attention[:, 1] = 0.7, 0.3  # everybody: 0.7 on CLS, 0.3 on the top-left patch
    statistic = DispersionStatistic(layout, 1)
    stream(statistic, attention[None, None, None], [0], make_batch)
    assert statistic.result().prefix_mass.item() == pytest.approx(0.7)
    assert statistic.result().first_spatial_mass.item() == pytest.approx(0.3)


def test_uniform_attention_has_no_deviation_and_the_largest_entropy() -> None:
    layout = TokenLayout((14, 14), prefix=1)
    attention = torch.full((1, 1, 12, 197, 197), 1 / 197)
    statistic = DispersionStatistic(layout, 1)
    stream(statistic, attention, [0], make_batch)
    result = statistic.result()
    assert result.entropy.mean().item() == pytest.approx(math.log(197), rel=1e-6)
    assert result.head_deviation.max().item() < 1e-9
    assert result.position_deviation.max().item() < 1e-9


def test_degenerate_attention_gives_no_nan_but_for_a_single_head() -> None:
    layout = TokenLayout((2, 2), prefix=1)
    one_hot = torch.eye(5)[None, None, None]
    statistic = DispersionStatistic(layout, 1)
    stream(statistic, one_hot, [0], make_batch)
    result = statistic.result()
    assert result.entropy.item() == pytest.approx(0, abs=1e-6)
    assert result.head_deviation.isnan().all()  # there is no deviation over one head
    assert result.position_deviation.item() == pytest.approx(0.5)  # std of (1, 0, 0, 0) with ddof 1


def test_half_precision_attention_is_accumulated_in_float32() -> None:
    layout = TokenLayout((4, 4), prefix=1)
    statistic = DispersionStatistic(layout, 1)
    attention = with_prefix(uniform((4, 4)), 1, 0.25).half()[None, None, None].repeat(1, 1, 2, 1, 1)
    stream(statistic, attention, [0], make_batch)
    assert statistic.result().prefix_mass.mean().item() == pytest.approx(0.25, abs=1e-3)
