"""Rollout: products of matrices, cases done by hand, and attention that never reaches a patch."""

from __future__ import annotations

import torch

from tests.conftest import make_batch, random_attention, stream
from vitscope.attention.rollout import RolloutStatistic, rollout
from vitscope.models.layout import TokenLayout


def test_rollout_is_the_product_of_half_identity_matrices() -> None:
    attentions = [random_attention(2, 1, 1, 5, seed=s)[:, 0, 0].double() for s in range(3)]
    source = torch.tensor([1.0, 0, 0, 0, 0], dtype=torch.float64)
    product = torch.eye(5, dtype=torch.float64).expand(2, 5, 5)
    for depth, attention in enumerate(attentions):
        product = 0.5 * (attention + torch.eye(5, dtype=torch.float64)) @ product
        torch.testing.assert_close(rollout(attentions, source)[:, depth], product[:, 0])


def test_rollout_by_hand() -> None:
    """Two layers in which CLS looks at patch 1 and patches at themselves: 1/2, then 1/2 + 1/4 of CLS's way is on it."""
    attention = torch.tensor([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    rows = rollout([attention, attention], torch.tensor([1.0, 0, 0]))
    assert rows.tolist() == [[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]]


def test_attention_that_never_leaves_cls_reaches_nothing() -> None:
    """Half of the images look at CLS alone: their maps are zero, and the mean is half of the others'."""
    layout = TokenLayout((1, 2), prefix=1)
    attention = torch.zeros(2, 1, 1, 3, 3)
    attention[0, ..., 0] = 1
    attention[1, ..., 2] = 1
    statistic = RolloutStatistic(layout, 1)
    stream(statistic, attention, range(2), make_batch)
    assert statistic.result().tolist() == [[[0.0, 0.5]]]
