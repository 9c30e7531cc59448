"""Features of whole pictures of any size: tiles of the network's own input size, put together on one grid of tokens.

No network sees a size that it was not made for, so that all are compared under the same conditions, those without
position embeddings that could be resampled too. A model loaded at a larger input size has larger tiles. The short side
becomes twice the input (448), or what is asked for; the other side follows, rounded down to whole patches.

`paper`: tiles side by side, the last one shifted back to the border; where tiles overlap the first one wins.
`corrected`: the same number of tiles spread evenly, and each token is taken from the tile in which it is most central.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from vitscope.core.observer import Observer
from vitscope.models.backbone import Backbone
from vitscope.models.layout import TokenLayout

SCALE = 2  # of the network's input, for the shorter side
AT_ONCE = 8  # tiles in one forward pass


def dense_size(
    size: tuple[int, int], tile: tuple[int, int], patch: tuple[int, int], short_side: int | None = None
) -> tuple[int, int]:
    """(height, width) to which an image of `size` is resized: whole patches, at least `SCALE` tiles each way.

    short_side: what the shorter side becomes instead, in pixels, as far as a tile fits.

    >>> dense_size((480, 854), (224, 224), (16, 16))  # DAVIS
    (448, 784)
    >>> dense_size((480, 854), (64, 64), (8, 8), short_side=256)
    (256, 448)
    """
    scale = short_side / min(size) if short_side else SCALE * max(tile[0] / size[0], tile[1] / size[1])
    height, width = (max(int(side * scale + 1e-6) // p * p, t) for side, p, t in zip(size, patch, tile, strict=True))
    return height, width


def tile_starts(length: int, tile: int) -> list[int]:
    """Where tiles start along one side; the last one is shifted back to the border.

    >>> tile_starts(784, 224)
    [0, 224, 448, 560]
    """
    return [min(i * tile, max(length - tile, 0)) for i in range(-(-length // tile))]


@dataclass(frozen=True)
class Tile:
    """Along one axis, in tokens: where a tile starts, and which tokens of the picture are taken from it."""

    start: int
    first: int
    last: int  # exclusive


def tiles(length: int, window: int, protocol: str) -> list[Tile]:
    """Tiles of `window` tokens that cover `length` tokens; the parts taken from them touch and do not overlap.

    >>> [tile.start for tile in tiles(49, 14, "paper")]
    [0, 14, 28, 35]
    >>> [(tile.start, tile.first, tile.last) for tile in tiles(49, 14, "corrected")]
    [(0, 0, 13), (12, 13, 24), (23, 24, 36), (35, 36, 49)]
    """
    if protocol == "paper":
        starts = tile_starts(length, window)
        ends = [start + window for start in starts]  # the first tile wins
    else:
        count = -(-length // window)
        starts = [round(i * (length - window) / max(count - 1, 1)) for i in range(count)]
        ends = [(a + window + b) // 2 for a, b in pairwise(starts)] + [length]
    return [Tile(start, first, last) for start, first, last in zip(starts, [0, *ends[:-1]], ends, strict=True)]


class _Placer(Observer):
    """Lays the tokens of a few tiles on the grid of the whole picture, layer by layer as they stream by."""

    wants = frozenset({"tokens"})

    def __init__(self, whole: Tensor, layout: TokenLayout) -> None:
        self.whole, self.layout = whole, layout
        self.places: list[tuple[Tile, Tile]] = []

    def tokens(self, layer: int, x: Tensor) -> None:
        grids = x[:, self.layout.prefix :].unflatten(1, self.layout.grid)  # (B, h, w, D)
        for grid, (row, column) in zip(grids, self.places, strict=True):
            part = grid[
                row.first - row.start : row.last - row.start, column.first - column.start : column.last - column.start
            ]
            self.whole[layer, row.first : row.last, column.first : column.last] = part


def whole_features(backbone: Backbone, picture: Image.Image, *, dtype: torch.dtype = torch.float32) -> Tensor:
    """Tokens of every layer of the whole image in one pass at the network's own input size: (L, h, w, D) of `dtype`.

    Nothing is cropped: an image that is not square is squeezed, as its masks are.
    """
    height, width = backbone.preprocessing.size
    resample = Image.Resampling[backbone.preprocessing.interpolation.upper()]
    pixels = torch.from_numpy(np.array(picture.resize((width, height), resample))).permute(2, 0, 1)
    h, w = backbone.layout.grid
    whole = torch.empty(backbone.depth, h, w, backbone.width, dtype=dtype, device=backbone.device)
    placer = _Placer(whole, backbone.layout)
    placer.places = [(Tile(0, 0, h), Tile(0, 0, w))]
    backbone.trace(pixels.unsqueeze(0), [placer])
    return whole


def dense_features(
    backbone: Backbone,
    picture: Image.Image,
    *,
    protocol: str = "corrected",
    dtype: torch.dtype = torch.float32,
    short_side: int | None = None,
) -> Tensor:
    """Tokens of every layer over the whole image: (L, h, w, D) of `dtype`, on the network's device.

    short_side: of the image as it is cut into tiles, in pixels; twice the input if not given.
    """
    (ph, pw), (height, width) = backbone.patch, backbone.preprocessing.size
    down, across = dense_size((picture.height, picture.width), (height, width), (ph, pw), short_side)
    resample = Image.Resampling[backbone.preprocessing.interpolation.upper()]
    pixels = torch.from_numpy(np.array(picture.resize((across, down), resample))).permute(2, 0, 1)  # (3, H, W)
    h, w = down // ph, across // pw
    places = [
        (row, column)
        for row in tiles(h, backbone.layout.grid[0], protocol)
        for column in tiles(w, backbone.layout.grid[1], protocol)
    ]
    whole = torch.empty(backbone.depth, h, w, backbone.width, dtype=dtype, device=backbone.device)
    placer = _Placer(whole, backbone.layout)
    for start in range(0, len(places), AT_ONCE):
        placer.places = places[start : start + AT_ONCE]
        corners = [(row.start * ph, column.start * pw) for row, column in placer.places]
        views = torch.stack([pixels[:, y : y + height, x : x + width] for y, x in corners])
        backbone.trace(views, [placer])
    return whole
