"""The similarities between two models' features of the same images, by name, with what they must not depend on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from vitscope.features.cka import exact_cka
from vitscope.features.neighbours import NEIGHBOURS, mutual_neighbours
from vitscope.features.procrustes import procrustes
from vitscope.features.rsa import rsa

PERMUTATIONS = 3  # a mean over all images hardly differs between permutations


@dataclass(frozen=True)
class Similarity:
    """A number for two sets of features (n, D1), (n, D2) of the same n images; 1 for a set with itself.

    invariances: "orthogonal" (rotating or reflecting the features of one side), "scaling" (multiplying them by a
    positive number), "translation" (adding a vector), "permutation" (reordering the images of both sides). Tests
    hold every similarity to what it declares.
    """

    name: str
    title: str
    function: Callable[[Tensor, Tensor], float]
    invariances: frozenset[str]
    least: int  # images


def cka_similarity(x: Tensor, y: Tensor) -> float:
    """Debiased linear CKA of the full Grams."""
    return exact_cka([x, y])[0, 1].item()


_ALWAYS = frozenset({"orthogonal", "scaling", "permutation"})
SIMILARITIES = {
    similarity.name: similarity
    for similarity in (
        Similarity("cka", "CKA (exact)", cka_similarity, _ALWAYS | {"translation"}, least=4),
        Similarity("procrustes", "Procrustes", procrustes, _ALWAYS | {"translation"}, least=3),
        Similarity("rsa", "RSA (Spearman)", rsa, _ALWAYS | {"translation"}, least=4),
        Similarity("neighbours", f"Mutual {NEIGHBOURS}-NN", mutual_neighbours, _ALWAYS, least=NEIGHBOURS + 1),
    )
}


def null_mean(similarity: Similarity, x: Tensor, y: Tensor, *, seed: int = 0) -> float:
    """The mean score when the images of one side are permuted: what unrelated features of this kind get."""
    generator = torch.Generator().manual_seed(seed)
    scores = [similarity.function(x, y[torch.randperm(len(y), generator=generator)]) for _ in range(PERMUTATIONS)]
    return sum(scores) / len(scores)
