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
