"""Visual words: patches of the training images, clustered. BEiT's tokenizer, learned on the same data."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.cluster import MiniBatchKMeans
from torch import Tensor

from vitscope.errors import BadData
from vitscope.teaching.vit import patchify


def learn_codebook(images: Tensor, patch: tuple[int, int], words: int, seed: int) -> Tensor:
    """(words, P): centres of k-means over the patches of float images (M, 3, h, w) in [0, 1]."""
    patches = patchify(images, patch).flatten(0, 1)
    if len(patches.unique(dim=0)) < words:
        raise BadData(f"the images have fewer than {words} different patches: use more images or a smaller codebook")
    kmeans = MiniBatchKMeans(words, random_state=seed, batch_size=4096, n_init=1, max_iter=30, reassignment_ratio=0)
    kmeans.fit(patches.numpy().astype(np.float32))
    return torch.from_numpy(kmeans.cluster_centers_.astype(np.float32))


def nearest_words(patches: Tensor, codebook: Tensor) -> Tensor:
    """(B, N, P) patches -> (B, N) number of the nearest of the (words, P) centres."""
    distance = codebook.square().sum(1) - 2 * patches @ codebook.T  # |c|^2 - 2 x.c; |x|^2 is the same for all
    return distance.argmin(2)
