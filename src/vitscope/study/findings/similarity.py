"""Reading CKA: of last layers between models, and of a model's own layers."""

from __future__ import annotations

import numpy as np
import polars as pl

from vitscope.study.findings.measured import Measured
from vitscope.study.findings.tables import CORRECTED, Model, Study, models_of

Pair = tuple[Model, Model, Measured]
MATRIX = "cka.depth.all"  # of all tokens, after norm1 and norm2 of every block
ROWS_BESIDE = ("cka", "purity", "skip_over_branch")  # rows of the same pass, which tell the protocol of a matrix


def last_layer_pairs(study: Study, tokens: str) -> list[Pair]:
    """CKA of last layers, every pair of models once. tokens: cls, spatial or all.

    A pair is stored as a row of one model whose variant is "TOKENS with OTHER".
    """
    start = f"{tokens} with "
    frame = study.rows("cka").filter(pl.col("variant").str.starts_with(start))
    models = {model.title: model for model in models_of(study.results.table)}
    pairs = []
    for row in frame.iter_rows(named=True):
        other = models.get(row["variant"].removeprefix(start))
        if other is not None:
            pairs.append((models[row["model"]], other, Measured.of(row["value"], row["ci_low"], row["ci_high"])))
    return pairs


def self_similarity(study: Study) -> dict[Model, np.ndarray]:
    """CKA of every site of a model with every other, (S, S) in order of depth; constant sites are left out."""
    found = {}
    for model in models_of(study.results.table):
        matrix = study.results.maps.get(f"{model.title}/{MATRIX}")
        if matrix is not None and _is_of(study, model):
            array = matrix.double().numpy()
            varies = np.isfinite(np.diagonal(array))
            found[model] = array[varies][:, varies]
    return found


def _is_of(study: Study, model: Model) -> bool:
    """Whether this protocol made the matrix. If both were run, it counts as `corrected`: maps do not say."""
    mine = (pl.col("model") == model.title) & pl.col("measure").is_in(ROWS_BESIDE)
    protocols = set(study.results.table.filter(mine)["protocol"].unique())
    return protocols <= {study.protocol} or (study.protocol == CORRECTED and CORRECTED in protocols)
