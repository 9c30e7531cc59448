"""Dimensions and projections of features whose dimension is known."""

from __future__ import annotations

import math

import pytest
import torch

from vitscope.features.projection import pca, tsne
from vitscope.features.spectrum import effective_rank, intrinsic_dimension


def test_effective_rank_by_hand() -> None:
    # orthogonal directions with singular values 3 and 1: shares 3/4 and 1/4
    points = torch.tensor([[3.0, 0, 0], [-3, 0, 0], [0, 1, 0], [0, -1, 0]])
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert effective_rank(points) == pytest.approx(math.exp(entropy), rel=1e-6)
    assert effective_rank(points + 100) == pytest.approx(math.exp(entropy), rel=1e-6)
    assert math.isnan(effective_rank(torch.full((6, 3), 0.1)))


def test_effective_rank_is_the_same_for_tall_and_wide_features() -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(20, 6, generator=generator)
    wide = torch.cat([points, torch.zeros(20, 30)], dim=1)
    assert effective_rank(points) == pytest.approx(effective_rank(wide), rel=1e-6)
    assert 4 < effective_rank(points) <= 6


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_intrinsic_dimension_of_a_curved_sheet(dimension: int) -> None:
    generator = torch.Generator().manual_seed(dimension)
    flat = torch.rand(1500, dimension, generator=generator)
    curved = torch.cat([flat, (3 * flat).sin(), flat.square().sum(1, keepdim=True)], dim=1)
    assert intrinsic_dimension(curved, rows=400) == pytest.approx(dimension, rel=0.12)


def test_duplicates_and_constants_do_not_give_a_dimension() -> None:
    assert math.isnan(intrinsic_dimension(torch.ones(20, 3)))
    points = torch.rand(400, 2, generator=torch.Generator().manual_seed(0))
    doubled = torch.cat([points, points[:1]])
    assert intrinsic_dimension(doubled) == pytest.approx(2, rel=0.2)


def test_pca_finds_the_axes() -> None:
    points = torch.tensor([[2.0, 0], [-2, 0], [0, 1], [0, -1]]) + 7
    coordinates, share = pca(points)
    assert share.tolist() == pytest.approx([0.8, 0.2])
    torch.testing.assert_close(coordinates.abs(), torch.tensor([[2, 0], [2, 0], [0, 1], [0, 1]]).double())
    assert torch.equal(pca(points)[0], pca(points)[0])


def test_pca_of_too_little() -> None:
    assert pca(torch.ones(5, 3))[0].abs().max() == 0
    coordinates, share = pca(torch.tensor([[1.0], [2.0], [3.0]]))
    assert coordinates.shape == (3, 2)
    assert share.tolist() == [1, 0]


def test_tsne_keeps_far_groups_apart() -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(30, 8, generator=generator) * 0.1
    points[:15, 0] += 3
    points[15:, 1] += 3
    found = tsne(points)
    assert found is not None
    assert found.shape == (30, 2)
    centres = torch.stack([found[:15].mean(0), found[15:].mean(0)])
    within = max((found[:15] - centres[0]).norm(dim=1).max(), (found[15:] - centres[1]).norm(dim=1).max())
    assert (centres[0] - centres[1]).norm() > within
    assert tsne(points[:9]) is None
