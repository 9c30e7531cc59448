"""The table without a single winner: the best layer of every model for every task, and its score.

In the paper's form, with the paper's own values beside it where model and dataset are the paper's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from vitscope.core.analysis import Headline
from vitscope.pipeline.registry import ANALYSES
from vitscope.tasks.knn import HEADLINE_K

PAPER = Path(__file__).with_name("paper_table.json")


@dataclass(frozen=True)
class Task:
    """An analysis with a headline: what of it stands in the table."""

    key: str
    title: str
    kind: str  # of its datasets
    headline: Headline

    @property
    def measure(self) -> str:
        return self.headline.measure

    @property
    def percent(self) -> bool:
        return self.headline.percent

    def show(self, value: float) -> str:
        """The paper gives accuracies in percent, and the rest as shares."""
        return f"{100 * value:.2f}" if self.percent else f"{value:.2f}"


def tasks() -> list[Task]:
    """Every registered analysis that has a headline."""
    return [Task(a.name, a.title, a.kind, a.headline) for a in ANALYSES.values() if a.headline is not None]


@dataclass(frozen=True)
class Column:
    """One task on one dataset under one protocol."""

    task: Task
    dataset: str
    protocol: str
    score: str  # such as "mAP (medium)"


@dataclass(frozen=True)
class Cell:
    """A model's best layer (1-based) and its score there; and the paper's."""

    value: float
    layer: int
    low: float  # NaN where there is no interval
    high: float
    n: int
    best: bool  # no model scores higher
    paper: tuple[float, int | None] | None
    tied: bool = False  # the advice cannot tell it from the best (`advice.py`)


@dataclass(frozen=True)
class BestLayers:
    """models: (title, teaching); cells by (title, position of the column)."""

    models: tuple[tuple[str, str], ...]
    columns: tuple[Column, ...]
    cells: dict[tuple[str, int], Cell]

    def row(self, model: str) -> Iterator[tuple[Column, Cell | None]]:
        for position, column in enumerate(self.columns):
            yield column, self.cells.get((model, position))

    def frame(self) -> pl.DataFrame:
        """One row per cell, as numbers."""
        rows = [
            {
                "model": model,
                "teaching": teaching,
                "task": column.task.key,
                "dataset": column.dataset,
                "protocol": column.protocol,
                "score": column.score,
                "best_layer": cell.layer,
                "unit": "fraction",  # also of scores that tables for people show in per cent
                "value": cell.value,
                "ci_low": cell.low,
                "ci_high": cell.high,
                "n": cell.n,
                "best": cell.best,
                "tied_with_best": cell.tied,
                "paper_value": cell.paper[0] if cell.paper else None,
                "paper_layer": cell.paper[1] if cell.paper else None,
            }
            for model, teaching in self.models
            for column, cell in self.row(model)
            if cell
        ]
        return pl.DataFrame(rows, infer_schema_length=None)


def best_layers(results: pl.DataFrame) -> BestLayers:
    """Read the table off tidy results (`vitscope.core.results.SCHEMA`)."""
    columns: list[Column] = []
    cells: dict[tuple[str, int], Cell] = {}
    for task in tasks():
        rows = results.filter(pl.col("measure") == task.measure)
        for dataset, protocol in rows.select("dataset", "protocol").unique(maintain_order=True).rows():
            here = rows.filter((pl.col("dataset") == dataset) & (pl.col("protocol") == protocol))
            found = {model: _best(here.filter(pl.col("model") == model), task) for model in here["model"].unique()}
            score = task.headline.score + _setup(found)
            for model, cell in _compared({model: row for model, row in found.items() if row}, task, dataset).items():
                cells[model, len(columns)] = cell
            columns.append(Column(task, dataset, protocol, score))
    measures = [task.measure for task in tasks()]
    shown = results.filter(pl.col("measure").is_in(measures))
    models = shown.select("model", "teaching").unique(maintain_order=True).rows()
    return BestLayers(tuple(models), tuple(columns), cells)


def rows_of_task(mine: pl.DataFrame, task: Task) -> pl.DataFrame:
    """A model's rows of a task, layer by layer, in the first variant that it has; empty if it has none."""
    mine = mine.filter((pl.col("measure") == task.measure) & pl.col("value").is_not_nan())
    for wanted in task.headline.variants:
        stem, star = wanted.removesuffix("*"), wanted.endswith("*")
        chosen = mine.filter(pl.col("variant").str.starts_with(stem) if star else pl.col("variant") == wanted)
        if not chosen.is_empty():
            if star:  # the most neighbours that there could be
                last = max(chosen["variant"].unique(), key=lambda variant: int(variant.removeprefix(stem)))
                chosen = chosen.filter(pl.col("variant") == last)
            return chosen.sort("layer")
    return mine.clear()


def _best(mine: pl.DataFrame, task: Task) -> dict[str, Any] | None:
    """The row of a model's best layer, the first of equals."""
    rows = rows_of_task(mine, task)
    return None if rows.is_empty() else rows.sort("value", "layer", descending=[True, False]).row(0, named=True)


def _setup(found: dict[str, dict[str, Any] | None]) -> str:
    """What the score was taken of, where that is not the usual: the difficulty of retrieval, or another k."""
    words = {str(row["variant"]).split(" ", 1)[-1] for row in found.values() if row} - {
        "",
        "cls",
        "mean",
        "all",
        f"k={HEADLINE_K}",
    }
    return f" ({', '.join(sorted(words))})" if words else ""


def _compared(found: dict[str, dict[str, Any]], task: Task, dataset: str) -> dict[str, Cell]:
    if not found:
        return {}
    winner = max(found.values(), key=lambda row: row["value"])
    return {
        model: Cell(
            value=row["value"],
            layer=row["layer"],
            low=row["ci_low"],
            high=row["ci_high"],
            n=row["n"],
            best=row["value"] == winner["value"],
            paper=published(model, task.key, dataset),
        )
        for model, row in found.items()
    }


def published(model: str, task: str, dataset: str) -> tuple[float, int | None] | None:
    """The paper's score and best layer, if this model and this dataset are in its table."""
    table = _paper()
    row = table["models"].get(model)
    if row is None or table["datasets"].get(task) != dataset:
        return None
    value, layer = row[task]
    return value, layer


@cache
def _paper() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(PAPER.read_text())
    return found
