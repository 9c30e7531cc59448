"""Representational similarity analysis: do two models find the same images far apart?"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def rsa(x: Tensor, y: Tensor) -> float:
    """Spearman correlation of the distances between all pairs of images. x: (n, D1), y: (n, D2).

    Distances are Euclidean, so that the score does not depend on the axes features are written in (correlation
    distance does). NaN for constant features.
    """
    return spearman(distances(x), distances(y))


def distances(x: Tensor) -> np.ndarray:
    """Squared Euclidean distances of all pairs of rows: (n, D) -> (n (n - 1) / 2,). Ranks need no root."""
    x = x.double() - x[0].double()
    x = x - x.mean(0)
    squares = x.square().sum(1)
    pairs = squares[:, None] + squares[None, :] - 2 * (x @ x.T)
    row, column = torch.triu_indices(len(x), len(x), offset=1)
    return pairs[row, column].numpy()


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Rank correlation; NaN if either side is constant."""
    from scipy.stats import rankdata  # half a second: not for workers that only run networks

    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(np.corrcoef(rankdata(a), rankdata(b))[0, 1])
