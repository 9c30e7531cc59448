"""Procrustes similarity: how well one set of features can be turned onto the other."""

from __future__ import annotations

import torch
from torch import Tensor


def procrustes(x: Tensor, y: Tensor) -> float:
    """1 - d^2 / 2, with d the distance of the centred, scaled features after the best orthogonal map.

    x: (n, D1), y: (n, D2). 1 for features equal up to rotation, scaling and offset. It is not debiased: with more
    dimensions than images unrelated features score high too, so read it beside its null. NaN for constant features.
    """
    x, y = _scaled(x), _scaled(y)
    if max(x.shape[1], y.shape[1]) > len(x):  # same singular values, from the smaller matrices
        x, y = _coordinates(x), _coordinates(y)
    product = x.T @ y
    if not torch.isfinite(product).all():
        return float("nan")
    # the sum of singular values, from a symmetric problem: several times faster, exact to 1e-7
    found: float = torch.linalg.eigvalsh(product.T @ product).clamp_min(0).sqrt().sum().item()
    return found


def _scaled(x: Tensor) -> Tensor:
    x = x.double() - x[0].double()  # exact zeros for constant features
    x = x - x.mean(0)
    size = x.norm()
    found: Tensor = x / size.masked_fill(size == 0, torch.nan)
    return found


def _coordinates(x: Tensor) -> Tensor:
    """The same points in as few dimensions as they span: (n, D) -> (n, n)."""
    if not torch.isfinite(x).all() or x.shape[1] <= len(x):
        return x
    values, vectors = torch.linalg.eigh(x @ x.T)
    found: Tensor = vectors * values.clamp_min(0).sqrt()
    return found
