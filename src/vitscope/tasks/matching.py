"""Where in an image is the thing most like this point of another? Exact, between the tokens too.

A feature between tokens is the bilinear mix of the four around it. Its product with a query is the same mix of four
products, and its length follows from the products of those four tokens with each other: so cosines with every
interpolated feature of an image come from maps of the size of the token grid, and no feature map is ever enlarged.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def interpolation_weights(positions: Tensor, cells: int) -> Tensor:
    """Shares of the cells along one axis at continuous positions: (P,) -> (P, cells), rows that sum to 1.

    Position 0 is the centre of the first cell; beyond the outer centres the outer cell counts alone.

    >>> interpolation_weights(torch.tensor([-0.4, 0.25]), 2)
    tensor([[1.0000, 0.0000],
            [0.7500, 0.2500]])
    """
    at = positions.clamp(0, cells - 1)
    distance = (at[:, None] - torch.arange(cells, device=positions.device, dtype=positions.dtype)).abs()
    return (1 - distance).clamp_min(0)


def sample(maps: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Bilinear features at K points: maps (L, h, w, D), rows and columns (K,) in cells -> (L, K, D)."""
    down = interpolation_weights(rows, maps.shape[1]).to(maps)  # (K, h)
    across = interpolation_weights(columns, maps.shape[2]).to(maps)  # (K, w)
    return torch.einsum("kh,kw,lhwd->lkd", down, across, maps)


def squared_lengths(maps: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Squared lengths of the interpolated features at every row and column: maps (L, h, w, D) -> (L, R, C).

    With shares a, 1-a down and b, 1-b across, |mix|^2 is a quadratic form of the shares whose coefficients are the
    products of a token with itself, its neighbours and its diagonal neighbours: one small matrix product each way.
    """
    right, below = maps[:, :, 1:], maps[:, 1:]
    itself = maps.square().sum(-1)  # (L, h, w)
    beside = (maps[:, :, :-1] * right).sum(-1)  # (L, h, w - 1)
    under = (maps[:, :-1] * below).sum(-1)  # (L, h - 1, w)
    crossed = ((maps[:, :-1, :-1] * below[:, :, 1:]).sum(-1) + (maps[:, :-1, 1:] * below[:, :, :-1]).sum(-1)) / 2
    products = torch.cat([torch.cat([itself, beside], 2), torch.cat([under, crossed], 2)], 1)  # (L, 2h - 1, 2w - 1)
    return _pairs(rows, maps.shape[1]).to(maps) @ products @ _pairs(columns, maps.shape[2]).to(maps).T


def _pairs(positions: Tensor, cells: int) -> Tensor:
    """Coefficients of cell x cell and of cell x next cell in a squared mix: (P, 2 * cells - 1)."""
    shares = interpolation_weights(positions, cells)
    return torch.cat([shares.square(), 2 * shares[:, :-1] * shares[:, 1:]], 1)


def best_matches(queries: Tensor, maps: Tensor, rows: Tensor, columns: Tensor, *, renormalise: bool = True) -> Tensor:
    """The place most like each query, among all combinations of `rows` and `columns` (in cells).

    queries: (L, K, D); maps: (L, h, w, D). Returns int64 (L, K, 2), indices into rows and columns; of equals the first.
    renormalise: compare by the cosine with the interpolated feature. Without it, as published, by the interpolated
    cosine, which favours the centres of cells.
    """
    if not renormalise:
        maps = F.normalize(maps, dim=-1)
    lengths = squared_lengths(maps, rows, columns).clamp_min(1e-12).rsqrt() if renormalise else None
    down = interpolation_weights(rows, maps.shape[1]).to(maps)  # (R, h)
    across = interpolation_weights(columns, maps.shape[2]).to(maps).T.contiguous()  # (w, C)
    best = []
    for layer, (asked, tokens) in enumerate(zip(queries, maps, strict=True)):
        products = (asked @ tokens.flatten(0, 1).T).unflatten(1, tokens.shape[:2])  # (K, h, w)
        enlarged = down @ (products @ across)  # (K, R, C)
        if lengths is not None:
            enlarged *= lengths[layer]
        best.append(enlarged.flatten(1).argmax(1))
    place = torch.stack(best)  # (L, K)
    return torch.stack([place // len(columns), place % len(columns)], -1)
