"""Tables of results written by hand: what a study of these models would have handed over."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import torch

from vitscope.core.results import Label, Results, tidy
from vitscope.findings import CLAIMS, evaluate_findings
from vitscope.findings.outcome import Finding

SIX = {"FS": "fs", "CLIP": "clip", "DINO": "dino", "MoCo": "moco", "MAE": "mae", "BEiT": "beit"}
KIND = {"fs": "explicit", "clip": "explicit", "dino": "contrastive", "moco": "contrastive",
        "mae": "reconstruction", "beit": "reconstruction", "none": "none", "other": "other"}  # fmt: skip


class Constructed:
    """Collects rows; every number gets the interval `value +- reach` unless reach is None."""

    def __init__(self, reach: float | None = 0.01) -> None:
        self.results = Results()
        self.reach = reach

    def add(
        self,
        model: str,
        teaching: str,
        measure: str,
        values: Sequence[float] | Sequence[Sequence[float]] | torch.Tensor,
        *,
        variant: str = "",
        protocol: str = "corrected",
        dataset: str = "pictures",
        n: int = 100,
        other: str | None = None,
    ) -> Constructed:
        """values: one per layer, or one per layer and head. other: the model that they relate this one to."""
        value = torch.as_tensor(values, dtype=torch.float64)
        bounds = {} if self.reach is None else {"low": value - self.reach, "high": value + self.reach}
        rows = tidy(
            Label(model, teaching, dataset, "made"),
            measure,
            value,
            axes=("layer", "head")[: value.ndim],
            n=n,
            variant=variant,
            protocol=protocol,
            **bounds,
        )
        if other is not None:
            rows = rows.with_columns(other_model=pl.lit(other), other_layer=pl.col("layer"))
        self.results.extend([rows])
        return self

    def finding(self, key: str) -> Finding:
        return finding(self.results, key)


def finding(results: Results, key: str) -> Finding:
    return next(found for found in evaluate_findings(results, [claim for claim in CLAIMS if claim.key == key]))


def line(first: float, last: float, count: int = 12) -> list[float]:
    """Values on a straight line, one per layer."""
    return [first + (last - first) * i / (count - 1) for i in range(count)]


def peak_at(layer: int, height: float, foot: float, count: int = 12) -> list[float]:
    """A tent over the layers: `height` at `layer` (1-based), down to `foot` at the end farther away."""
    reach = max(layer - 1, count - layer)
    return [height - (height - foot) * abs(i + 1 - layer) / reach for i in range(count)]
