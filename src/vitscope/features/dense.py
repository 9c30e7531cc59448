"""Dense features: a picture larger than the network's input, cut into tiles, each its own forward pass.

As published: the short side becomes twice the input (448), the other side follows, rounded down to whole patches;
tiles of the input's size, the last one of a row or column shifted back to the border; where tiles overlap, the first
one wins.
"""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from vitscope.data.batches import Batch
from vitscope.data.samples import SampleList
from vitscope.features.objects import RegionStatistic, region_weights
from vitscope.models.backbone import Backbone

SCALE = 2  # of the network's input, for the shorter side
TILES = 4  # tiles per forward pass


def dense_size(size: tuple[int, int], tile: tuple[int, int], patch: tuple[int, int]) -> tuple[int, int]:
    """(height, width) to which a picture of `size` is resized: whole patches, at least `SCALE` tiles each way.

    >>> dense_size((480, 854), (224, 224), (16, 16))  # DAVIS
    (448, 784)
    """
    scale = SCALE * max(tile[0] / size[0], tile[1] / size[1])
    height, width = (max(int(side * scale + 1e-6) // p * p, t) for side, p, t in zip(size, patch, tile, strict=True))
    return height, width


def tile_starts(length: int, tile: int) -> list[int]:
    """Where tiles start along one side; the last one is shifted back to the border.

    >>> tile_starts(784, 224)
    [0, 224, 448, 560]
    """
    return [min(i * tile, max(length - tile, 0)) for i in range(-(-length // tile))]


class _Layers:
    """Keeps the spatial tokens of every layer."""

    wants = frozenset({"tokens"})

    def __init__(self, prefix: int) -> None:
        self.prefix, self.layers = prefix, list[Tensor]()

    def tokens(self, layer: int, x: Tensor) -> None:
        self.layers.append(x[:, self.prefix :].float().cpu())

    def attention(self, layer: int, probs: Tensor) -> None: ...

    def norms(self, layer: int, part: str, x: Tensor) -> None: ...

    def branches(self, layer: int, part: str, skip: Tensor, branch: Tensor) -> None: ...


def dense_features(backbone: Backbone, picture: Image.Image) -> Tensor:
    """Tokens of every layer for a whole picture: (L, h, w, D) float32, h and w in tokens."""
    tile, patch, grid = backbone.preprocessing.size, backbone.patch, backbone.layout.grid
    height, width = dense_size((picture.height, picture.width), tile, patch)
    resample = Image.Resampling[backbone.preprocessing.interpolation.upper()]
    resized = picture.resize((width, height), resample)
    pixels = torch.from_numpy(np.array(resized)).permute(2, 0, 1)  # (3, H, W)
    corners = [(top, left) for top in tile_starts(height, tile[0]) for left in tile_starts(width, tile[1])]
    whole = torch.empty(backbone.depth, height // patch[0], width // patch[1], backbone.width)
    for start in reversed(range(0, len(corners), TILES)):  # backwards: what is written last stays, and the first wins
        some = corners[start : start + TILES]
        keep = _Layers(backbone.layout.prefix)
        tiles = torch.stack([pixels[:, top : top + tile[0], left : left + tile[1]] for top, left in some])
        backbone.trace(tiles, [keep])
        tokens = torch.stack(keep.layers).unflatten(2, grid)  # (L, tiles, h, w, D)
        for number, (top, left) in reversed(list(enumerate(some))):
            i, j = top // patch[0], left // patch[1]
            whole[:, i : i + grid[0], j : j + grid[1]] = tokens[:, number]
    return whole


class DenseRegionStatistic(RegionStatistic):
    """Mask-pooled features from dense extraction: pictures are read again at the larger size, several forwards each."""

    needs_annotations = False  # masks are read here, under the larger geometry

    def __init__(self, backbone: Backbone, samples: SampleList) -> None:
        super().__init__(backbone.layout)
        self.backbone, self.samples = backbone, samples

    def begin(self, batch: Batch) -> None:
        super(RegionStatistic, self).begin(batch)
        self._categories, self._outside = [], 0

    def tokens(self, layer: int, x: Tensor) -> None:
        """The centre crop is not looked at."""

    def end(self) -> None:
        pooled = [self._pool(index) for index in self.batch.indices.tolist()]
        self.record(torch.cat(pooled))
        super(RegionStatistic, self).end()

    def _pool(self, index: int) -> Tensor:
        """Features (A, L, D) of one picture's regions."""
        sample, backbone = self.samples[index], self.backbone
        if not sample.annotations:
            self._categories.append(torch.empty(0, dtype=torch.int64))
            return torch.empty(0, backbone.depth, backbone.width)
        tokens = dense_features(backbone, sample.load())  # (L, h, w, D)
        grid = (tokens.shape[1], tokens.shape[2])
        size = dense_size(
            sample.annotations[0].decode().shape,
            backbone.preprocessing.size,
            backbone.patch,
        )
        coverage = torch.stack([_resized(annotation.decode(), size) for annotation in sample.annotations])
        weights = region_weights(coverage, grid)  # (A, N)
        inside = weights.sum(-1) > 0
        categories = torch.tensor([annotation.category for annotation in sample.annotations])
        self._categories.append(categories[inside])
        self._outside += int((~inside).sum())
        return torch.einsum("an,lnd->ald", weights[inside], tokens.flatten(1, 2))


def _resized(region: np.ndarray, size: tuple[int, int]) -> Tensor:
    """The share of each pixel that a region covers after resizing: bool (H, W) -> uint8 (h, w), 0..255."""
    mask = Image.fromarray(region.view(np.uint8) * np.uint8(255))
    return torch.from_numpy(np.array(mask.resize((size[1], size[0]), Image.Resampling.BOX)))
