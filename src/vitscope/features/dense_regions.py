"""Mask-pooled features from dense extraction: objects and parts that a centre crop would cut or shrink."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from vitscope.data.batches import Batch
from vitscope.data.samples import SampleList
from vitscope.features.dense import dense_features, dense_size
from vitscope.features.objects import RegionStatistic, region_weights
from vitscope.models.backbone import Backbone


class DenseRegionStatistic(RegionStatistic):
    """Regions of the tiles as published: pictures are read again at the larger size, several forwards each."""

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
        tokens = dense_features(backbone, sample.load(), protocol="paper").cpu()  # (L, h, w, D)
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
