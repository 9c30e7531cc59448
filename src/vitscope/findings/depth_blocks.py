"""F11: how similar a model's layers are to each other: two stages, or an X.

A boundary between stages counts between a sixth and five sixths of the depth only: a first block that is unlike all
others is no stage.

Seen on real networks (64 photos): CKA of supervised B/16 and of DINOv2 S/14 declines steadily with distance in depth.
The best two stages (boundaries at site 7 and 15 of 24, contrast 0.26 and 0.30) leave four to six times the squared
error of a straight line, so neither has two stages here; no early layer resembles late ones (-0.26, -0.35).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from vitscope.findings.claim import Claim, Part, followed, missing
from vitscope.findings.measured import Measured
from vitscope.findings.outcome import Evidence
from vitscope.findings.similarity import self_similarity
from vitscope.findings.tables import KINDS, Model, Study, no_model_of, of_kind
from vitscope.findings.thresholds import THRESHOLDS, Thresholds


@dataclass(frozen=True)
class Shape:
    """What a matrix of self-similarity looks like.

    split: sites in the first of the best two stages; contrast: mean CKA within stages minus between them; staged: these
    stages divide the depth well inside, and fit the matrix better than a steady decline with distance does; cross:
    mean CKA of the first quarter of the sites with the last, minus with the middle half.
    """

    split: int
    contrast: float
    staged: bool
    cross: float


def shape_of(matrix: np.ndarray, edge: float = THRESHOLDS.stage_edge) -> Shape:
    """Describe the CKA of all sites of one model with each other, (S, S), S >= 4.

    edge: share of the depth at either end where the boundary between two stages does not count.

    Two models of the entries off the diagonal are fitted by least squares, with two parameters each: one level
    within and one between two stages (the best split), and a straight line over the distance in depth.
    """
    sites = len(matrix)
    i, j = np.triu_indices(sites, k=1)
    values = matrix[i, j]
    fits = []
    for split in range(2, sites - 1):  # a stage of one site has no inside
        inside = (i < split) == (j < split)
        contrast = values[inside].mean() - values[~inside].mean()
        fits.append((_residual(values, inside.astype(float)), split, contrast))
    error, split, contrast = min(fits)
    quarter = max(sites // 4, 1)
    early_late = matrix[:quarter, -quarter:].mean()
    early_middle = matrix[:quarter, quarter:-quarter].mean()
    staged = error < _residual(values, (j - i).astype(float)) and edge <= split / sites <= 1 - edge
    return Shape(split, float(contrast), bool(staged), float(early_late - early_middle))


def _residual(values: np.ndarray, by: np.ndarray) -> float:
    """Sum of squares that a straight line over `by` leaves."""
    design = np.stack([np.ones_like(by), by], axis=1)
    solution, *_ = np.linalg.lstsq(design, values, rcond=None)
    return float(((values - design @ solution) ** 2).sum())


def _parts(study: Study, t: Thresholds) -> Iterator[Part]:
    matrices = self_similarity(study)
    shapes = {
        model: shape_of(matrix, t.stage_edge)
        for model, matrix in matrices.items()
        if model.depth >= t.least_depth <= len(matrix)
    }
    if not shapes:
        yield missing(f"no CKA between layers of a model with {t.least_depth} or more layers")
        return
    staged_kinds = [kind for kind in ("explicit", "contrastive") if of_kind(shapes, kind)]
    if not staged_kinds:
        yield missing("no model taught by explicit supervision or contrastive self-supervision")
    for kind in staged_kinds:
        yield _stages({model: shapes[model] for model in of_kind(shapes, kind)}, kind, t)
    crossed = of_kind(shapes, "reconstruction")
    if crossed:
        yield _cross({model: shapes[model] for model in crossed}, t)
    else:
        yield missing(no_model_of("reconstruction"))


def _stages(shapes: dict[Model, Shape], kind: str, t: Thresholds) -> Part:
    behaved = [
        (model, shape.staged and shape.contrast >= t.block_contrast and shape.cross < t.cross_margin)
        for model, shape in shapes.items()
    ]
    holds = followed(behaved, t.follow)
    told = ", ".join(f"{model.title} {shape.contrast:.2f} at site {shape.split}" for model, shape in shapes.items())
    word = "have" if holds else "do not all have"
    says = f"models of {KINDS[kind]} {word} two stages (CKA within minus between them: {told})"
    return Part(holds, says, tuple(_evidence(shapes)))


def _cross(shapes: dict[Model, Shape], t: Thresholds) -> Part:
    behaved = [(model, shape.cross >= t.cross_margin) for model, shape in shapes.items()]
    holds = followed(behaved, t.follow)
    told = ", ".join(f"{model.title} {shape.cross:+.2f}" for model, shape in shapes.items())
    word = "resemble" if holds else "do not all resemble"
    says = f"early layers of reconstruction models {word} late ones more than middle ones ({told} CKA)"
    return Part(holds, says, tuple(_evidence(shapes)))


def _evidence(shapes: dict[Model, Shape]) -> Iterator[Evidence]:
    for model, shape in shapes.items():
        yield Measured.of(shape.contrast).as_evidence(f"{model.title}: CKA within two stages minus between them")
        yield Measured.of(shape.cross).as_evidence(
            f"{model.title}: CKA of early with late minus early with middle layers"
        )


def _rule(t: Thresholds) -> str:
    return (
        "Two stages (explicit, contrastive): the best division of the layers in two lies between a sixth and five "
        "sixths of the depth and fits a model's own CKA matrix better than a steady decline with distance, CKA within "
        f"the stages exceeds that between them by {t.block_contrast}, and there is no X. An X (reconstruction): CKA of "
        "the first quarter of the layers with the last exceeds that with the middle half by "
        f"{t.cross_margin}."
    )


F11 = Claim(
    key="F11",
    text="Self-similarity over depth has two stages for explicit and contrastive models, and an X (early layers "
    "resemble late ones) for reconstruction models.",
    rule=_rule,
    figure="cka_depth",
    measures=("cka", "purity", "skip_over_branch"),  # rows of the same pass
    parts=_parts,
)
