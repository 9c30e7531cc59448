"""Tiles that cover a picture, and tokens that come from the right one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.features.made import inside, tiny
from vitscope.features.dense import dense_features, dense_size, tile_starts, tiles


@given(st.integers(1, 40), st.integers(0, 200), st.sampled_from(["paper", "corrected"]))
def test_tiles_cover_everything_once(window: int, more: int, protocol: str) -> None:
    length = window + more
    taken = [token for tile in tiles(length, window, protocol) for token in range(tile.first, tile.last)]
    assert taken == list(range(length))
    for tile in tiles(length, window, protocol):
        assert 0 <= tile.start <= tile.first < tile.last <= tile.start + window <= length
    assert len(tiles(length, window, "corrected")) == len(tiles(length, window, "paper"))


def test_corrected_tokens_come_from_where_they_are_most_central() -> None:
    for length, window in ((49, 14), (20, 14), (28, 14), (33, 8)):
        plan = tiles(length, window, "corrected")
        for tile in plan:
            for token in range(tile.first, tile.last):
                own = min(token - tile.start, tile.start + window - 1 - token)  # tokens to the nearer edge of the tile
                others = [
                    min(token - t.start, t.start + window - 1 - token)
                    for t in plan
                    if t.start <= token < t.start + window
                ]
                assert own >= max(others) - 1  # a tie of an odd overlap may fall either way


def test_as_published() -> None:
    """Tile by tile in reading order; a token that is there already stays."""
    backbone = tiny()
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (50, 90, 3), dtype=np.uint8))
    height, width = dense_size((50, 90), (32, 32), (8, 8))
    resized = np.array(picture.resize((width, height), Image.Resampling.BICUBIC))
    expected = torch.full((3, height // 8, width // 8, 24), torch.nan)
    for top in tile_starts(height, 32):
        for left in tile_starts(width, 32):
            view = torch.from_numpy(resized[top : top + 32, left : left + 32]).permute(2, 0, 1)[None]
            layers = inside(backbone).forward_intermediates(
                backbone.preprocessing.normalise(view), intermediates_only=True, norm=False
            )
            tokens = torch.stack([layer[0].permute(1, 2, 0) for layer in layers])  # (L, 4, 4, D)
            place = expected[:, top // 8 : top // 8 + 4, left // 8 : left // 8 + 4]
            place.copy_(torch.where(place.isnan(), tokens, place))
    found = dense_features(backbone, picture, protocol="paper")
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("protocol", ["paper", "corrected"])
def test_tokens_are_those_of_the_tile(protocol: str) -> None:
    """A picture of 64 x 112 pixels is 8 x 14 tokens of a network that takes 4 x 4."""
    backbone = tiny()
    picture = Image.fromarray(np.random.default_rng(1).integers(0, 256, (64, 112, 3), dtype=np.uint8))
    whole = dense_features(backbone, picture, protocol=protocol)
    assert whole.shape == (3, 8, 14, 24)
    pixels = torch.from_numpy(np.array(picture)).permute(2, 0, 1)
    for row in tiles(8, 4, protocol):
        for column in tiles(14, 4, protocol):
            view = pixels[:, 8 * row.start : 8 * row.start + 32, 8 * column.start : 8 * column.start + 32]
            x = backbone.preprocessing.normalise(view[None])
            tokens = inside(backbone).forward_intermediates(x, intermediates_only=True, norm=False)
            for layer in range(3):
                alone = tokens[layer][0].permute(1, 2, 0)  # (4, 4, D)
                part = alone[
                    row.first - row.start : row.last - row.start,
                    column.first - column.start : column.last - column.start,
                ]
                found = whole[layer, row.first : row.last, column.first : column.last]
                torch.testing.assert_close(found, part, atol=2e-5, rtol=1e-4)


def test_models_without_cls_and_with_registers() -> None:
    picture = Image.new("RGB", (70, 40), "teal")
    for options in ({"class_token": False, "global_pool": "avg"}, {"reg_tokens": 4}):
        assert dense_features(tiny(depth=1, **options), picture).shape == (1, 8, 14, 24)
