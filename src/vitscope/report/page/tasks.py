"""Which model and layer for what: the table of best layers, its image, and one sentence for each task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from vitscope.pipeline.best_layers import Cell, Column, best_layers, rows_of_task
from vitscope.report.page.models import PageModel
from vitscope.report.page.words import listing, rounded
from vitscope.report.table_formats import interval, of_paper


@dataclass(frozen=True)
class TableCell:
    """A cell of the table as text."""

    score: str
    layer: int
    interval: str
    paper: str
    best: bool
    near: bool


@dataclass(frozen=True)
class TaskColumn:
    """One task on one dataset under one protocol: for the table, the overview and the charts."""

    title: str
    dataset: str
    score: str
    protocol: str
    role: str
    measure: str
    sentence: str
    cells: tuple[TableCell | None, ...]  # one per model of the page


def task_columns(table: pl.DataFrame, models: Sequence[PageModel]) -> tuple[list[TaskColumn], list[dict[str, Any]]]:
    """What the text says, and what the scripts draw; one entry of each per column of the table of best layers."""
    best = best_layers(table)
    columns, drawn = [], []
    for position, column in enumerate(best.columns):
        cells = [best.cells.get((model.title, position)) for model in models]
        columns.append(
            TaskColumn(
                title=column.task.title,
                dataset=column.dataset,
                score=column.score,
                protocol=column.protocol,
                role=column.task.kind,
                measure=column.task.measure,
                sentence=sentence(column, cells, models),
                cells=tuple(_text(column, cell) if cell else None for cell in cells),
            )
        )
        drawn.append(_drawn(table, column, cells, models))
    return columns, drawn


def sentence(column: Column, cells: Sequence[Cell | None], models: Sequence[PageModel]) -> str:
    """Which model and layer to take, and who is as good as far as anyone can tell."""
    found = [(model, cell) for model, cell in zip(models, cells, strict=True) if cell]
    if not found:
        return "No model could be scored."
    model, winner = next((model, cell) for model, cell in found if cell.best)
    unit = "\u00a0%" if column.task.percent else ""
    where = "its last layer" if winner.layer == model.depth else f"layer {winner.layer} of {model.depth}"
    text = f"Take {model.title} at {where}: {column.task.show(winner.value)}{unit}"
    text += f" ({interval(column, winner)})." if not math.isnan(winner.low) else "."
    equals = [other.title for other, cell in found if cell.near and other is not model]
    if equals:
        text += f" {listing(equals)} {'is' if len(equals) == 1 else 'are'} within its interval."
    return text


def headline(columns: Sequence[TaskColumn], models: Sequence[PageModel]) -> str:
    """The whole table in one sentence."""
    shown = [column for column in columns if column.protocol == "corrected"] or list(columns)
    winners: dict[str, list[str]] = {}
    several = {column.title for column in shown if sum(other.title == column.title for other in shown) > 1}
    for column in shown:
        first = next((model for model, cell in zip(models, column.cells, strict=True) if cell and cell.best), None)
        if first:
            task = f"{column.title} ({column.dataset})" if column.title in several else column.title
            winners.setdefault(first.title, []).append(task)
    if not winners or len(models) < 2:
        return ""
    if len(winners) == 1:
        return f"{next(iter(winners))} wins {'every task' if len(shown) > 1 else 'the one task'} of this study."
    parts = [f"{model} for {listing(tasks)}" for model, tasks in winners.items()]
    return f"No single model wins everywhere: {'; '.join(parts)}."


def _text(column: Column, cell: Cell) -> TableCell:
    return TableCell(
        score=column.task.show(cell.value),
        layer=cell.layer,
        interval="" if math.isnan(cell.low) else interval(column, cell),
        paper=of_paper(column, cell),
        best=cell.best,
        near=cell.near,
    )


def _drawn(
    table: pl.DataFrame, column: Column, cells: Sequence[Cell | None], models: Sequence[PageModel]
) -> dict[str, Any]:
    here = table.filter((pl.col("dataset") == column.dataset) & (pl.col("protocol") == column.protocol))
    scale = 100.0 if column.task.percent else 1.0
    series = []
    for position, (model, cell) in enumerate(zip(models, cells, strict=True)):
        rows = rows_of_task(here.filter(pl.col("model") == model.title), column.task)
        if cell and not rows.is_empty():
            series.append(
                {"model": position, "n": cell.n, "best": cell.best, "near": cell.near, "ring": cell.layer}
                | {"layer": rows["layer"].to_list()}
                | {name: _scaled(rows[source], scale) for name, source in _COLUMNS.items()}
            )
    return {
        "title": column.task.title,
        "dataset": column.dataset,
        "protocol": column.protocol,
        "axis": column.score,
        "measure": column.task.measure,
        "series": series,
    }


_COLUMNS = {"value": "value", "low": "ci_low", "high": "ci_high"}


def _scaled(values: pl.Series, scale: float) -> list[float | None]:
    return [rounded(None if value is None else scale * value) for value in values]
