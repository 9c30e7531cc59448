"""What must hold for any features: every measure that streams or clusters is held to it on random ones."""

from __future__ import annotations

from math import comb, log
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.features.made import blobs
from tests.features.test_cka import related
from tests.features.test_residual import LAYOUT as RESIDUAL_LAYOUT
from tests.features.test_residual import show, stream
from tests.features.test_similarity import rotation
from vitscope.features.cka import Cka, cka
from vitscope.features.clustering import chance_purity, cluster_layers, contingency, purity
from vitscope.features.gram import centre
from vitscope.features.hsic import hsic, pack
from vitscope.features.pooling import pool
from vitscope.features.projection import pca
from vitscope.features.regions import region_weights
from vitscope.features.residual import Residual, ResidualStatistic
from vitscope.features.spectrum import effective_rank, intrinsic_dimension
from vitscope.models.layout import TokenLayout

seeds = given(seed=st.integers(0, 2**31 - 1))
few = settings(max_examples=15, deadline=None)
SIZE = 8  # pictures of a block


def permutation(n: int, seed: int) -> Tensor:
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed))


def minibatch(sites: list[Tensor], *, scaled: bool = False) -> Cka:
    """CKA in blocks, as models are compared; scaled: as published."""
    blocks = [torch.stack([centre((x := site[i : i + SIZE].double()) @ x.T, scaled=scaled) for site in sites])
              for i in range(0, len(sites[0]), SIZE)]  # fmt: skip
    members = torch.ones(len(blocks), SIZE, dtype=torch.bool)
    return cka(pack(torch.stack(blocks)), members, equal_weights=scaled)


def within_blocks(n: int, seed: int) -> Tensor:
    """Another order of the pictures of each block, and of the blocks."""
    blocks = torch.stack([permutation(SIZE, seed + i) + i * SIZE for i in range(n // SIZE)])
    return blocks[permutation(len(blocks), seed)].flatten()


@pytest.mark.parametrize("scaled", [False, True], ids=["corrected", "paper"])
@seeds
@few
def test_cka_in_blocks_does_not_depend_on_axes_size_or_order(scaled: bool, seed: int) -> None:
    x, y, z = (site.double() for site in related(48, seed % 1000))
    before = minibatch([x, y, z], scaled=scaled)
    order = within_blocks(48, seed)
    changes = {
        "orthogonal": [x @ rotation(7, seed), y, z @ rotation(9, seed)],
        "scaling": [x * (0.01 + seed % 97), y, z],
        "permutation": [site[order] for site in (x, y, z)],
    }
    if not scaled:  # the range of a Gram, by which the published protocol divides, depends on the origin
        changes["translation"] = [x + rotation(7, seed)[0] * (seed % 13), y, z]
    for name, changed in changes.items():
        after = minibatch(changed, scaled=scaled)
        difference = (after.value - before.value).abs().max().item()
        assert difference < 1e-8, name
        torch.testing.assert_close(after.null, before.null, rtol=0, atol=1e-8)
    assert before.value.diagonal().tolist() == pytest.approx([1, 1, 1], abs=1e-9)
    torch.testing.assert_close(before.value, before.value.T)
    assert before.value.abs().max() <= 1 + 1e-9


@seeds
@few
def test_hsic_is_bilinear_symmetric_and_blind_to_offsets(seed: int) -> None:
    x, y, _ = (site.double() for site in related(12, seed % 1000))
    k, m = x @ x.T, y @ y.T
    value = hsic(k, m).item()
    assert hsic(m, k).item() == pytest.approx(value, rel=1e-9)
    assert hsic(3 * k, m).item() == pytest.approx(3 * value, rel=1e-9)
    moved = x + rotation(7, seed)[0] * 5
    assert hsic(moved @ moved.T, m).item() == pytest.approx(value, rel=1e-6, abs=1e-9)
    assert hsic(k, torch.full_like(m, 7)).item() == pytest.approx(0, abs=1e-9)
    assert hsic(k, k).item() >= 0


@seeds
@few
def test_the_residual_stream_does_not_depend_on_axes_and_ratios_scale(seed: int) -> None:
    data = stream(24, seed % 1000)
    turn = rotation(3, seed).float()
    factor = 0.5 + seed % 7

    def found(changed: dict[tuple[int, str], tuple[Tensor, Tensor]]) -> Residual:
        statistic = ResidualStatistic(RESIDUAL_LAYOUT, 2, block=SIZE)
        show(statistic, changed, range(24))
        return statistic.result()

    before = found(data)
    after = found({key: (factor * skip @ turn, branch @ turn) for key, (skip, branch) in data.items()})
    for part in ("attention", "mlp"):
        torch.testing.assert_close(after.ratios[part], factor * before.ratios[part], rtol=1e-4, atol=0)
        torch.testing.assert_close(after.cka[part], before.cka[part], rtol=0, atol=1e-4)
        assert before.cka[part].abs().max() <= 1 + 1e-9


def random_clusters(seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 4, (40,), generator=generator), torch.randint(0, 5, (40,), generator=generator)


@seeds
@few
def test_purity_knows_no_names_and_no_order(seed: int) -> None:
    labels, clusters = random_clusters(seed)
    value = purity(labels, clusters)
    order, names = permutation(40, seed), 10 * permutation(5, seed) + 3
    assert purity(labels[order], clusters[order]) == value
    assert purity(labels, names[clusters]) == value
    assert labels.bincount().max().item() / 40 <= value <= 1  # one cluster of everything gives the lower bound
    assert purity(labels, clusters * 4 + labels) == 1  # clusters cut along classes
    assert purity(labels, clusters * 2 + torch.arange(40) % 2) >= value  # finer clusters are never less pure
    assert value == sum(max((labels[clusters == c] == k).sum().item() for k in range(4)) for c in range(5)) / 40


def plain_scores(labels: Tensor, clusters: Tensor) -> tuple[float, float]:
    """NMI (arithmetic) from entropies, ARI from pairs of points, in plain numbers."""
    n, table = len(labels), contingency(labels, clusters).tolist()
    rows, columns = [sum(row) for row in table], [sum(column) for column in zip(*table, strict=True)]
    entropies = [-sum(c / n * log(c / n) for c in side if c) for side in (rows, columns)]
    mutual = sum(v / n * log(v * n / (rows[i] * columns[j])) for i, r in enumerate(table) for j, v in enumerate(r) if v)
    together = sum(comb(v, 2) for row in table for v in row)
    a, b = (sum(comb(c, 2) for c in side) for side in (rows, columns))
    expected = a * b / comb(n, 2)
    return 2 * mutual / sum(entropies), (together - expected) / ((a + b) / 2 - expected)


@pytest.mark.parametrize("spread", [0.5, 1.5])
def test_scores_of_clusters_by_their_definitions(spread: float) -> None:
    points, labels = blobs(90, 8, 5, spread=spread)
    found = cluster_layers([points, points.flip(1)], labels, seeds=2)
    for layer in range(2):
        nmi, ari = plain_scores(labels, found.assigned[layer])
        assert found.nmi[layer, 0].item() == pytest.approx(nmi, abs=1e-9)
        assert found.ari[layer, 0].item() == pytest.approx(ari, abs=1e-9)
        assert found.purity[layer, 0].item() == purity(labels, found.assigned[layer])
    torch.testing.assert_close(found.purity[0], found.purity[1], rtol=0, atol=0.1)  # the same points, axes reversed


def test_chance_purity_is_the_mean_over_all_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two clusters of two, two classes of two: of the six ways to deal the labels, two are pure and four are half."""
    monkeypatch.setattr("vitscope.features.clustering.PERMUTATIONS", 4000)
    labels = torch.tensor([0, 0, 1, 1])
    assert chance_purity(labels, labels) == pytest.approx((2 * 1 + 4 * 0.5) / 6, abs=0.02)


DIMENSIONS = pytest.mark.parametrize("measure", [effective_rank, intrinsic_dimension])


@DIMENSIONS
@seeds
@few
def test_dimensions_do_not_depend_on_axes_origin_size_or_order(measure: Any, seed: int) -> None:  # type: ignore[no-untyped-def]
    points = related(40, seed % 1000)[0].double()
    value = measure(points)
    assert measure(points @ rotation(7, seed)) == pytest.approx(value, rel=1e-6)
    assert measure(points + 3) == pytest.approx(value, rel=1e-6)
    assert measure(points * (0.01 + seed % 97)) == pytest.approx(value, rel=1e-6)
    assert measure(points[permutation(40, seed)]) == pytest.approx(value, rel=1e-6)
    assert value > 0


@seeds
@few
def test_dimensions_against_plain_versions(seed: int) -> None:
    points = related(30, seed % 1000)[1].double()
    singular = torch.linalg.svdvals(points - points.mean(0))
    share = singular / singular.sum()
    assert effective_rank(points) == pytest.approx((-(share * share.log()).sum()).exp().item(), rel=1e-9)
    assert 1 <= effective_rank(points) <= 5 + 1e-9
    logs = []
    for i in range(30):
        near = sorted((points[i] - points[j]).norm().item() for j in range(30) if j != i)
        logs.append(log(near[1] / near[0]))
    assert intrinsic_dimension(points, rows=7) == pytest.approx(29 / sum(logs), rel=1e-9)


@seeds
@few
def test_principal_components_do_not_depend_on_axes_and_origin(seed: int) -> None:
    points = related(20, seed % 1000)[0].double() * torch.tensor([9.0, 5, 1, 1, 1, 1, 1])
    coordinates, share = pca(points)
    turned, again = pca(points @ rotation(7, seed) - 11)
    torch.testing.assert_close(again, share)
    torch.testing.assert_close(turned, coordinates, rtol=1e-5, atol=1e-6)  # signs are fixed
    assert 0 < share[1] <= share[0] <= 1


@seeds
@few
def test_weights_of_regions_are_shares_whatever_the_scale(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    coverage = torch.randint(0, 256, (3, 6, 8), generator=generator, dtype=torch.uint8)
    weights = region_weights(coverage, (3, 4))
    torch.testing.assert_close(weights.sum(1), torch.ones(3))
    torch.testing.assert_close(region_weights(coverage.double() / 255, (3, 4)), weights)
    cells = [[coverage[a, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2].double().sum() for i in range(3) for j in range(4)]
             for a in range(3)]  # fmt: skip
    expected = torch.tensor(cells) / torch.tensor(cells).sum(1, keepdim=True)
    torch.testing.assert_close(weights, expected.float())


@seeds
@few
def test_pooling_does_not_depend_on_where_tokens_are(seed: int) -> None:
    layout = TokenLayout(grid=(2, 3), prefix=2)
    tokens = torch.randn(4, layout.tokens, 5, generator=torch.Generator().manual_seed(seed))
    moved = torch.cat([tokens[:, :2], tokens[:, 2:][:, permutation(6, seed)]], dim=1)
    for pooling in ("cls", "mean", "max"):
        torch.testing.assert_close(pool(moved, layout, pooling), pool(tokens, layout, pooling))
        torch.testing.assert_close(pool(2 * tokens, layout, pooling), 2 * pool(tokens, layout, pooling))
