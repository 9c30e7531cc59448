"""How many dimensions features use: effective rank (linear) and intrinsic dimension (of the curved set they fill)."""

from __future__ import annotations

import torch
from torch import Tensor

FIRST, LAST = 5, 50  # eigenvalues that the slope is fitted to: the first are few and the last are rounding
GROUPS = 8  # of points, each left out once


def effective_rank(features: Tensor) -> float:
    """Exponential of the entropy of the normalised singular values of the centred features (Roy and Vetterli, 2007).

    features: (n, D). d for features spread evenly over d orthogonal directions; NaN for constant features.

    >>> round(effective_rank(torch.tensor([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]])), 6)
    2.0
    """
    return rankme(eigenvalues(features))


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


def eigenvalues(features: Tensor) -> Tensor:
    """Of the covariance of features (n, D), times n: descending, float64, those that are not rounding."""
    x = features.double() - features[0].double()
    x = x - x.mean(0)
    gram = x.T @ x if x.shape[0] > x.shape[1] else x @ x.T
    values: Tensor = torch.linalg.eigvalsh(gram).flip(0).clamp_min(0)
    return values[values > values.max() * 1e-14]


def rankme(values: Tensor) -> float:
    """RankMe (2210.02885): exponential of the entropy of the normalised singular values; from eigenvalues (m,)."""
    if not len(values):
        return float("nan")
    share = values.sqrt() / values.sqrt().sum()
    return float((-(share * share.log()).sum()).exp())


def spectrum_slope(values: Tensor) -> float:
    """alpha of eigenvalues ~ i^-alpha: the slope in logarithms from the 5th to the 50th (or a half of all), every
    octave counting the same. NaN for fewer than twice five.

    >>> round(spectrum_slope(torch.arange(1, 100).double() ** -1.5), 6)
    1.5
    """
    last = min(LAST, len(values) // 2)
    if last < 2 * FIRST:
        return float("nan")
    order = torch.arange(FIRST, last + 1).double()
    x, y, weight = order.log(), values[FIRST - 1 : last].log(), 1 / order
    x = x - (weight * x).sum() / weight.sum()
    return float(-(weight * x * y).sum() / (weight * x * x).sum())


def spectrum(features: Tensor) -> tuple[Tensor, Tensor]:
    """RankMe and slope of features (n, D), and the reach of their 95 % intervals: (2,) each.

    The reach is 1.96 jackknife deviations, points being left out in eight groups.
    """

    def both(x: Tensor) -> Tensor:
        values = eigenvalues(x)
        return torch.tensor([rankme(values), spectrum_slope(values)], dtype=torch.float64)

    groups = torch.arange(len(features)) * GROUPS // len(features)
    without = torch.stack([both(features[groups != group]) for group in range(GROUPS)])
    reach = 1.959964 * ((without - without.mean(0)).square().sum(0) * (GROUPS - 1) / GROUPS).sqrt()
    return both(features), reach
