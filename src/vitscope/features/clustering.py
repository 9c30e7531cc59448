"""How well clusters of features match classes: purity, NMI and ARI of k-means, layer by layer.

`corrected`: features are scaled to length 1 (raw, a few outlier channels would decide), and several seeds, each the
best of ten initialisations, give a mean and a spread. `paper`: raw features, one seed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch
from torch import Tensor
from torch.nn import functional as F

from vitscope.core.results import NOBODY, tidy
from vitscope.features.kmeans import kmeans

if TYPE_CHECKING:
    from vitscope.models.shape import ModelShape

INITIALISATIONS = 10
SEEDS = 5
PERMUTATIONS = 20  # of the labels, for the purity that chance gives
SCORES = ("purity", "nmi", "ari")
MOST_CLUSTERED = 50_000  # images: the first of a seeded order; more cost gigabytes and change no digit that counts
LONELY = "there no cluster can be right"


ROUNDS = 25  # of k-means until nothing moves, about


def clustering_operations(points: int, k: int, shape: ModelShape, protocol: str, seeds: int) -> float:
    """Multiply-adds of `cluster_layers`, about."""
    runs = INITIALISATIONS * (seeds if protocol == "corrected" else 1)
    return float(points) * k * shape.width * shape.depth * runs * ROUNDS


def contingency(labels: Tensor, clusters: Tensor) -> Tensor:
    """How many points of each class are in each cluster: (n,), (n,) int64 -> (clusters, classes) int64."""
    _, label = labels.unique(return_inverse=True)
    _, cluster = clusters.unique(return_inverse=True)
    classes = int(label.max()) + 1
    counts = torch.bincount(cluster * classes + label, minlength=(int(cluster.max()) + 1) * classes)
    return counts.reshape(-1, classes)


def purity(labels: Tensor, clusters: Tensor) -> float:
    """Share of points that belong to their cluster's most frequent class.

    >>> purity(torch.tensor([0, 0, 1, 1, 1]), torch.tensor([5, 5, 5, 7, 7]))
    0.8
    """
    return contingency(labels, clusters).amax(1).sum().item() / len(labels)


@dataclass(frozen=True)
class Clustering:
    """Scores of every layer and seed, and what chance gives.

    purity, nmi, ari: (L, seeds) float64; chance: (L,), mean purity when labels are shuffled: it grows with the number
    of clusters and is far from zero for few points. assigned: (L, n), the clusters of the first seed.
    """

    purity: Tensor
    nmi: Tensor
    ari: Tensor
    chance: Tensor
    assigned: Tensor
    k: int


def cluster_layers(
    layers: Iterable[Tensor], labels: Tensor, *, k: int | None = None, protocol: str = "corrected", seeds: int = SEEDS
) -> Clustering:
    """Cluster the features of every layer. layers: (n, D) each; labels: (n,); k: number of classes if not given."""
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score  # slow: not for workers

    if protocol not in ("corrected", "paper"):
        raise ValueError(f"clustering has the protocols corrected and paper, not {protocol}")

    k = k or len(labels.unique())
    seeds = seeds if protocol == "corrected" else 1
    truth = labels.numpy()
    scores: dict[str, list[list[float]]] = {name: [] for name in SCORES}
    chance, assigned = [], []
    for features in layers:
        points = F.normalize(features.float(), dim=1) if protocol == "corrected" else features.float()
        chosen = [best_of(points, k, seed) for seed in range(seeds)]  # (n,) each
        scores["purity"].append([purity(labels, found) for found in chosen])
        scores["nmi"].append([normalized_mutual_info_score(truth, found.numpy()) for found in chosen])
        scores["ari"].append([adjusted_rand_score(truth, found.numpy()) for found in chosen])
        chance.append(chance_purity(labels, chosen[0]))
        assigned.append(chosen[0])
    tensors = {name: torch.tensor(values, dtype=torch.float64) for name, values in scores.items()}
    return Clustering(**tensors, chance=torch.tensor(chance).double(), assigned=torch.stack(assigned), k=k)


def best_of(points: Tensor, k: int, seed: int) -> Tensor:
    """Clusters (n,) of the best of ten initialisations."""
    runs = kmeans(points, k, runs=INITIALISATIONS, seed=seed)
    return runs.labels[runs.inertia.argmin()]


def chance_purity(labels: Tensor, clusters: Tensor, seed: int = 0) -> float:
    """Mean purity of these clusters when labels are shuffled."""
    generator = np.random.default_rng(seed)
    shuffled = (torch.from_numpy(generator.permutation(labels.numpy())) for _ in range(PERMUTATIONS))
    return float(np.mean([purity(some, clusters) for some in shuffled]))


def clustering_refusal(labels: Tensor) -> str:
    """Why clusters of these labels would mean nothing; empty if they mean something."""
    classes = len(labels.unique())
    if classes < 2:
        return "there is only one class"
    if len(labels) < 2 * classes:
        return (
            f"{len(labels)} for {classes} classes are fewer than two per class, and almost any clusters would be pure"
        )
    return ""


def single_members(labels: Tensor) -> int:
    return int((labels.unique(return_counts=True)[1] == 1).sum())


def cluster_tables(found: Clustering, variant: str, n: int, protocol: str) -> list[pl.DataFrame]:
    """Mean over seeds; the interval is from the lowest to the highest seed."""
    tables = []
    for name in SCORES:
        scores: Tensor = getattr(found, name)  # (L, seeds)
        options: dict[str, Any] = {"low": scores.amin(1), "high": scores.amax(1), "variant": variant}
        tables.append(tidy(NOBODY, name, scores.mean(1), axes=("layer",), n=n, protocol=protocol, **options))
    chance = tidy(NOBODY, "purity_chance", found.chance, axes=("layer",), n=n, variant=variant, protocol=protocol)
    return [*tables, chance]
