"""The residual stream: ratios of norms and CKA of skip with branch, against plain computations."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.conftest import make_batch
from tests.features.made import check_order_free, inside, tiny
from tests.features.test_cka import plain_cka
from vitscope.core.statistic import Statistic
from vitscope.features.residual import ResidualStatistic
from vitscope.models.layout import TokenLayout

LAYOUT = TokenLayout(grid=(2, 2), prefix=2)


def stream(n: int, seed: int = 0) -> dict[tuple[int, str], tuple[Tensor, Tensor]]:
    """(layer, part) -> skip and branch, (n, T, D) each, of two layers."""
    generator = torch.Generator().manual_seed(seed)
    made = {}
    for layer in range(2):
        for part in ("attention", "mlp"):
            skip = torch.randn(n, LAYOUT.tokens, 3, generator=generator) + 1
            made[layer, part] = (skip, 0.5 * skip + torch.randn(n, LAYOUT.tokens, 3, generator=generator))
    return made


def show(statistic: Statistic, data: dict[tuple[int, str], tuple[Tensor, Tensor]], indices: range) -> None:
    statistic.begin(make_batch(indices))
    for (layer, part), (skip, branch) in data.items():
        statistic.branches(layer, part, skip[list(indices)], branch[list(indices)])
    statistic.end()


def test_norm_ratios_by_hand() -> None:
    skip = torch.tensor([6.0, 9.0, 1.0, 1.0, 1.0, 1.0]).reshape(1, 6, 1)  # CLS, a register, four spatial tokens
    statistic = ResidualStatistic(LAYOUT, 1, block=8)
    for index, branch in enumerate((torch.ones(1, 6, 1), torch.zeros(1, 6, 1))):  # the second adds nothing
        statistic.begin(make_batch(range(8 * index, 8 * index + 1)))
        for part in ("attention", "mlp"):
            statistic.branches(0, part, skip, branch)
        statistic.end()
    ratios = statistic.result().ratios["mlp"][:, 0]
    assert ratios[0].tolist() == pytest.approx([6, 1, ((36 + 81 + 4) / 6) ** 0.5])
    assert ratios[1].isnan().all()


def test_ratios_and_cka_of_every_pair_of_layers() -> None:
    data = stream(24)
    statistic = ResidualStatistic(LAYOUT, 2, block=12)
    show(statistic, data, range(12))
    show(statistic, data, range(12, 24))
    found = statistic.result()
    assert found.kinds == ("cls", "spatial", "all")
    parts = {"cls": slice(0, 1), "spatial": slice(2, None), "all": slice(None)}
    blocks = [slice(0, 12), slice(12, 24)]
    for part in ("attention", "mlp"):
        for number, kind in enumerate(found.kinds):
            tokens = parts[kind]
            for layer in range(2):
                skip, branch = (x[:, tokens].flatten(1) for x in data[layer, part])
                torch.testing.assert_close(
                    found.ratios[part][:, layer, number].float(), skip.norm(dim=1) / branch.norm(dim=1)
                )
                for other in range(2):
                    expected = plain_cka(data[layer, part][0][:, tokens], data[other, part][1][:, tokens], blocks)
                    assert found.cka[part][number, layer, other].item() == pytest.approx(expected, abs=1e-5)


def test_few_blocks_have_no_interval_and_many_do() -> None:
    few, many = ResidualStatistic(LAYOUT, 2, block=8), ResidualStatistic(LAYOUT, 2, block=8)
    data = stream(128)
    show(few, data, range(16))
    show(many, data, range(128))
    assert few.result().low["mlp"].isnan().all()
    found = many.result()
    assert found.blocks == 16
    for part in ("attention", "mlp"):
        assert (found.low[part] <= found.cka[part] + 1e-9).all()
        assert (found.high[part] >= found.cka[part] - 1e-9).all()
        assert (found.null[part] > 0).all()


def test_merging_is_order_free() -> None:
    data = stream(80)
    check_order_free(
        lambda: ResidualStatistic(LAYOUT, 2, block=8),
        lambda statistic, indices: show(statistic, data, indices),
        lambda found: {f"{side} {part}": value for side in ("ratios", "cka", "null", "low", "high")
                       for part, value in getattr(found, side).items()},
        cuts=[0, 8, 24, 80],
    )  # fmt: skip


def test_a_constant_stream_has_ratios_but_no_similarity() -> None:
    data = {(0, part): (torch.ones(8, 6, 3), torch.randn(8, 6, 3)) for part in ("attention", "mlp")}
    statistic = ResidualStatistic(LAYOUT, 1, block=8)
    show(statistic, data, range(8))
    found = statistic.result()
    assert found.cka["attention"].isnan().all()
    assert found.ratios["attention"].isfinite().all()


def test_in_a_network_skip_plus_branch_is_what_comes_next() -> None:
    """Of one block: the MLP's skip is the attention's skip plus its branch; ratios see the same tensors."""
    backbone = tiny(depth=1)
    images = torch.randint(0, 256, (6, 3, 32, 32), dtype=torch.uint8)
    statistic = ResidualStatistic(backbone.layout, 1, block=6)
    statistic.begin(make_batch(range(6)))
    backbone.trace(images, [statistic])
    statistic.end()
    module = inside(backbone)
    x = module._pos_embed(module.patch_embed(backbone.preprocessing.normalise(images)))
    block = module.blocks[0]
    attention = block.attn(block.norm1(x))
    mlp = block.mlp(block.norm2(x + attention))
    ratios = statistic.result().ratios
    expected = x[:, 1:].flatten(1).norm(dim=1) / attention[:, 1:].flatten(1).norm(dim=1)
    torch.testing.assert_close(ratios["attention"][:, 0, 1], expected.double(), rtol=1e-5, atol=0)
    expected = (x + attention)[:, 0].norm(dim=1) / mlp[:, 0].norm(dim=1)
    torch.testing.assert_close(ratios["mlp"][:, 0, 0], expected.double(), rtol=1e-5, atol=0)
