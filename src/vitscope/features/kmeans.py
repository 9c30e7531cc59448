"""k-means (greedy k-means++, then Lloyd's iterations), many runs at once.

Library implementations run one initialisation after the other, and spend most of their time choosing first centres by
products of a tall matrix with a handful of vectors. Here the runs go side by side, so that every step is one large
matrix product. The algorithm is scikit-learn's: as many candidates per centre, the same stopping rule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

ITERATIONS = 300
TOLERANCE = 1e-4  # squared movement of all centres, relative to the mean variance of a feature
ROWS = 8192  # handled at a time: bounds the memory


@dataclass(frozen=True)
class Clusters:
    """The runs of k-means on one set of features."""

    labels: Tensor  # (runs, n) int64
    inertia: Tensor  # (runs,): sum of squared distances to the centres
    centres: Tensor  # (runs, k, D)


def kmeans(features: Tensor, k: int, *, runs: int = 1, seed: int = 0, centres: Tensor | None = None) -> Clusters:
    """Cluster (n, D) float features into k clusters, `runs` times independently.

    centres: (runs, k, D) to start from, instead of k-means++. The same seed gives the same clusters.
    """
    n, _ = features.shape
    if not 1 <= k <= n:
        raise ValueError(f"{n} points cannot be put into {k} clusters")
    mean = features.double().mean(0).float()
    x = features.float() - mean  # distances lose fewer digits
    squares = x.square().sum(1)  # (n,)
    generator = torch.Generator().manual_seed(seed)
    current = _plusplus(x, squares, k, runs, generator) if centres is None else centres.float() - mean
    limit = TOLERANCE * x.var(0, unbiased=False).mean().item()
    labels = torch.zeros(len(current), n, dtype=torch.int64)
    active = torch.arange(len(current))
    for _ in range(ITERATIONS):
        found, distance = _assign(x, squares, current[active])
        moved = _means(x, found, k, distance)
        shift = (moved - current[active]).square().sum((1, 2))
        same = (found == labels[active]).all(1)
        labels[active], current[active] = found, moved
        active = active[~same & (shift > limit)]
        if not len(active):
            break
    labels, distance = _assign(x, squares, current)
    return Clusters(labels, distance.double().sum(1), current + mean)


def _plusplus(x: Tensor, squares: Tensor, k: int, runs: int, generator: torch.Generator) -> Tensor:
    """Greedy k-means++ of all runs at once: of a few candidates drawn by squared distance the best one is taken."""
    n = len(x)
    trials = 2 + int(math.log(k))
    chosen = torch.randint(n, (runs, 1), generator=generator)  # (R, 1)
    nearest = _distances(x, squares, chosen).squeeze(1)  # (R, n): to the nearest centre so far
    centres = [chosen[:, 0]]
    for _ in range(1, k):
        weights = nearest + torch.finfo(nearest.dtype).tiny  # all points may coincide with centres
        draws = torch.rand(runs, trials, generator=generator, dtype=torch.float64)
        cumulated = weights.double().cumsum(1)
        candidates = torch.searchsorted(cumulated, draws * cumulated[:, -1:]).clamp_max(n - 1)  # (R, trials)
        distance = torch.minimum(_distances(x, squares, candidates), nearest.unsqueeze(1))  # (R, trials, n)
        best = distance.sum(2).argmin(1)
        nearest = distance[torch.arange(runs), best]
        centres.append(candidates[torch.arange(runs), best])
    return x[torch.stack(centres, dim=1)]


def _distances(x: Tensor, squares: Tensor, candidates: Tensor) -> Tensor:
    """Squared distances of all points to candidates (R, c), which are points: (R, c, n)."""
    flat = candidates.flatten()
    out = squares[flat, None] - 2 * (x[flat] @ x.T)
    found: Tensor = (out + squares).clamp_min_(0).unflatten(0, candidates.shape)
    return found


def _assign(x: Tensor, squares: Tensor, centres: Tensor) -> tuple[Tensor, Tensor]:
    """The nearest centre of each point in each run, and the squared distance: (R, n) each. centres: (R, k, D)."""
    runs, k, width = centres.shape
    flat = centres.reshape(-1, width)
    half = flat.square().sum(1) / 2
    labels, scores = [], []
    for start in range(0, len(x), ROWS):
        score = torch.addmm(-half, x[start : start + ROWS], flat.T)  # (m, R k): half the distance, up to |x|^2
        best, label = score.unflatten(1, (runs, k)).max(2)
        scores.append(best)
        labels.append(label)
    distance = squares - 2 * torch.cat(scores).T
    return torch.cat(labels).T.contiguous(), distance.clamp_min_(0)


def _means(x: Tensor, labels: Tensor, k: int, distance: Tensor) -> Tensor:
    """The mean of each cluster: (R, k, D). A cluster that became empty moves to the point farthest from its centre."""
    means = []
    for run, label in enumerate(labels):
        counts = torch.bincount(label, minlength=k)
        sums = torch.zeros(k, x.shape[1]).index_add_(0, label, x)
        empty = (counts == 0).nonzero().flatten()
        if len(empty):
            farthest = distance[run].topk(len(empty)).indices
            sums[empty] = x[farthest]
            sums.index_add_(0, label[farthest], x[farthest], alpha=-1)
            counts = counts.index_add(0, label[farthest], torch.full_like(farthest, -1))
            counts[empty] = 1
        means.append(sums / counts.clamp_min(1).unsqueeze(1))
    return torch.stack(means)
