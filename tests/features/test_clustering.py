"""k-means and the scores of clusters, on points whose clusters are known."""

from __future__ import annotations

import pytest
import torch

from tests.features.made import blobs
from vitscope.features.clustering import best_of, chance_purity, cluster_layers, contingency, purity
from vitscope.features.kmeans import kmeans


def test_separated_blobs_are_found() -> None:
    points, labels = blobs(200, 16, 5, spread=0.2)
    found = best_of(points, 5, seed=0)
    assert purity(labels, found) == 1
    assert len(found.unique()) == 5


def test_four_points_by_hand() -> None:
    points = torch.tensor([[0.0], [1.0], [10.0], [12.0]])
    found = kmeans(points, 2, runs=5)
    best = found.inertia.argmin()
    assert found.inertia[best].item() == pytest.approx(2 * 0.25 + 2 * 1)
    assert found.centres[best].flatten().sort().values.tolist() == pytest.approx([0.5, 11])


def test_inertia_belongs_to_the_labels() -> None:
    points, _ = blobs(300, 8, 6, spread=1.5)
    found = kmeans(points, 6, runs=3)
    for run in range(3):
        centres = torch.stack([points[found.labels[run] == c].mean(0) for c in range(6)])
        again = (points - centres[found.labels[run]]).square().sum()
        assert found.inertia[run].item() == pytest.approx(again.item(), rel=1e-3)


def test_the_same_seed_gives_the_same_clusters() -> None:
    points, _ = blobs(100, 8, 4, spread=2)
    assert torch.equal(kmeans(points, 4, runs=3, seed=1).labels, kmeans(points, 4, runs=3, seed=1).labels)
    assert not torch.equal(kmeans(points, 4, runs=3, seed=1).labels, kmeans(points, 4, runs=3, seed=2).labels)


def test_an_empty_cluster_moves_to_the_farthest_point() -> None:
    points = torch.tensor([[0.0], [0.1], [5.0]])
    start = torch.tensor([[[0.0], [100.0]]])  # nothing is nearest to the second centre
    assert kmeans(points, 2, centres=start).labels[0].tolist() == [0, 0, 1]


def test_equal_points_and_as_many_clusters_as_points() -> None:
    assert kmeans(torch.ones(10, 3), 4, runs=2).inertia.tolist() == [0, 0]
    assert kmeans(torch.eye(5), 5, runs=2).inertia.max() < 1e-6
    with pytest.raises(ValueError, match="3 points cannot be put into 4 clusters"):
        kmeans(torch.eye(3), 4)


def test_contingency_and_purity_by_hand() -> None:
    labels, clusters = torch.tensor([3, 3, 5, 5, 9]), torch.tensor([1, 1, 1, 8, 8])
    assert contingency(labels, clusters).tolist() == [[2, 1, 0], [0, 1, 1]]
    assert purity(labels, clusters) == pytest.approx(3 / 5)


def test_chance_purity_is_not_zero_for_few_points() -> None:
    labels = torch.arange(10).repeat_interleave(2)
    chance = chance_purity(labels, labels)  # ten clusters of two: each has a majority of at least one
    assert 0.5 <= chance < 0.7
    many = torch.arange(4000) % 2
    assert chance_purity(many, many) == pytest.approx(0.5, abs=0.03)


def test_layers_differ_and_seeds_have_a_spread() -> None:
    points, labels = blobs(120, 16, 6, spread=0.3)
    noise = torch.randn(120, 16, generator=torch.Generator().manual_seed(1))
    found = cluster_layers([noise, points], labels, seeds=3)
    assert found.purity.shape == (2, 3)
    assert found.k == 6
    assert (found.purity[1] == 1).all()
    assert (found.nmi[1] > 0.999).all()
    assert (found.purity[0] < 0.5).all()
    assert found.purity[0].min() < found.purity[0].max()
    assert found.purity[0].mean() == pytest.approx(found.chance[0].item(), abs=0.08)
    assert found.ari[0].abs().max() < 0.1


def test_outlier_channels_decide_the_published_protocol_only() -> None:
    points, labels = blobs(120, 16, 4, spread=0.3)
    outlier = points.clone()
    outlier[:, 0] = 50 * (torch.arange(120) % 7 == 0)  # a channel that says nothing of the class, on a few pictures
    outlier[:, 1] += 3
    corrected = cluster_layers([outlier], labels, seeds=1)
    paper = cluster_layers([outlier], labels, protocol="paper")
    assert paper.purity.shape == (1, 1)
    assert corrected.purity[0, 0] >= paper.purity[0, 0]
    with pytest.raises(ValueError, match="protocols"):
        cluster_layers([points], labels, protocol="best")
