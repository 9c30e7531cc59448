"""k-NN against scikit-learn: the neighbours, and what weighted votes make of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from vitscope.tasks import knn, nearest


def clustered(count: int, classes: int, width: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Features around class centres (the centres are the same for every seed), and labels."""
    centres = torch.randn(classes, width, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, classes, (count,), generator=generator)
    return centres[labels] + 2.5 * torch.randn(count, width, generator=generator), labels


@pytest.mark.parametrize(("queries", "bank"), [(3, 11), (64, 100), (7, 1000), (512, 8192)])
def test_neighbours_whatever_the_blocks(queries: int, bank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "QUERY_BLOCK", queries)
    monkeypatch.setattr(nearest, "BANK_BLOCK", bank)
    features, _ = clustered(700, 9, 16, seed=1)
    asked, _ = clustered(50, 9, 16, seed=2)
    oracle = NearestNeighbors(n_neighbors=40, algorithm="brute", metric="cosine").fit(features.double().numpy())
    distances, positions = oracle.kneighbors(asked.double().numpy())
    cosines, found = nearest.nearest(asked, features, 40)
    np.testing.assert_allclose(cosines.numpy(), 1 - distances, atol=1e-5)
    np.testing.assert_array_equal(found.numpy(), positions)


def test_class_sorted_banks_are_no_exception() -> None:
    features, labels = clustered(900, 5, 8, seed=3)
    order = labels.argsort()
    cosines, found = nearest.nearest(features[:20], features, 30)
    again, sorted_found = nearest.nearest(features[:20], features[order], 30)
    torch.testing.assert_close(again, cosines)
    assert torch.equal(order[sorted_found].sort(1).values, found.sort(1).values)


def test_half_precision_arrays_on_disk(tmp_path: Path) -> None:
    features, _ = clustered(300, 5, 8, seed=3)
    np.save(tmp_path / "bank.npy", features.numpy().astype(np.float16))
    mapped = np.load(tmp_path / "bank.npy", mmap_mode="r")
    expected = nearest.nearest(features[:9].half(), features.half(), 10)
    found = nearest.nearest(features[:9].half().numpy(), mapped, 10)
    torch.testing.assert_close(found, expected)


def test_predictions_for_every_k_and_layer() -> None:
    train = [clustered(600, 7, 12, seed=s) for s in (1, 1)]
    labels = train[0][1]
    layers = [train[0][0], train[0][0] + torch.randn(600, 12, generator=torch.Generator().manual_seed(9))]
    asked, truth = clustered(80, 7, 12, seed=5)
    scores = knn.evaluate(layers, labels, [asked, asked], truth)
    for layer, features in enumerate(layers):
        for i, k in enumerate(scores.ks):
            oracle = KNeighborsClassifier(
                k, algorithm="brute", metric="cosine", weights=lambda distance: np.exp((1 - distance) / 0.07)
            ).fit(features.double().numpy(), labels.numpy())
            chances = oracle.predict_proba(asked.double().numpy())
            right = chances.argmax(1) == truth.numpy()
            five = (chances > chances[np.arange(80), truth.numpy()][:, None]).sum(1) < 5
            five &= chances[np.arange(80), truth.numpy()] > 0
            np.testing.assert_array_equal(scores.top1[:, layer, i].numpy(), right)
            np.testing.assert_array_equal(scores.top5[:, layer, i].numpy(), five)
    assert scores.ks == (10, 20, 100, 200)
    assert 0.3 < scores.top1[:, 0, 1].float().mean() < 1
