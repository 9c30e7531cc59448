"""The Hilbert-Schmidt independence criterion of Gram matrices, unbiased, in the form that cannot go wrong.

U-centring (Szekely and Rizzo, 2014) removes from a Gram matrix everything of the form a_i + a_j, so that adding an
offset to all features changes nothing. What remains has a zero diagonal and rows that sum to zero, and the unbiased
HSIC of two Grams is the plain inner product of what remains, over n (n - 3). The textbook form with traces gives the
same number on paper, but subtracts large numbers from each other and can return a negative HSIC(K, K) in float32.
"""

from __future__ import annotations

import torch
from torch import Tensor

LEAST = 4  # images: below, the unbiased estimate does not exist


def u_centre(gram: Tensor) -> Tensor:
    """U-centred Gram matrices. gram: (..., n, n) symmetric, n >= 4; its diagonal is ignored.

    >>> u_centre(torch.ones(4, 4)).abs().max().item()  # features that do not depend on the image
    0.0
    """
    n = gram.shape[-1]
    if n < LEAST:
        raise ValueError(f"{n} images are too few for an unbiased HSIC: it takes {LEAST}")
    diagonal = torch.eye(n, dtype=torch.bool, device=gram.device)
    hollow = gram.masked_fill(diagonal, 0)
    rows = hollow.sum(-1) / (n - 2)  # (..., n)
    total = hollow.sum((-1, -2)) / ((n - 1) * (n - 2))  # (...)
    centred = hollow - rows.unsqueeze(-1) - rows.unsqueeze(-2) + total[..., None, None]
    return centred.masked_fill(diagonal, 0)


def hsic(gram_x: Tensor, gram_y: Tensor) -> Tensor:
    """Unbiased HSIC of two Grams (..., n, n) of the same n images: (...)."""
    n = gram_x.shape[-1]
    return (u_centre(gram_x) * u_centre(gram_y)).sum((-1, -2)) / (n * (n - 3))


def pack(centred: Tensor) -> Tensor:
    """The part above the diagonal, row by row: (..., n, n) -> (..., n (n - 1) / 2). The diagonal is zero anyway."""
    n = centred.shape[-1]
    row, column = torch.triu_indices(n, n, offset=1, device=centred.device)
    return centred[..., row, column]


def unpack(packed: Tensor, n: int) -> Tensor:
    """The symmetric matrices, with a zero diagonal, that `pack` took apart: (..., n (n - 1) / 2) -> (..., n, n)."""
    row, column = torch.triu_indices(n, n, offset=1, device=packed.device)
    full = packed.new_zeros(*packed.shape[:-1], n, n)
    full[..., row, column] = packed
    full[..., column, row] = packed
    return full
