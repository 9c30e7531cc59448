"""Other input sizes: what resampled positions must be, from closed forms and an independent bicubic."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.interpolate import RegularGridInterpolator
from scipy.optimize import brentq
from torch.nn.functional import interpolate

from vitscope.core.errors import BadCheckpoint
from vitscope.models.checkpoints import load_checkpoint
from vitscope.models.checkpoints.resample import resample_positions, resample_relative

VIT, BEIT = "vit_base_patch16_224", "beit_base_patch16_224"


def bicubic(positions: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    """(16, D) on a 4 x 4 grid -> (h * w, D), channel by channel."""
    side = int(positions.shape[0] ** 0.5)
    maps = [interpolate(c.reshape(1, 1, side, side), size=size, mode="bicubic", antialias=True) for c in positions.T]
    return torch.stack([m.flatten() for m in maps], dim=1)


@pytest.mark.parametrize("pixels", [(64, 64), (32, 96), (48, 32), (16, 16)])
@pytest.mark.parametrize(
    ("architecture", "prefix"),
    [
        (VIT, 1),
        ("deit_base_distilled_patch16_224", 2),
        ("vit_base_patch14_reg4_dinov2", 0),
        ("vit_base_patch16_siglip_224", 0),
    ],
)
def test_absolute_positions(
    official: SimpleNamespace, tmp_path: Path, architecture: str, prefix: int, pixels: tuple[int, int]
) -> None:
    source = official.randomised(official.tiny(architecture)).state_dict()
    path = tmp_path / "weights"
    torch.save(source, path)
    module = official.tiny(architecture, img_size=pixels)
    report = load_checkpoint(module, path)
    grid = (pixels[0] // 8, pixels[1] // 8)
    assert report.resampled == {"pos_embed": f"4 x 4 -> {grid[0]} x {grid[1]}"}
    found, before = module.state_dict()["pos_embed"][0], source["pos_embed"][0]
    torch.testing.assert_close(found[:prefix], before[:prefix], rtol=0, atol=0)
    torch.testing.assert_close(found[prefix:], bicubic(before[prefix:], grid))
    with torch.no_grad():
        assert module(torch.randn(1, 3, *pixels)).isfinite().all()


def test_constant_positions_stay_constant_and_a_ramp_stays_a_ramp() -> None:
    constant = torch.full((1, 1 + 196, 2), 3.0)
    resampled, source = resample_positions(constant, (28, 42), prefix=1)
    assert source == (14, 14)
    assert resampled.shape == (1, 1 + 28 * 42, 2)
    torch.testing.assert_close(resampled, torch.full_like(resampled, 3.0))
    ramp = torch.arange(14.0).repeat(14, 1).reshape(1, 196, 1)  # the column's number
    doubled, _ = resample_positions(ramp, (28, 28), prefix=0)
    columns = doubled.reshape(28, 28)
    expected = (torch.arange(28.0) + 0.5) / 2 - 0.5  # pixel centres of a grid of twice the resolution
    torch.testing.assert_close(columns[5, 4:-4], expected[4:-4], rtol=0, atol=1e-4)


def test_the_same_size_is_left_alone() -> None:
    positions = torch.randn(1, 17, 5)
    same, source = resample_positions(positions, (4, 4), prefix=1)
    assert same is positions
    assert source == (4, 4)
    oblong = torch.randn(1, 1 + 2 * 4, 5)
    assert resample_positions(oblong, (2, 4), prefix=1)[0] is oblong
    with pytest.raises(BadCheckpoint, match="prefix tokens"):
        resample_positions(oblong, (3, 3), prefix=1)


@pytest.mark.parametrize("pixels", [(64, 64), (32, 64), (48, 40)])
def test_relative_tables_of_every_block(official: SimpleNamespace, tmp_path: Path, pixels: tuple[int, int]) -> None:
    source = official.randomised(official.tiny(BEIT)).state_dict()
    path = tmp_path / "weights"
    torch.save(official.beit_pretraining_file(source), path)
    module = official.tiny(BEIT, img_size=pixels)
    report = load_checkpoint(module, path)
    h, w = pixels[0] // 8, pixels[1] // 8
    tables = [f"blocks.{i}.attn.relative_position_bias_table" for i in range(3)]
    assert report.resampled == dict.fromkeys(tables, f"4 x 4 -> {h} x {w}")
    before = source[tables[0]]
    for key in tables:
        after = module.state_dict()[key]
        assert after.shape == ((2 * h - 1) * (2 * w - 1) + 3, 3)
        torch.testing.assert_close(after[-3:], before[-3:], rtol=0, atol=0)  # class token's three entries
        centre = after[:-3].reshape(2 * h - 1, 2 * w - 1, 3)[h - 1, w - 1]
        torch.testing.assert_close(centre, before[:-3].reshape(7, 7, 3)[3, 3])  # offset zero is a node of both grids


def test_relative_offsets_keep_their_sign_and_order() -> None:
    """A bias that grows with the horizontal offset still does, and does not depend on the vertical one."""
    offsets = torch.arange(-13.0, 14.0).repeat(27, 1).reshape(-1, 1)
    table = torch.cat([offsets, torch.zeros(3, 1)])
    resampled, source = resample_relative(table, (28, 14))
    assert source == (14, 14)
    grid = resampled[:-3].reshape(55, 27)
    torch.testing.assert_close(grid, grid[:1].expand_as(grid))
    torch.testing.assert_close(grid, -grid.flip(1), rtol=0, atol=1e-4)
    assert (grid[0].diff() > 0).all()


def test_relative_tables_agree_with_scipy_on_the_published_nodes() -> None:
    """BEiT's authors place the old offsets at 0, ±1, ±(1 + q), ±(1 + q + q²), ... with q such that both windows end
    together, and interpolate between them: 14 x 14 -> 28 x 28."""
    q = brentq(lambda q: sum(q**i for i in range(13)) - 27, 1.01, 1.5)
    positive = np.cumsum([q**i for i in range(13)])
    nodes = np.concatenate([-positive[::-1], [0.0], positive])
    table = torch.randn(27 * 27 + 3, 2)
    rows, columns = np.meshgrid(np.arange(-27, 28), np.arange(-27, 28), indexing="ij")
    points = np.stack([rows, columns], axis=-1).clip(-nodes[-1], nodes[-1])
    found = resample_relative(table, (28, 28))[0][:-3].reshape(55, 55, 2)
    for head in range(2):
        expected = RegularGridInterpolator((nodes, nodes), table[:-3, head].reshape(27, 27).numpy())(points)
        np.testing.assert_allclose(found[..., head].numpy(), expected, atol=1e-3)


def test_relative_table_of_no_window() -> None:
    table = torch.randn(7 * 7 + 3, 2)
    assert resample_relative(table, (4, 4))[0] is table
    oblong = torch.randn(3 * 7 + 3, 2)
    assert resample_relative(oblong, (2, 4))[0] is oblong
    with pytest.raises(BadCheckpoint, match="no square window"):
        resample_relative(torch.randn(40, 2), (4, 4))


def test_another_number_of_prefix_tokens(official: SimpleNamespace, tmp_path: Path) -> None:
    state = official.tiny(VIT).state_dict()
    state["pos_embed"] = torch.randn(1, 18, 48)
    torch.save(state, tmp_path / "weights")
    with pytest.raises(BadCheckpoint, match="18 position embeddings are not 1 for prefix tokens"):
        load_checkpoint(official.tiny(VIT), tmp_path / "weights")
