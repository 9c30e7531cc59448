"""How many dimensions features use: effective rank (linear) and intrinsic dimension (of the curved set they fill)."""

from __future__ import annotations

import torch
from torch import Tensor


def effective_rank(features: Tensor) -> float:
    """Exponential of the entropy of the normalised singular values of the centred features (Roy and Vetterli, 2007).

    features: (n, D). d for features spread evenly over d orthogonal directions; NaN for constant features.

    >>> round(effective_rank(torch.tensor([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]])), 6)
    2.0
    """
    x = features.double() - features[0].double()
    x = x - x.mean(0)
    gram = x.T @ x if x.shape[0] > x.shape[1] else x @ x.T
    values = torch.linalg.eigvalsh(gram).clamp_min(0).sqrt()
    values = values[values > values.max() * 1e-7]  # below is rounding of the product
    if not len(values):
        return float("nan")
    share = values / values.sum()
    found: float = (-(share * share.log()).sum()).exp().item()
    return found


def intrinsic_dimension(features: Tensor, *, rows: int = 1024) -> float:
    """TwoNN (Facco et al., 2017): from the ratio of each point's distances to its second and first neighbour.

    features: (n, D), n >= 3. The maximum-likelihood estimate (n - 1) / sum log(r2 / r1), without points that have an
    exact duplicate; NaN if fewer than 3 points remain or no ratio differs from 1.
    """
    x = features.double() - features.double().mean(0)
    squares = x.square().sum(1)
    ratios = []
    for start in range(0, len(x), rows):
        part = x[start : start + rows]
        nearest = (squares[start : start + rows, None] + squares - 2 * (part @ x.T)).topk(3, largest=False).indices
        # the products above lose digits for points that are close: their distances are taken again
        exact = (part.unsqueeze(1) - x[nearest]).square().sum(2).sort(1).values  # (m, 3), the first is the point itself
        distinct = exact[:, 1] > 0
        ratios.append((exact[distinct, 2] / exact[distinct, 1]).log() / 2)
    logs = torch.cat(ratios)
    if len(logs) < 3 or logs.sum() == 0:
        return float("nan")
    return (len(logs) - 1) / logs.sum().item()
