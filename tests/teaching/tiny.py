"""A tiny architecture and tiny images that the tests of this folder share."""

from __future__ import annotations

import numpy as np
import torch

from vitscope.teaching.images import StoredImages

ARCH = "vit_tiny_patch16_224"
OPTIONS = {"img_size": 16, "patch_size": 4, "embed_dim": 16, "depth": 2, "num_heads": 2}
ROTARY_ARCH = "eva02_tiny_patch14_224"
ROTARY = {
    **OPTIONS,
    "mlp_ratio": 4.0,
    "swiglu_mlp": False,
    "attn_type": "rope",
    "global_pool": "token",
    "ref_feat_shape": 6,
    "rope_temperature": 8.0,
}
PLACES = ("top left", "top right", "bottom left", "bottom right")


def squares(count: int = 48, size: int = 16) -> StoredImages:
    """Images of coloured squares: the class is the place of the square, the captions say it."""
    random = np.random.default_rng(0)
    pixels = random.integers(0, 60, (count, 3, size, size), dtype=np.uint8)
    labels = np.arange(count) % 4
    half = size // 2
    for image, label in zip(pixels, labels, strict=True):
        top, left = half * (label // 2), half * (label % 2)
        image[:, top : top + half, left : left + half] += random.integers(90, 190, (3, 1, 1), dtype=np.uint8)
    return StoredImages(
        pixels,
        labels=torch.from_numpy(labels),
        classes=PLACES,
        captions=[(f"a square {PLACES[label]}", PLACES[label]) for label in labels],
        digest="squares",
    )
