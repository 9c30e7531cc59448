"""Clusters, neighbours, distances and shapes against scikit-learn and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial import procrustes as scipy_procrustes
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.neighbors import NearestNeighbors

from tests.features.made import blobs
from vitscope.features.clustering import best_of, contingency
from vitscope.features.kmeans import kmeans
from vitscope.features.neighbours import nearest
from vitscope.features.procrustes import procrustes
from vitscope.features.projection import pca
from vitscope.features.rsa import rsa


@pytest.mark.parametrize("seed", range(3))
def test_lloyd_from_the_same_centres(seed: int) -> None:
    points, _ = blobs(400, 12, 8, spread=1.2, seed=seed)
    start = points[torch.randperm(400, generator=torch.Generator().manual_seed(seed))[:8]]
    found = kmeans(points, 8, centres=start.unsqueeze(0))
    reference = KMeans(8, init=start.numpy(), n_init=1).fit(points.numpy())
    assert adjusted_rand_score(found.labels[0].numpy(), reference.labels_) == pytest.approx(1)
    assert found.inertia[0].item() == pytest.approx(reference.inertia_, rel=1e-4)


def test_ten_initialisations_are_as_good_as_scikit_learns() -> None:
    ratios = []
    for seed in range(5):
        points, _ = blobs(600, 16, 20, spread=1.4, seed=seed)
        ours = kmeans(points, 20, runs=10, seed=seed).inertia.min().item()
        ratios.append(ours / KMeans(20, n_init=10, random_state=seed).fit(points.numpy()).inertia_)
    assert max(ratios) < 1.01
    assert np.mean(ratios) == pytest.approx(1, abs=0.005)


def test_first_centres_are_as_good_as_scikit_learns() -> None:
    """Greedy k-means++: the mean inertia of single runs, which a plain random start would more than double."""
    points, _ = blobs(500, 16, 25, spread=0.4)
    ours = kmeans(points, 25, runs=40).inertia.mean().item()
    reference = np.mean([KMeans(25, n_init=1, random_state=s).fit(points.numpy()).inertia_ for s in range(20)])
    assert ours == pytest.approx(reference, rel=0.15)


def test_contingency() -> None:
    generator = torch.Generator().manual_seed(0)
    labels, clusters = (torch.randint(0, 7, (90,), generator=generator) * 3 for _ in range(2))
    assert np.array_equal(contingency(labels, clusters).numpy(), contingency_matrix(labels, clusters).T)


def test_the_same_clusters_as_scikit_learn_on_clear_data() -> None:
    points, labels = blobs(200, 16, 6, spread=0.2)
    reference = KMeans(6, n_init=10, random_state=0).fit_predict(points.numpy())
    assert adjusted_rand_score(best_of(points, 6, seed=0).numpy(), reference) == 1
    assert len(labels) == 200


def test_neighbours() -> None:
    points = torch.randn(80, 9, generator=torch.Generator().manual_seed(0))
    reference = NearestNeighbors(n_neighbors=6, metric="cosine").fit(points.numpy())
    expected = reference.kneighbors(return_distance=False)  # without the point itself
    assert np.array_equal(nearest(points, 6, rows=32).sort(1).values.numpy(), np.sort(expected, axis=1))


def test_rsa_is_spearman_of_distances() -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(40, 5, generator=generator), torch.randn(40, 8, generator=generator)
    y[:, :5] += x
    expected = spearmanr(pdist(x.numpy()), pdist(y.numpy())).statistic
    assert rsa(x, y) == pytest.approx(expected, abs=1e-9)


def test_procrustes_disparity() -> None:
    """SciPy gives 1 - s^2 for the sum s of singular values; ours is s."""
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(30, 6, generator=generator), torch.randn(30, 6, generator=generator)
    y += 2 * x
    disparity = scipy_procrustes(x.double().numpy(), y.double().numpy())[2]
    assert 1 - procrustes(x, y) ** 2 == pytest.approx(disparity, abs=1e-6)


def test_principal_components() -> None:
    points = torch.randn(50, 7, generator=torch.Generator().manual_seed(0)) * torch.arange(1, 8)
    coordinates, share = pca(points)
    reference = PCA(2).fit(points.numpy())
    assert share.numpy() == pytest.approx(reference.explained_variance_ratio_, rel=1e-5)
    assert np.abs(coordinates.numpy()) == pytest.approx(np.abs(reference.transform(points.numpy())), abs=1e-4)
