"""Mutual nearest neighbours: do two models find the same images most alike?"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

NEIGHBOURS = 10


def mutual_neighbours(x: Tensor, y: Tensor, k: int = NEIGHBOURS) -> float:
    """Mean share of each image's k nearest neighbours (by cosine) that both models have in common.

    x: (n, D1), y: (n, D2), n > k. Chance gives k / (n - 1). NaN for constant features: there all are as near.
    """
    if len(x) <= k:
        raise ValueError(f"{len(x)} images have no {k} neighbours each")
    if bool((x == x[0]).all()) or bool((y == y[0]).all()):
        return float("nan")
    near_x, near_y = nearest(x, k), nearest(y, k)  # (n, k)
    shared = (near_x.unsqueeze(2) == near_y.unsqueeze(1)).any(2)  # (n, k)
    return shared.double().mean().item()


def nearest(x: Tensor, k: int, rows: int = 1024) -> Tensor:
    """The k nearest other rows of each row, by cosine: (n, D) -> (n, k) int64."""
    x = F.normalize(x.double(), dim=1)
    found = []
    for start in range(0, len(x), rows):
        similarity = x[start : start + rows] @ x.T  # (m, n)
        own = torch.arange(len(similarity))
        similarity[own, own + start] = -torch.inf
        found.append(similarity.topk(k, dim=1).indices)
    return torch.cat(found)
