"""Every similarity is held to the invariances it declares, and to hand-made cases."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from vitscope.features.neighbours import mutual_neighbours, nearest
from vitscope.features.procrustes import procrustes
from vitscope.features.rsa import distances, rsa, spearman
from vitscope.features.similarity import SIMILARITIES, Similarity, null_mean

every = pytest.mark.parametrize("similarity", SIMILARITIES.values(), ids=SIMILARITIES.keys())


def pair(seed: int, n: int = 24, widths: tuple[int, int] = (6, 9)) -> tuple[Tensor, Tensor]:
    """Features that have something in common."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, widths[0], generator=generator, dtype=torch.float64)
    mix = torch.randn(widths, generator=generator, dtype=torch.float64)
    return x, x @ mix + torch.randn(n, widths[1], generator=generator, dtype=torch.float64)


def rotation(width: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.linalg.qr(torch.randn(width, width, generator=generator, dtype=torch.float64)).Q


CHANGES = {
    "orthogonal": lambda x, y, seed: (x @ rotation(x.shape[1], seed), y),
    "scaling": lambda x, y, seed: (x * (0.01 + seed % 97), y),
    "translation": lambda x, y, seed: (x + rotation(x.shape[1], seed)[0] * (seed % 13), y),
    "permutation": lambda x, y, seed: (lambda order: (x[order], y[order]))(
        torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    ),
}


@every
@pytest.mark.parametrize("change", CHANGES)
@given(seed=st.integers(0, 2**31 - 1))
@settings(max_examples=20, deadline=None)
def test_declared_invariances_hold(similarity: Similarity, change: str, seed: int) -> None:
    if change not in similarity.invariances:
        return
    x, y = pair(seed)
    before = similarity.function(x, y)
    for side in ((x, y), (y, x)):  # on either side
        after = similarity.function(*CHANGES[change](*side, seed))
        assert after == pytest.approx(before, abs=2e-5)


@every
@given(seed=st.integers(0, 2**31 - 1))
@settings(max_examples=15, deadline=None)
def test_symmetric_bounded_and_one_for_itself(similarity: Similarity, seed: int) -> None:
    x, y = pair(seed)
    value = similarity.function(x, y)
    assert value <= 1 + 1e-6
    assert similarity.function(y, x) == pytest.approx(value, abs=1e-5)
    assert similarity.function(x, x) == pytest.approx(1, abs=1e-6)


def test_what_is_not_declared_does_not_hold() -> None:
    """Neighbours by cosine do depend on the origin: were it declared, the test above would have to fail."""
    x, y = pair(0)
    assert "translation" not in SIMILARITIES["neighbours"].invariances
    assert mutual_neighbours(x + 5, y) != pytest.approx(mutual_neighbours(x, y), abs=0.02)


@every
def test_constant_features_have_no_similarity(similarity: Similarity) -> None:
    x, _ = pair(0)
    assert math.isnan(similarity.function(x, torch.full((24, 3), 0.3)))


@every
def test_related_features_score_above_their_null(similarity: Similarity) -> None:
    x, y = pair(1, n=60)
    assert similarity.function(x, y) > null_mean(similarity, x, y) + 0.1


def test_the_null_of_procrustes_shows_that_many_dimensions_inflate_it() -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(30, 400, generator=generator) for _ in range(2))
    unrelated = procrustes(x, y)
    assert unrelated > 0.85
    assert null_mean(SIMILARITIES["procrustes"], x, y) == pytest.approx(unrelated, abs=0.02)
    assert abs(SIMILARITIES["cka"].function(x, y)) < 0.2  # debiased: 0 up to its null of 0.05


def test_procrustes_by_hand() -> None:
    square = torch.tensor([[1.0, 0], [0, 1], [-1, 0], [0, -1]])
    assert procrustes(square, square * torch.tensor([1.0, -1.0])) == pytest.approx(1)  # a reflection
    # squeezed to a line: singular values of X^T Y / (|X||Y|) are 2 / (2 sqrt 2) and 0
    assert procrustes(square, square * torch.tensor([1.0, 0.0])) == pytest.approx(1 / math.sqrt(2))


def test_procrustes_is_the_same_with_more_dimensions_than_pictures() -> None:
    x, y = pair(2, n=12, widths=(8, 7))
    wide = torch.zeros(12, 20, dtype=torch.float64)
    wide[:, :8] = x
    assert procrustes(wide @ rotation(20, 1), y) == pytest.approx(procrustes(x, y), abs=1e-7)


def test_distances_and_ranks_by_hand() -> None:
    points = torch.tensor([[0.0], [1.0], [3.0]])
    assert distances(points).tolist() == pytest.approx([1, 9, 4])
    assert spearman(distances(points), distances(torch.tensor([[0.0], [5.0], [1.0]]))) == pytest.approx(-1)
    assert rsa(points, -7 * points) == pytest.approx(1)


def test_neighbours_by_hand() -> None:
    def at(*degrees: float) -> Tensor:
        angle = torch.tensor(degrees).deg2rad()
        return torch.stack([angle.cos(), angle.sin()], dim=1)

    x, y = at(0, 10, 90, 120), at(0, 80, 90, 10)
    assert nearest(x, 1).flatten().tolist() == [1, 0, 3, 2]
    assert nearest(y, 1).flatten().tolist() == [3, 2, 1, 0]
    assert mutual_neighbours(x, y, k=1) == 0
    assert mutual_neighbours(x, y, k=3) == 1
    # two nearest: x {1,2} {0,2} {3,1} {2,1}; y {3,1} {2,3} {1,3} {0,1}
    assert mutual_neighbours(x, y, k=2) == pytest.approx((1 + 1 + 2 + 1) / 8)
    with pytest.raises(ValueError, match="4 neighbours"):
        mutual_neighbours(x, y, k=4)
