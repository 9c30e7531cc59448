"""The pass in bfloat16, as on a GPU, against float32: how far numbers move.

bfloat16 has 8 bits: a rounding is at most 0.4 %. Stated: distances, entropies and prefix masses of heads, means over a
few images, within 2 % of their range; directions of pooled features within a cosine of 0.99.
"""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from tests.conftest import make_batch
from vitscope.attention.analysis import AllAttention
from vitscope.features.pooling import PooledStatistic
from vitscope.models import backbone as backbones
from vitscope.models import load_model


def study(images: torch.Tensor) -> tuple[AllAttention, PooledStatistic]:
    network = load_model("zoo/dino")
    statistics = AllAttention.of(network.shape), PooledStatistic(network.layout)
    batch = make_batch(range(len(images)))
    batch.images = images
    for statistic in statistics:
        statistic.begin(batch)
    network.trace(images, statistics)
    for statistic in statistics:
        statistic.end()
    return statistics


def test_half_precision_of_the_network_moves_no_number_far(monkeypatch: pytest.MonkeyPatch) -> None:
    size = load_model("zoo/dino").preprocessing.size
    coarse = torch.rand(6, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    images = (F.interpolate(coarse, size, mode="bilinear") * 255).to(torch.uint8)
    exact, features = study(images)
    monkeypatch.setattr(backbones, "autocast", lambda _device: torch.autocast("cpu", torch.bfloat16))
    rounded, rough = study(images)
    distances = [one.distance.result().grid.mean(0) for one in (exact, rounded)]
    assert not torch.equal(*distances), "the network ran in float32"
    assert (distances[0] - distances[1]).abs().max() < 0.02
    spread, rough_spread = exact.dispersion.result(), rounded.dispersion.result()
    tokens = torch.tensor(exact.layout.tokens).log()
    assert ((spread.entropy - rough_spread.entropy).mean(0) / tokens).abs().max() < 0.02
    assert (spread.prefix_mass - rough_spread.prefix_mass).mean(0).abs().max() < 0.02
    for pooling, values in features.result().items():
        assert F.cosine_similarity(values, rough.result()[pooling], dim=-1).min() > 0.99
