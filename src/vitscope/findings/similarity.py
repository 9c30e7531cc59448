"""Reading CKA: of last layers between models, and of a model's own layers."""

from __future__ import annotations

import numpy as np

from vitscope.findings.measured import Measured
from vitscope.findings.tables import PAPER, Model, Study, models_of

Pair = tuple[Model, Model, Measured]
MATRIX = "cka.depth.all"  # of all tokens, after norm1 and norm2 of every block


def last_layer_pairs(study: Study, tokens: str) -> list[Pair]:
    """CKA of last layers, every pair of models once. tokens: cls, spatial or all."""
    frame = study.rows("cka", tokens)
    models = {model.title: model for model in models_of(study.results.table)}
    pairs = []
    for row in frame.iter_rows(named=True):
        other = models.get(row["other_model"])
        if other is not None:
            pairs.append((models[row["model"]], other, Measured.of(row["value"], row["ci_low"], row["ci_high"])))
    return pairs


def self_similarity(study: Study) -> dict[Model, np.ndarray]:
    """CKA of every site of a model with every other, (S, S) in order of depth; constant sites are left out."""
    found = {}
    for model in models_of(study.results.table):
        matrix = study.results.maps.get(f"{model.title}/{MATRIX}" + (".paper" if study.protocol == PAPER else ""))
        if matrix is not None:
            array = matrix.double().numpy()
            varies = np.isfinite(np.diagonal(array))
            found[model] = array[varies][:, varies]
    return found
