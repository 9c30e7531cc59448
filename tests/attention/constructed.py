"""Attention with a known answer."""

from __future__ import annotations

import torch
from torch import Tensor


def places(grid: tuple[int, int]) -> Tensor:
    h, w = grid
    return torch.stack([torch.arange(h).repeat_interleave(w), torch.arange(w).repeat(h)], dim=1)


def shifted(grid: tuple[int, int], down: int, across: int) -> Tensor:
    """(N, N): every token attends to one fixed offset; where that lies outside, to itself."""
    h, w = grid
    attention = torch.zeros(h * w, h * w)
    for s, (i, j) in enumerate(places(grid).tolist()):
        k, m = i + down, j + across
        inside = 0 <= k < h and 0 <= m < w
        attention[s, k * w + m if inside else s] = 1
    return attention


def uniform(grid: tuple[int, int]) -> Tensor:
    n = grid[0] * grid[1]
    return torch.full((n, n), 1 / n)


def along_row(grid: tuple[int, int]) -> Tensor:
    """Every token spreads its attention evenly over its own row."""
    where = places(grid)
    same = (where[:, None, 0] == where[None, :, 0]).float()
    return same / same.sum(-1, keepdim=True)


def along_column(grid: tuple[int, int]) -> Tensor:
    where = places(grid)
    same = (where[:, None, 1] == where[None, :, 1]).float()
    return same / same.sum(-1, keepdim=True)


def gaussian(grid: tuple[int, int], sigma: float) -> Tensor:
    """Isotropic and local around the token itself."""
    where = places(grid).double()
    squared = (where[:, None] - where[None, :]).square().sum(-1)
    return (-squared / (2 * sigma**2)).softmax(-1).float()


def noisy(attention: Tensor, share: float, seed: int = 0) -> Tensor:
    """Mixed with i.i.d. noise of that share."""
    noise = torch.rand(attention.shape, generator=torch.Generator().manual_seed(seed))
    return (1 - share) * attention + share * noise / noise.sum(-1, keepdim=True)


def with_prefix(attention: Tensor, prefix: int, mass: float) -> Tensor:
    """(N, N) -> (prefix + N, prefix + N): spatial tokens put `mass` on the prefix tokens; those attend evenly."""
    n = attention.shape[-1]
    full = torch.full((prefix + n, prefix + n), 1 / (prefix + n))
    full[prefix:, prefix:] = (1 - mass) * attention
    if prefix:
        full[prefix:, :prefix] = mass / prefix
    return full
