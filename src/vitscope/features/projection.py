"""Features in the plane, to look at: principal components always, t-SNE for neighbourhoods."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

LEAST_FOR_TSNE = 10
PERPLEXITY = 30.0


def pca(features: Tensor, dimensions: int = 2) -> tuple[Tensor, Tensor]:
    """Principal components: (n, D) -> coordinates (n, dimensions) and the share of variance of each (dimensions,).

    Signs are fixed (the largest coordinate of each component is positive), so that the same features give the same
    image. Constant features give zeros.
    """
    x = features.double() - features.double().mean(0)
    if not x.any() or min(x.shape) < 1:
        return torch.zeros(len(x), dimensions, dtype=torch.float64), torch.zeros(dimensions, dtype=torch.float64)
    u, s, _ = torch.linalg.svd(x, full_matrices=False)
    kept = min(dimensions, len(s))
    where = u[:, :kept].abs().argmax(0)
    sign = u[where, torch.arange(kept)].sign()
    coordinates = torch.zeros(len(x), dimensions, dtype=torch.float64)
    coordinates[:, :kept] = u[:, :kept] * s[:kept] * sign
    share = torch.zeros(dimensions, dtype=torch.float64)
    share[:kept] = s[:kept].square() / s.square().sum()
    return coordinates, share


def tsne(features: Tensor, *, seed: int = 0) -> Tensor | None:
    """t-SNE coordinates (n, 2) of features scaled to length 1, started from PCA; None for fewer than 10 images."""
    from sklearn.manifold import TSNE  # half a second: not for workers that only run networks

    if len(features) < LEAST_FOR_TSNE:
        return None
    x = torch.nn.functional.normalize(features.float(), dim=1)
    x = pca(x, min(50, *x.shape))[0].float()  # as its authors advise: faster, and less noise
    if not x.any():
        return None
    perplexity = min(PERPLEXITY, (len(x) - 1) / 3)
    embedding = TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(x.numpy())
    return torch.from_numpy(np.ascontiguousarray(embedding)).double()
