"""How alike models are at their last layers, and layers at every depth."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from torch import Tensor

from vitscope.core.results import Results
from vitscope.report.page.charts import TOKENS
from vitscope.report.page.models import PageModel
from vitscope.report.page.words import rounded

MEASURES = {
    "cka": "CKA",
    "similarity_cka": "CKA (exact, pooled tokens)",
    "similarity_procrustes": "Procrustes",
    "similarity_rsa": "RSA",
    "similarity_neighbours": "mutual neighbours",
    "calibrated_cka": "CKA, calibrated (0 is chance)",
    "calibrated_neighbours": "neighbours, calibrated (0 is chance)",
}
NOTHING = 255  # the byte of a similarity that there is not; 0 to 254 are similarities from 0 to 1


def similarity_data(results: Results, models: Sequence[PageModel]) -> dict[str, Any] | None:
    """`last`: matrices of all pairs of models; `depth`: by tokens and pair, packed. None if there are neither."""
    last = last_layers(results.table, models)
    depth = {tokens: found for tokens in ("cls", "spatial", "all") if (found := _depth(results, models, tokens))}
    return {"last": last, "depth": depth, "tokens": TOKENS} if last or depth else None


def last_layers(table: pl.DataFrame, models: Sequence[PageModel]) -> list[dict[str, Any]]:
    """A matrix for every measure, kind of tokens, dataset and protocol."""
    position = {model.title: i for i, model in enumerate(models)}
    matrices = []
    for measure, title in MEASURES.items():
        rows = table.filter(pl.col("measure") == measure)
        nulls = table.filter(pl.col("measure") == f"{measure}_null")
        for tokens in ("cls", "spatial", "all"):
            mine = rows.filter(pl.col("variant") == tokens)
            for dataset, protocol in mine.select("dataset", "protocol").unique(maintain_order=True).rows():
                same = {"variant": tokens, "dataset": dataset, "protocol": protocol}
                chosen = mine.filter(**same)
                matrices.append(
                    {"measure": measure, "title": title, "tokens": tokens, "dataset": dataset, "protocol": protocol}
                    | {"n": max(chosen["n"].to_list(), default=0)}
                    | {name: _matrix(chosen, column, position) for name, column in _SIDES.items()}
                    | {"null": _matrix(nulls.filter(**same), "value", position)}
                )
    return matrices


_SIDES = {"value": "value", "low": "ci_low", "high": "ci_high"}


def _matrix(rows: pl.DataFrame, column: str, position: dict[str, int]) -> list[list[float | None]]:
    matrix: list[list[float | None]] = [[None] * len(position) for _ in position]
    for model, other, value in rows.select("model", "other_model", column).rows():
        if model in position and other in position:
            i, j = position[model], position[other]
            matrix[i][j] = matrix[j][i] = rounded(value, 4)
    return matrix


def _depth(results: Results, models: Sequence[PageModel], tokens: str) -> dict[str, Any]:
    """ "i/j" -> packed matrix, i <= j; rows are the sites of model i."""
    found = {}
    for i, a in enumerate(models):
        for j, b in enumerate(models[i:], start=i):
            matrix = _pair(results, a.title, b.title, tokens)
            if matrix is not None:
                found[f"{i}/{j}"] = _packed(matrix)
    return found


def _pair(results: Results, a: str, b: str, tokens: str) -> Tensor | None:
    if a == b:
        return results.maps.get(f"{a}/cka.depth.{tokens}")
    there = results.maps.get(f"{a}/cka.depth.{tokens}.{b}")
    back = results.maps.get(f"{b}/cka.depth.{tokens}.{a}")
    return there if there is not None else None if back is None else back.T


def _packed(matrix: Tensor) -> dict[str, Any]:
    values = matrix.double().numpy()
    bytes_ = np.where(np.isnan(values), NOTHING, np.rint(254 * np.nan_to_num(values).clip(0, 1))).astype(np.uint8)
    return {"size": values.shape, "data": base64.b64encode(bytes_.tobytes()).decode()}
