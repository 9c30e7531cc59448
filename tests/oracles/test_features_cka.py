"""CKA against the published torch_cka package, on networks of two kinds."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from benchmarks.published_cka import published
from tests.features.made import show_tokens
from vitscope.features.cka import cka
from vitscope.features.gram_statistic import GramStatistic
from vitscope.models.layout import TokenLayout

LAYOUT = TokenLayout(grid=(2, 2))


def features(n: int, depth: int, width: int, seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    common = torch.randn(n, LAYOUT.tokens, 4, generator=torch.Generator().manual_seed(99))
    mixes = torch.randn(depth, 4, width, generator=generator)
    return [common @ mix + torch.randn(n, LAYOUT.tokens, width, generator=generator) for mix in mixes]


def ours(layers: list[Tensor], block: int) -> GramStatistic:
    statistic = GramStatistic(LAYOUT, len(layers), block=block)
    for start in range(0, len(layers[0]), 2 * block):  # two blocks per batch
        show_tokens(statistic, layers, range(start, min(start + 2 * block, len(layers[0]))))
    return statistic


@pytest.mark.parametrize("block", [8, 16])
def test_all_layers_of_two_models_at_once(block: int) -> None:
    first, second = features(48, 4, 6, seed=0), features(48, 3, 10, seed=1)
    grams = [ours(side, block).result() for side in (first, second)]
    found = cka([g.packed["all"] for g in grams], grams[0].members)
    expected = published(first, second, block)
    torch.testing.assert_close(found.value[:4, 4:].float(), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.value[:4, :4].float(), published(first, first, block), rtol=1e-4, atol=1e-5)


def test_with_a_last_smaller_batch_it_weights_all_batches_alike() -> None:
    """torch_cka takes the mean over batches whatever their size; so does the published protocol here."""
    first, second = features(20, 2, 6, seed=2), features(20, 2, 6, seed=3)
    grams = [ours(side, 8).result() for side in (first, second)]
    found = cka([g.packed["all"] for g in grams], grams[0].members, equal_weights=True)
    torch.testing.assert_close(found.value[:2, 2:].float(), published(first, second, 8), rtol=1e-4, atol=1e-5)


def test_where_torch_cka_is_wrong_a_large_offset() -> None:
    """Its trace form subtracts large numbers in float32; the same features without the offset show what is right."""
    first, second = features(16, 1, 6, seed=4), features(16, 1, 6, seed=5)
    shifted = [x + 1024 for x in first]
    grams = [ours(side, 8).result() for side in (shifted, second)]
    found = cka([g.packed["all"] for g in grams], grams[0].members).value[0, 1]
    right = published(first, second, 8)[0, 0]
    assert found.item() == pytest.approx(right.item(), abs=1e-3)
    try:
        wrong = published(shifted, second, 8)[0, 0].item()
    except AssertionError:  # "HSIC computation resulted in NANs"
        return
    assert wrong != pytest.approx(right.item(), abs=0.01)
