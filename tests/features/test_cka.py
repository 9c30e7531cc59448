"""CKA: values against a slow float64 version, the declared behaviour of blocks, nulls and intervals."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from vitscope.features.cka import cka, exact_cka
from vitscope.features.hsic import hsic, pack, u_centre, unpack


def plain_hsic(k: Tensor, m: Tensor) -> float:
    """The unbiased HSIC as first written (Song et al., 2012), entry by entry in float64."""
    n = len(k)
    k, m = k.double().clone(), m.double().clone()
    k.fill_diagonal_(0)
    m.fill_diagonal_(0)
    ones = torch.ones(n, dtype=torch.float64)
    value = torch.trace(k @ m) + (ones @ k @ ones) * (ones @ m @ ones) / ((n - 1) * (n - 2))
    return ((value - 2 / (n - 2) * (ones @ k @ m @ ones)) / (n * (n - 3))).item()


def plain_cka(x: Tensor, y: Tensor, blocks: list[slice] | None = None) -> float:
    """Mean HSIC over blocks of equal size, normalised."""
    sums = torch.zeros(3, dtype=torch.float64)
    for block in blocks or [slice(None)]:
        k, m = (z[block].flatten(1).double() @ z[block].flatten(1).double().T for z in (x, y))
        sums += torch.tensor([plain_hsic(k, m), plain_hsic(k, k), plain_hsic(m, m)])
    return (sums[0] / (sums[1] * sums[2]).sqrt()).item()


def packed_grams(sites: list[Tensor], size: int) -> tuple[Tensor, Tensor]:
    """(blocks, sites, pairs) and members of features (n, D), n a multiple of size."""
    blocks = len(sites[0]) // size
    rows = [[pack(u_centre(g @ g.T)) for x in sites if (g := x[b * size : (b + 1) * size].double()) is not None]
            for b in range(blocks)]  # fmt: skip
    return torch.stack([torch.stack(row) for row in rows]), torch.ones(blocks, size, dtype=torch.bool)


def related(n: int = 48, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 7, generator=generator) + 3
    y = x[:, :5] ** 2 + torch.randn(n, 5, generator=generator)
    z = torch.randn(n, 9, generator=generator)
    return [x, y, z]


def test_u_centring_by_hand() -> None:
    # four points on a line at 0, 1, 2, 4: products off the diagonal (1*2, 1*4, 2*4), all with the first are 0
    points = torch.tensor([0.0, 1.0, 2.0, 4.0], dtype=torch.float64)
    centred = u_centre(points[:, None] * points[None, :])
    # row sums 0, 6, 10, 12 over n - 2 = 2 are 0, 3, 5, 6; total 28 over (n-1)(n-2) = 6 is 14/3
    expected = torch.tensor([[0, 0 - 0 - 3, 0 - 0 - 5, 0 - 0 - 6],
                             [0 - 3 - 0, 0, 2 - 3 - 5, 4 - 3 - 6],
                             [0 - 5 - 0, 2 - 3 - 5, 0, 8 - 5 - 6],
                             [0 - 6 - 0, 4 - 3 - 6, 8 - 5 - 6, 0]]).double() + 14 / 3  # fmt: skip
    torch.testing.assert_close(centred, expected.fill_diagonal_(0))
    torch.testing.assert_close(centred.sum(1), torch.zeros(4, dtype=torch.float64))


def test_hsic_equals_the_trace_form() -> None:
    x, y, _ = related(20)
    k, m = x.double() @ x.double().T, y.double() @ y.double().T
    assert hsic(k, m).item() == pytest.approx(plain_hsic(k, m), rel=1e-9)


def test_a_large_offset_does_not_matter() -> None:
    x, y, _ = related(20)
    assert hsic((x + 1e4).double() @ (x + 1e4).double().T, y.double() @ y.double().T).item() == pytest.approx(
        plain_hsic(x.double() @ x.double().T, y.double() @ y.double().T), rel=1e-4
    )


def test_packing_is_undone_by_unpacking() -> None:
    centred = u_centre(torch.randn(3, 6, 6).double())
    centred = (centred + centred.mT) / 2
    torch.testing.assert_close(unpack(pack(centred), 6), centred)


@pytest.mark.parametrize("size", [8, 16, 48])
def test_minibatch_cka_of_all_pairs(size: int) -> None:
    sites = related()
    result = cka(*packed_grams(sites, size))
    blocks = [slice(i, i + size) for i in range(0, 48, size)]
    expected = [[plain_cka(a, b, blocks) for b in sites] for a in sites]
    torch.testing.assert_close(result.value, torch.tensor(expected).double(), rtol=1e-6, atol=1e-8)
    assert result.value.diagonal().tolist() == pytest.approx([1, 1, 1], abs=1e-12)
    assert (result.images, result.blocks) == (48, 48 // size)


def test_exact_cka_of_features_that_are_never_held_as_a_gram() -> None:
    sites = related(50)
    expected = [[plain_cka(a, b) for b in sites] for a in sites]
    for tile in (7, 50, 256):
        torch.testing.assert_close(exact_cka(sites, tile=tile), torch.tensor(expected).double(), rtol=1e-5, atol=1e-6)


def test_blocks_of_different_size_count_by_their_terms() -> None:
    x, y, _ = related(20)
    big, small = packed_grams([x[:12], y[:12]], 12), packed_grams([x[12:], y[12:]], 8)
    wide = torch.zeros(1, 2, 12, 12, dtype=torch.float64)  # the block of 8 as a block of 12 with 4 absent
    wide[..., :8, :8] = unpack(small[0], 8)
    members = torch.ones(2, 12, dtype=torch.bool)
    members[1, 8:] = False
    rows = torch.cat([big[0], pack(wide)])
    k = [x[:12].double() @ x[:12].double().T, x[12:].double() @ x[12:].double().T]
    m = [y[:12].double() @ y[:12].double().T, y[12:].double() @ y[12:].double().T]
    terms = [12 * 9, 8 * 5]

    def total(a: list[Tensor], b: list[Tensor], weights: Sequence[float]) -> float:
        return sum(w * plain_hsic(i, j) for w, i, j in zip(weights, a, b, strict=True))

    for equal, weights in ((False, terms), (True, [1, 1])):
        expected = total(k, m, weights) / (total(k, k, weights) * total(m, m, weights)) ** 0.5
        assert cka(rows, members, equal_weights=equal).value[0, 1].item() == pytest.approx(expected, rel=1e-9)


def test_constant_features_have_no_similarity() -> None:
    x, y, _ = related(16)
    rows, members = packed_grams([x, torch.ones(16, 3), y], 8)
    value = cka(rows, members).value
    assert value[1].isnan().all()
    assert value[:, 1].isnan().all()
    assert value[0, 2].isfinite()
    assert exact_cka([x, torch.full((16, 3), 0.1)])[0, 1].isnan()


def test_too_few_pictures_are_refused() -> None:
    with pytest.raises(ValueError, match="too few"):
        u_centre(torch.eye(3))
    with pytest.raises(ValueError, match="4 or more"):
        exact_cka([torch.randn(3, 2), torch.randn(3, 2)])
    with pytest.raises(ValueError, match="4 images"):
        cka(torch.zeros(1, 2, 3), torch.ones(1, 3, dtype=torch.bool))


@pytest.mark.parametrize(("n", "size"), [(12, 12), (24, 8)])
def test_the_null_is_the_deviation_over_permutations(n: int, size: int) -> None:
    x, y, _ = related(n)
    result = cka(*packed_grams([x, y], size))
    generator = torch.Generator().manual_seed(1)
    samples = []
    for _ in range(1500):
        order = torch.cat([torch.randperm(size, generator=generator) + s for s in range(0, n, size)])
        rows, _ = packed_grams([x, y[order]], size)
        products = torch.einsum("bsp,btp->st", rows, rows)
        samples.append(products[0, 1] / (products[0, 0] * products[1, 1]).sqrt())
    drawn = torch.stack(samples)
    assert drawn.mean().item() == pytest.approx(0, abs=4 * drawn.std().item() / 1500**0.5)
    assert result.null[0, 1].item() == pytest.approx(drawn.std().item(), rel=0.08)


def test_independent_features_agree_with_their_null() -> None:
    generator = torch.Generator().manual_seed(3)
    sites = [torch.randn(96, 6, generator=generator) for _ in range(12)]
    result = cka(*packed_grams(sites, 32))
    row, column = torch.triu_indices(12, 12, offset=1)
    z = (result.value / result.null)[row, column]
    assert z.square().mean().sqrt().item() == pytest.approx(1, abs=0.25)
    assert z.abs().max() < 4.5


@pytest.mark.parametrize(("n", "size"), [(96, 96), (96, 8)])
def test_intervals_cover_the_value_and_shrink_with_pictures(n: int, size: int) -> None:
    few, many = (cka(*packed_grams(related(m)[:2], size if size < n else m)) for m in (n, 4 * n))
    for result in (few, many):
        assert (result.low <= result.value + 1e-9).all()
        assert (result.high >= result.value - 1e-9).all()
    assert (many.high - many.low)[0, 1] < 0.8 * (few.high - few.low)[0, 1]


def test_intervals_contain_what_other_pictures_give() -> None:
    """About 95 % of independent draws of the pictures; few draws, so with slack."""
    truth = exact_cka(related(4000)[:2])[0, 1]
    inside = 0
    for seed in range(20):
        result = cka(*packed_grams(related(96, seed=seed + 1)[:2], 8))
        inside += bool(result.low[0, 1] <= truth <= result.high[0, 1])
    assert inside >= 15
