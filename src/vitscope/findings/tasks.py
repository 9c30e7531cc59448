"""Reading task scores: one curve over layers for each model, task and dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from vitscope.findings.measured import Measured
from vitscope.findings.tables import CORRECTED, Model, Study, curve, measured_throughout
from vitscope.pipeline.best_layers import Task, rows_of_task, tasks

GLOBAL, LOCAL = ("knn", "retrieval"), ("video", "keypoints")  # the paper's; a linear probe is not among them


@dataclass(frozen=True)
class Scores:
    """The scores of all models on one task and dataset: model -> layer (1-based) -> score.

    bank: labelled images that vote in k-NN, where it is known; few make a task hard that many make easy.
    """

    task: Task
    dataset: str
    curves: dict[Model, dict[int, Measured]]
    bank: int | None = None

    @property
    def title(self) -> str:
        size = "" if self.bank is None else f", {self.bank:,} labelled images"
        return f"{self.task.title} ({self.dataset}{size})"

    @property
    def taught(self) -> list[Model]:
        return [model for model in self.curves if model.taught]

    def best_layer(self, model: Model) -> int:
        """The first of the best."""
        mine = self.curves[model]
        return max(mine, key=lambda layer: (mine[layer].value, -layer))

    def best(self, model: Model) -> Measured:
        return self.curves[model][self.best_layer(model)]

    def winner(self, models: Sequence[Model]) -> Model:
        return max(models, key=lambda model: self.best(model).value)

    def of_kind(self, kind: str) -> list[Model]:
        return [model for model in self.curves if model.kind == kind]

    def show(self, score: Measured) -> str:
        return self.task.show(score.value) + (" %" if self.task.percent else "")


def task_rows(study: Study, keys: Sequence[str]) -> tuple[pl.DataFrame, str]:
    """Rows of the first of these tasks that was done, and its title."""
    for task in (task for key in keys for task in tasks() if task.key == key):
        frame = _usual_variant(study.rows(task.measure), task)
        if not frame.is_empty():
            return frame, task.title
    return study.results.table.clear(), ""


def all_scores(study: Study, keys: Sequence[str]) -> list[Scores]:
    """Scores on every dataset of these tasks. `paper` falls back on `corrected` for tasks it does not change."""
    found = []
    for task in (task for task in tasks() if task.key in keys):
        table = study.results.table.filter((pl.col("measure") == task.measure) & pl.col("value").is_finite())
        own = table.filter(pl.col("protocol") == study.protocol)
        table = table.filter(pl.col("protocol") == CORRECTED) if own.is_empty() else own
        for dataset in table["dataset"].unique(maintain_order=True):
            frame = _usual_variant(table.filter(pl.col("dataset") == dataset), task)
            curves = {model: curve(frame, model) for model in measured_throughout(frame)}
            found.append(Scores(task, dataset, curves, _bank(study, dataset) if task.key == "knn" else None))
    return [scores for scores in found if scores.curves]


def _bank(study: Study, dataset: str) -> int | None:
    """How many labelled images every model was given; None if that is not known, or differs."""
    sizes = study.results.table.filter((pl.col("measure") == "knn_bank") & (pl.col("dataset") == dataset))["value"]
    return int(sizes[0]) if sizes.n_unique() == 1 else None


def _usual_variant(frame: pl.DataFrame, task: Task) -> pl.DataFrame:
    """The variant that the table of best layers shows for each model."""
    chosen = [
        rows_of_task(frame.filter(pl.col("model") == title), task)
        for title in frame["model"].unique(maintain_order=True)
    ]
    return pl.concat(chosen) if chosen else frame
