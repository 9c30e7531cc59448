"""The look of late maps: sparsity, place, shape and repetition, by hand and against numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.conftest import make_batch, random_attention, stream
from vitscope.attention.patterns import (
    PatternStatistic,
    centre_lift,
    compactness,
    gini,
    late_from,
    repetition,
    top_share,
)
from vitscope.models.layout import TokenLayout


def test_gini_is_the_mean_difference() -> None:
    values = torch.rand(20, dtype=torch.float64)
    x = values.numpy()
    expected = np.abs(x[:, None] - x[None, :]).mean() / (2 * x.mean())
    assert gini(values).item() == pytest.approx(expected)
    assert gini(torch.ones(50)).item() == pytest.approx(0, abs=1e-6)
    assert gini(torch.zeros(50)).item() == 0  # a head that looks at CLS alone is not sparse among patches


def test_top_share() -> None:
    assert top_share(torch.tensor([0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])).item() == pytest.approx(0.8)
    assert top_share(torch.tensor([0.5, 0.5])).item() == pytest.approx(1)


def test_centre_lift() -> None:
    centre = torch.zeros(8, 8)
    centre[2:6, 2:6] = 1  # exactly the central half of each side
    assert centre_lift(centre.flatten(), (8, 8)).item() == pytest.approx(4)
    assert centre_lift(torch.ones(64), (8, 8)).item() == pytest.approx(1)
    border = 1 - centre
    assert centre_lift(border.flatten(), (8, 8)).item() == 0


def test_compactness() -> None:
    everything = torch.ones(12, dtype=torch.bool)
    assert compactness(everything, (3, 4)).item() == 1
    chequered = torch.tensor([[(i + j) % 2 == 0 for j in range(4)] for i in range(3)]).flatten()
    assert compactness(chequered, (3, 4)).item() == 0
    pair = torch.zeros(4, 4, dtype=torch.bool)
    pair[1, 1] = pair[1, 2] = True  # two inner tokens, eight neighbours in all, two of them in the mask
    assert compactness(pair.flatten(), (4, 4)).item() == pytest.approx(2 / 8)
    assert compactness(torch.zeros(4, dtype=torch.bool), (2, 2)).item() == 0


def test_repetition_is_the_mean_correlation_with_the_others() -> None:
    maps = torch.rand(2, 5, 30, dtype=torch.float64)
    for picture in range(2):
        matrix = np.corrcoef(maps[picture].numpy())
        expected = (matrix.sum(1) - 1) / 4
        np.testing.assert_allclose(repetition(maps)[picture].numpy(), expected)
    assert repetition(maps[:, :1]).isnan().all()


def test_constant_maps_repeat_nothing() -> None:
    assert repetition(torch.ones(1, 3, 9)).abs().max().item() < 1e-6


def test_late_layers_are_the_last_quarter() -> None:
    assert [late_from(depth) for depth in (1, 2, 4, 12, 24, 32)] == [0, 1, 3, 9, 18, 24]


def test_repetition_is_only_of_late_layers() -> None:
    statistic = PatternStatistic(TokenLayout((3, 4), prefix=1), 4)
    stream(statistic, random_attention(3, 4, 2, 13), range(3), make_batch)
    assert statistic.result().repetition[:, :3].isnan().all()
    assert not statistic.result().repetition[:, 3].isnan().any()


def test_repetition_in_a_layer_is_that_of_its_heads() -> None:
    statistic = PatternStatistic(TokenLayout((3, 4), prefix=1), 2)
    attention = random_attention(3, 2, 4, 13)
    stream(statistic, attention, range(3), make_batch)
    found = statistic.result().repetition_in_layer
    maps = attention[:, :, :, 0, 1:].double().numpy()
    for image, layer in np.ndindex(3, 2):
        expected = (np.corrcoef(maps[image, layer]).sum(1) - 1) / 3
        np.testing.assert_allclose(found[image, layer].numpy(), expected, atol=1e-6)


def test_repetition_across_images_is_the_mean_correlation_of_pairs_of_images() -> None:
    layout, attention = TokenLayout((3, 4), prefix=1), random_attention(20, 2, 3, 13)
    whole, parts = PatternStatistic(layout, 2), [PatternStatistic(layout, 2) for _ in range(2)]
    stream(whole, attention, range(20), make_batch)
    for part, rows in zip(parts, (range(7), range(7, 20)), strict=True):
        stream(part, attention, rows, make_batch)
    parts[1].merge(parts[0])
    maps = attention[:, :, :, 0, 1:].double().numpy()
    found = whole.across_images()
    torch.testing.assert_close(parts[1].across_images().mean, found.mean)
    for layer, head in np.ndindex(2, 3):
        expected = (np.corrcoef(maps[:, layer, head]).sum() - 20) / (20 * 19)
        assert found.mean[layer, head].item() == pytest.approx(expected, abs=1e-6)
    assert (found.low < found.high).all()


def test_what_repeats_across_images_is_told_from_what_repeats_within_them() -> None:
    """Head 1 looks at the same places in every image; heads 2 and 3 at one object, elsewhere in each image."""
    generator = torch.Generator().manual_seed(0)
    attention = torch.zeros(64, 1, 3, 17, 17)
    fixed, moving = torch.rand(16, generator=generator), torch.rand(64, 16, generator=generator)
    attention[:, 0, 0, 0, 1:] = fixed
    attention[:, 0, 1:, 0, 1:] = moving[:, None]
    statistic = PatternStatistic(TokenLayout((4, 4), prefix=1), 1)
    stream(statistic, attention, range(64), make_batch)
    across, within = statistic.across_images(), statistic.result().repetition_in_layer.mean(0)
    assert across.mean[0, 0].item() == pytest.approx(1, abs=1e-6)
    assert across.low[0, 0].item() == pytest.approx(1, abs=1e-6)
    assert across.mean[0, 1:].abs().max() < 0.05
    assert (across.low[0, 1:] < 0.05).all()
    assert within[0, 1] > 0.4  # one of two others is the same map
    assert within[0, 0].abs() < 0.1


def test_one_image_repeats_no_other() -> None:
    statistic = PatternStatistic(TokenLayout((3, 4), prefix=1), 2)
    stream(statistic, random_attention(1, 2, 3, 13), [0], make_batch)
    assert statistic.across_images().mean.isnan().all()
