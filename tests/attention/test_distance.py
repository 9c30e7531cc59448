"""Attention distance: the protocol's test vectors, a slow float64 version, layouts, merging."""

from __future__ import annotations

import math

import pytest
from torch import Tensor

from tests.attention.constructed import noisy, shifted, uniform, with_prefix
from tests.conftest import make_batch, random_attention, stream
from vitscope.attention.distance import DistanceStatistic, attention_distance
from vitscope.models.layout import Grid, TokenLayout


@pytest.mark.parametrize(("edge", "expected"), [(7, 0.60158), (14, 0.56006), (16, 0.55507), (28, 0.54038)])
def test_uniform_attention(edge: int, expected: float) -> None:
    assert attention_distance(uniform((edge, edge)).double(), (edge, edge)).item() == pytest.approx(expected, abs=5e-6)


@pytest.mark.parametrize(("edge", "expected"), [(7, 0.5156), (14, 0.5200), (16, 0.5204), (28, 0.5211)])
def test_patch_free_of_uniform_attention(edge: int, expected: float) -> None:
    layout = TokenLayout((edge, edge), prefix=1)
    statistic = DistanceStatistic(layout, 1, (16, 16))
    stream(statistic, with_prefix(uniform((edge, edge)), 1, 0.3)[None, None, None], [0], make_batch)
    assert statistic.result().patch_free.item() == pytest.approx(expected, abs=1e-4)


def test_one_step_to_the_right() -> None:
    attention = shifted((14, 14), 0, 1)  # the last column attends to itself
    assert attention_distance(attention, (14, 14)).item() == pytest.approx(0.0714286, abs=5e-8)


def slow_distance(probs: Tensor, grid: Grid, prefix: int, scale: tuple[float, float] = (1.0, 1.0)) -> float:
    """Straight from the definition, in Python floats."""
    h, w = grid
    places = [(i * scale[0], j * scale[1]) for i in range(h) for j in range(w)]
    total = 0.0
    for s, here in enumerate(places):
        row = [float(p) for p in probs[prefix + s, prefix:]]
        mass = sum(row)
        if mass > 0:
            total += sum(p / mass * math.dist(here, there) for p, there in zip(row, places, strict=True))
    return total / len(places)


@pytest.mark.parametrize(("grid", "prefix", "has_cls"), [((3, 3), 1, True), ((2, 5), 0, False), ((4, 3), 5, True)])
def test_against_the_definition(grid: Grid, prefix: int, has_cls: bool) -> None:
    layout = TokenLayout(grid, prefix, has_cls)
    attention = random_attention(3, 2, 2, layout.tokens)
    attention[0, 0, 0, -1] = 0  # a source that attends to prefix tokens only
    if prefix:
        attention[0, 0, 0, -1, 0] = 1
    statistic = DistanceStatistic(layout, 2, (16, 8))
    stream(statistic, attention, range(3), make_batch)
    result = statistic.result()
    for picture, layer, head in [(0, 0, 0), (1, 1, 0), (2, 0, 1)]:
        steps = slow_distance(attention[picture, layer, head], grid, prefix)
        assert result.grid[picture, layer, head].item() == pytest.approx(steps / (max(grid) - 1), rel=1e-5)
        pixels = slow_distance(attention[picture, layer, head], grid, prefix, scale=(16.0, 8.0))
        assert result.pixels[picture, layer, head].item() == pytest.approx(pixels, rel=1e-5)


def test_square_patches_in_pixels() -> None:
    layout = TokenLayout((7, 7), prefix=1)
    statistic = DistanceStatistic(layout, 1, (32, 32))
    stream(statistic, with_prefix(shifted((7, 7), 0, 1), 1, 0.5)[None, None, None], [0], make_batch)
    assert statistic.result().pixels.item() == pytest.approx(32 * 6 / 7)  # six of seven columns move one patch


def test_noise_moves_a_local_head_towards_uniform() -> None:
    local, even = shifted((8, 8), 0, 0), uniform((8, 8))
    mixed = attention_distance(noisy(local, 0.25), (8, 8))
    assert mixed.item() == pytest.approx(0.25 * attention_distance(even, (8, 8)).item(), rel=0.02)
