"""Which model and layer for what: the table of best layers, its image, and one sentence for each task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from vitscope.core.results import Results
from vitscope.pipeline.advice import Advice, advise, listing
from vitscope.pipeline.best_layers import Cell, Column, rows_of_task
from vitscope.report.page.models import PageModel
from vitscope.report.page.words import rounded
from vitscope.report.table_formats import interval, of_paper
from vitscope.tasks.whole_images import PIXELS


@dataclass(frozen=True)
class TableCell:
    """A cell of the table as text."""

    score: str
    layer: int
    interval: str
    paper: str
    best: bool
    tied: bool


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
    remark: str
    kind: str  # of advice: take, tied, undecided, nothing, unknown
    named: tuple[str, ...]  # titles of the models that the advice is about
    chance: str  # in words, with its score; "" if it has none
    cells: tuple[TableCell | None, ...]  # one per model of the page
    ranked: tuple[int, ...]  # positions of the models that have a cell, the best first


def task_columns(results: Results, models: Sequence[PageModel]) -> tuple[list[TaskColumn], list[dict[str, Any]]]:
    """What the text says, and what the scripts draw; one entry of each per column of the table of best layers."""
    best, advice = advise(results)
    columns, drawn = [], []
    for position, (column, said) in enumerate(zip(best.columns, advice, strict=True)):
        cells = [best.cells.get((model.title, position)) for model in models]
        columns.append(
            TaskColumn(
                title=column.task.title,
                dataset=column.dataset,
                score=column.score,
                protocol=column.protocol,
                role=column.task.kind,
                measure=column.task.measure,
                sentence=said.sentence,
                remark=said.remark,
                kind=said.kind,
                named=said.named,
                chance=_chance(said),
                cells=tuple(_text(column, cell) if cell else None for cell in cells),
                ranked=_ranked(cells),
            )
        )
        drawn.append(_drawn(results.table, said, cells, models))
    return columns, drawn


def headline(columns: Sequence[TaskColumn]) -> str:
    """All advice in one or two sentences."""
    shown = [column for column in columns if column.protocol == "corrected"] or list(columns)
    several = {column.title for column in shown if sum(other.title == column.title for other in shown) > 1}
    kinds: dict[str, dict[str, list[str]]] = {}
    for column in shown:
        task = f"{column.title} ({column.dataset})" if column.title in several else column.title
        kinds.setdefault(column.kind, {}).setdefault(listing(column.named), []).append(task)
    parts = []
    if taken := kinds.get("take"):
        if len(taken) == 1 and len(kinds) == 1:
            parts.append(f"{next(iter(taken))} is clearly best at {listing(next(iter(taken.values())))}.")
        else:
            parts.append(f"Take {'; '.join(f'{model} for {listing(tasks)}' for model, tasks in taken.items())}.")
    if tied := kinds.get("tied"):
        parts.append(f"Tied: {'; '.join(f'{names} for {listing(tasks)}' for names, tasks in tied.items())}.")
    if open_ := kinds.get("undecided"):
        parts.append(f"Too little data to decide {listing([task for tasks in open_.values() for task in tasks])}.")
    if nothing := kinds.get("nothing"):
        tasks = listing([task for some in nothing.values() for task in some])
        parts.append(f"No model is clearly better than its baselines for {tasks}.")
    return " ".join(parts)


def _text(column: Column, cell: Cell) -> TableCell:
    return TableCell(
        score=column.task.show(cell.value),
        layer=cell.layer,
        interval="" if math.isnan(cell.low) else interval(column, cell),
        paper=of_paper(column, cell),
        best=cell.best,
        tied=cell.tied,
    )


def _ranked(cells: Sequence[Cell | None]) -> tuple[int, ...]:
    values = {position: cell.value for position, cell in enumerate(cells) if cell}
    return tuple(sorted(values, key=lambda position: -values[position]))


def _chance(said: Advice) -> str:
    if said.chance is None:
        return ""
    words, show = said.column.task.headline.chance, said.column.task.show
    pixels = "" if said.pixels is None else f"; {PIXELS}: {show(said.pixels)}"
    return f"{words[:1].upper()}{words[1:]}: {show(said.chance)}{pixels}"


def _drawn(
    table: pl.DataFrame, said: Advice, cells: Sequence[Cell | None], models: Sequence[PageModel]
) -> dict[str, Any]:
    column = said.column
    here = table.filter((pl.col("dataset") == column.dataset) & (pl.col("protocol") == column.protocol))
    scale = 100.0 if column.task.percent else 1.0
    series = []
    for position, (model, cell) in enumerate(zip(models, cells, strict=True)):
        rows = rows_of_task(here.filter(pl.col("model") == model.title), column.task)
        if cell and not rows.is_empty():
            series.append(
                {"model": position, "n": cell.n, "best": cell.best, "tied": cell.tied, "ring": cell.layer}
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
        "line": None if said.chance is None else rounded(scale * said.chance),
        "lineTitle": "",  # named below the chart: in it, it would lie on curves
    }


_COLUMNS = {"value": "value", "low": "ci_low", "high": "ci_high"}


def _scaled(values: pl.Series, scale: float) -> list[float | None]:
    return [rounded(None if value is None else scale * value) for value in values]
