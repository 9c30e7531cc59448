"""Calibrated similarity: unrelated features get nothing, related ones keep what they have; p values that mean it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from vitscope.features.calibration import calibrated, distant, gram_matrices, jackknife_reach, neighbour_matrices
from vitscope.features.cka import exact_cka
from vitscope.features.neighbours import mutual_neighbours

N = 96


def noise(seed: int, width: int = 24, n: int = N) -> Tensor:
    return torch.randn(n, width, generator=torch.Generator().manual_seed(seed))


def test_inner_products_are_the_similarities() -> None:
    x, y = noise(0), noise(0) @ noise(5, 24, 24) + noise(1)
    grams = gram_matrices([x, y]).flatten(1)
    assert (grams[0] @ grams[1]).item() == pytest.approx(exact_cka([x, y])[0, 1].item(), abs=1e-5)
    near = neighbour_matrices([x, y]).flatten(1)
    assert (near[0] @ near[1]).item() == pytest.approx(mutual_neighbours(x, y), abs=1e-5)
    assert (near[0] @ near[0]).item() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("matrices", [gram_matrices, neighbour_matrices])
def test_a_layer_with_itself_is_one_and_a_stranger_is_nothing(matrices) -> None:  # type: ignore[no-untyped-def]
    x = noise(0)
    found = calibrated(matrices([x]), matrices([x, noise(1)]), permutations=99)
    assert found.value[0, 0].item() == pytest.approx(1, abs=1e-4)
    assert found.p[0, 0].item() == pytest.approx(1 / 100)
    assert found.value[0, 1] < 0.05
    assert found.p[0, 1] > 0.05


def test_mutual_neighbours_by_chance_are_k_of_n() -> None:
    found = calibrated(neighbour_matrices([noise(0)]), neighbour_matrices([noise(1)]), permutations=99)
    assert 10 / (N - 1) < found.tau.item() < 0.15  # the null's mean, and a little above
    assert found.raw.item() == pytest.approx(10 / (N - 1), abs=0.03)


def test_under_the_null_few_families_of_pairs_reach_five_percent() -> None:
    """Of 25 unrelated pairs of layers, the smallest corrected p is below .05 in about one family of twenty."""
    smallest = []
    for seed in range(40):
        sides = [gram_matrices([noise(1000 * seed + 10 * side + i, 8, 24) for i in range(5)]) for side in (0, 1)]
        smallest.append(calibrated(*sides, permutations=79, seed=seed).p.min().item())
    assert sum(p <= 0.05 for p in smallest) <= 6  # P(more than 6 of 40 at 5 %) is 0.3 %


def test_two_far_images_make_a_cka_and_are_found() -> None:
    x, y = noise(0, n=200), noise(1, n=200)
    x[[7, 90]], y[[7, 90]] = 60, 60  # at the same place: what is debiased hears no single image
    assert exact_cka([x, y])[0, 1] > 0.9
    far = distant([x, y])
    assert far.nonzero().flatten().tolist() == [7, 90]
    assert abs(exact_cka([x[~far], y[~far]])[0, 1].item()) < 0.1


def test_the_interval_covers_what_other_images_give() -> None:
    mix = noise(5, 24, 24)

    def draw(seed: int) -> tuple[Tensor, Tensor]:
        x = noise(seed)
        return x, x @ mix + 3 * noise(seed + 500)

    values = torch.tensor([exact_cka(list(draw(seed)))[0, 1].item() for seed in range(40)])
    reaches = torch.stack([jackknife_reach("cka", *draw(seed)) for seed in range(40)])
    assert ((values - values.mean()).abs() < reaches).double().mean() > 0.8
