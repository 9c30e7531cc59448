"""Mask-pooled features from dense extraction: objects and parts that a centre crop would cut or shrink."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from vitscope.data.batches import SkippedImages
from vitscope.data.decode import BadImage
from vitscope.data.preprocessing import cells_paper
from vitscope.data.samples import Sample, SampleList
from vitscope.features.dense import dense_features, dense_size
from vitscope.features.regions import region_weights
from vitscope.models.backbone import Backbone


def dense_regions(
    backbone: Backbone, samples: SampleList, units: range, skipped: SkippedImages, protocol: str = "corrected"
) -> dict[str, Tensor]:
    """Regions of some images from tiles at twice the size, as a state of `RegionStatistic`.

    Tiles are the published ones; the protocol decides how masks come to the grid.
    """
    pooled, categories, images, outside, read = [], [], [], 0, []
    for index in units:
        try:
            features, category, lost = _pool(backbone, samples[index], protocol)
        except BadImage as error:
            skipped.add(samples[index].id, error.reason)
            continue
        read.append(index)
        pooled.append(features)
        categories.append(category)
        images.append(torch.full((len(category),), index))
        outside += lost
    state: dict[str, Tensor] = {"indices": torch.tensor(read, dtype=torch.int64)}
    if not read:
        return state
    layers = torch.cat(pooled).unbind(1)
    state |= {f"row/features/{layer}": rows.contiguous() for layer, rows in enumerate(layers)}
    return state | {
        "row/category": torch.cat(categories),
        "row/image": torch.cat(images),
        "sum/outside": torch.tensor(outside, dtype=torch.float64),
    }


def _pool(backbone: Backbone, sample: Sample, protocol: str) -> tuple[Tensor, Tensor, int]:
    """Features (A, L, D) of one image's regions, their categories, and how many regions have no pixel."""
    if not sample.annotations:
        return torch.empty(0, backbone.depth, backbone.width), torch.empty(0, dtype=torch.int64), 0
    tokens = dense_features(backbone, sample.load(), protocol="paper").cpu()  # (L, h, w, D)
    grid = (tokens.shape[1], tokens.shape[2])
    masks = [annotation.decode() for annotation in sample.annotations]
    size = dense_size(masks[0].shape, backbone.preprocessing.size, backbone.patch)
    reduced = [cells_paper(mask, grid) if protocol == "paper" else _resized(mask, size) for mask in masks]
    weights = region_weights(torch.from_numpy(np.stack(reduced)), grid)  # (A, N)
    inside = weights.sum(-1) > 0
    categories = torch.tensor([annotation.category for annotation in sample.annotations])
    features = torch.einsum("an,lnd->ald", weights[inside], tokens.flatten(1, 2))
    return features, categories[inside], int((~inside).sum())


def _resized(region: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """The share of each pixel that a region covers after resizing: bool (H, W) -> uint8 (h, w), 0..255."""
    mask = Image.fromarray(region.view(np.uint8) * np.uint8(255))
    return np.asarray(mask.resize((size[1], size[0]), Image.Resampling.BOX))
