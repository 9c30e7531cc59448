"""Grams that stream: the same numbers as from the features at once, whatever the batches, absent pictures, prefixes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from tests.conftest import make_batch
from tests.features.made import check_order_free, show_tokens
from tests.features.test_cka import plain_cka, plain_hsic
from vitscope.core.errors import BadData
from vitscope.core.statistic import Statistic
from vitscope.features.cka import cka
from vitscope.features.gram import centre, gram, offset_gram, part_grams, token_grams
from vitscope.features.gram_statistic import GramStatistic, NormGramStatistic
from vitscope.features.hsic import u_centre
from vitscope.models.layout import TokenLayout

LAYOUT = TokenLayout(grid=(2, 3))


def grams_of(x: Tensor, layout: TokenLayout = LAYOUT) -> Tensor:
    """(kinds, m, m) of one layer."""
    return token_grams([part_grams(x, layout)], layout)[:, 0]


def layers(n: int, count: int = 3, tokens: int = LAYOUT.tokens, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    first = torch.randn(n, tokens, 5, generator=generator) + 2
    return [first + 0.7 * i * torch.randn(n, tokens, 5, generator=generator) for i in range(count)]


@pytest.mark.parametrize("kind", ["cls", "spatial", "all"])
def test_streamed_grams_give_the_cka_of_the_features(kind: str) -> None:
    sites = layers(24)
    statistic = GramStatistic(LAYOUT, 3, block=8)
    for start in (0, 16):  # batches of two blocks and of one
        show_tokens(statistic, sites, range(start, min(start + 16, 24)))
    grams = statistic.result()
    part = {"cls": slice(0, 1), "spatial": slice(1, None), "all": slice(None)}[kind]
    blocks = [slice(0, 8), slice(8, 16), slice(16, 24)]
    expected = [[plain_cka(a[:, part], b[:, part], blocks) for b in sites] for a in sites]
    torch.testing.assert_close(
        cka(grams.packed[kind], grams.members).value, torch.tensor(expected).double(), rtol=1e-5, atol=1e-6
    )
    assert grams.sites == ("block 1", "block 2", "block 3")


def test_merging_is_order_free() -> None:
    sites = layers(24)
    check_order_free(
        lambda: GramStatistic(LAYOUT, 3, block=8),
        lambda statistic, indices: show_tokens(statistic, sites, indices),
        lambda grams: {**grams.packed, "numbers": grams.numbers, "members": grams.members},
        cuts=[0, 8, 24],
    )


def show_norms(statistic: Statistic, sites: list[Tensor], indices: Sequence[int]) -> None:
    """Two sites per block of the network, norm1 and norm2."""
    statistic.begin(make_batch(indices))
    for site, x in enumerate(sites):
        statistic.norms(site // 2, ("attention", "mlp")[site % 2], x[list(indices)])
    statistic.end()


def test_merging_norms_is_order_free() -> None:
    sites = layers(24, 4)
    check_order_free(
        lambda: NormGramStatistic(LAYOUT, 2, block=8, scaled=True),
        lambda statistic, indices: show_norms(statistic, sites, indices),
        lambda grams: {**grams.packed, "numbers": grams.numbers, "members": grams.members},
        cuts=[0, 8, 16, 24],
    )


def test_a_block_in_pieces_is_an_error_not_two_blocks() -> None:
    sites = layers(16)
    statistic, other = GramStatistic(LAYOUT, 3, block=8), GramStatistic(LAYOUT, 3, block=8)
    show_tokens(statistic, sites, range(6))
    with pytest.raises(ValueError, match="multiple of 8"):
        show_tokens(statistic, sites, range(6, 12))
    show_tokens(other, sites, range(6, 8))
    with pytest.raises(ValueError, match="in pieces"):
        statistic.merge(other)
    with pytest.raises(ValueError, match="do not merge"):
        statistic.merge(GramStatistic(LAYOUT, 3, block=4))


def test_absent_pictures_leave_their_place_empty() -> None:
    sites = layers(16)
    statistic = GramStatistic(LAYOUT, 3, block=8)
    present = [0, 1, 3, 4, 6, 7]
    show_tokens(statistic, sites, present)
    show_tokens(statistic, sites, range(8, 11))  # three pictures of a block: too few
    grams = statistic.result()
    assert grams.members.tolist() == [[i in present for i in range(8)]]
    assert grams.unused == 3
    expected = plain_cka(sites[0][present], sites[2][present])
    assert cka(grams.packed["all"], grams.members).value[0, 2].item() == pytest.approx(expected, rel=1e-5)


def test_of_a_long_list_the_first_pictures_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vitscope.features.gram_statistic.MOST_IMAGES", 16)
    sites = layers(32)
    long, paper = GramStatistic(LAYOUT, 3, block=8), GramStatistic(LAYOUT, 3, block=8, scaled=True)
    for statistic in (long, paper):
        show_tokens(statistic, sites, range(32))
    assert long.result().numbers.tolist() == [0, 1]
    assert long.result().unused == 16
    assert paper.result().numbers.tolist() == [0, 1, 2, 3]  # in class order the first pictures are not a sample


def test_fewer_than_four_pictures_is_told() -> None:
    statistic = GramStatistic(LAYOUT, 3, block=8)
    show_tokens(statistic, layers(3), range(3))
    with pytest.raises(BadData, match="at least 4"):
        statistic.result()


def test_registers_belong_to_all_and_to_nothing_else() -> None:
    layout = TokenLayout(grid=(1, 2), prefix=3)
    x = layers(6, 1, layout.tokens)[0].double()
    cls, spatial, everything = centre(grams_of(x, layout))
    for found, part in ((cls, x[:, :1]), (spatial, x[:, 3:]), (everything, x)):
        torch.testing.assert_close(found, u_centre(part.flatten(1) @ part.flatten(1).T), rtol=1e-5, atol=1e-5)


def test_a_model_without_cls_has_no_cls_grams() -> None:
    layout = TokenLayout(grid=(2, 3), prefix=0, has_cls=False)
    statistic = GramStatistic(layout, 3, block=8)
    show_tokens(statistic, layers(8, tokens=6), range(8))
    assert statistic.result().packed.keys() == {"spatial", "all"}


def test_features_that_do_not_vary_give_exact_zeros() -> None:
    x = torch.full((8, 7, 5), 0.1) * torch.arange(1, 6)
    assert centre(grams_of(x)).abs().max() == 0
    jitter = x * (1 + 1e-7 * torch.randn(8, 7, 5))  # what a kernel that rounds differently by row would give
    assert centre(grams_of(jitter)).abs().max() == 0


@pytest.mark.parametrize("offset", [0.0, 2.0, 2.0**10, 2.0**16])
def test_an_offset_leaves_the_digits(offset: float) -> None:
    """Also where the plain product would have lost them all: 2^16 squared is 2^32, and float32 has 24 bits."""
    x = (torch.randn(8, 40, 5) * 64).round() / 64  # exact in float32 with any of these offsets
    exact = x.flatten(1).double()
    for made in (gram, offset_gram):  # the second alone is what a GPU falls back on
        found = u_centre(made(x + offset).double())
        torch.testing.assert_close(found, u_centre(exact @ exact.T), rtol=1e-5, atol=1e-3)


def test_the_published_scaling_divides_by_the_range_of_the_plain_gram() -> None:
    x = layers(8, 1)[0]
    grams = grams_of(x)
    scaled, plain = centre(grams, scaled=True), centre(grams)
    for kind, part in enumerate((x[:, :1], x[:, 1:], x)):
        product = part.flatten(1).double() @ part.flatten(1).double().T
        published = (product - product.min()) / (product - product.min()).max()
        published.fill_diagonal_(0)
        torch.testing.assert_close(scaled[kind] * (product.max() - product.min()), plain[kind], rtol=1e-5, atol=1e-5)
        hsic = (scaled[kind] ** 2).sum().item() / (8 * 5)
        assert hsic == pytest.approx(plain_hsic(published, published), rel=1e-5)


def test_nan_and_infinity_are_refused_by_site() -> None:
    for bad in (torch.nan, torch.inf):
        sites = layers(8)
        sites[1][3, 2, 1] = bad
        with pytest.raises(BadData, match="block 2 has NaN or infinite"):
            show_tokens(GramStatistic(LAYOUT, 3, block=8), sites, range(8))


def test_norms_are_two_sites_per_block() -> None:
    sites = layers(8, 4)
    statistic = NormGramStatistic(LAYOUT, 2, block=8)
    show_norms(statistic, sites, range(8))
    grams = statistic.result()
    assert grams.sites == ("norm1 1", "norm2 1", "norm1 2", "norm2 2")
    value = cka(grams.packed["all"], grams.members).value
    assert value[1, 2].item() == pytest.approx(plain_cka(sites[1], sites[2]), rel=1e-5)
