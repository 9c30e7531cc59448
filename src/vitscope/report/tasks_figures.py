"""Figures of the downstream tasks: scores over depth, and the table of best layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from vitscope.core.results import Results
from vitscope.pipeline.advice import advise
from vitscope.pipeline.best_layers import BestLayers, Cell, Column, rows_of_task
from vitscope.report.attention_figures import models_of, place_legend
from vitscope.report.looks import ModelStyle, model_styles
from vitscope.report.style import FAINT, FORMATS, INK, across, save_figure, shrink_letters, sized, styled, wanted_width
from vitscope.report.table_formats import interval, of_paper, score
from vitscope.report.tasks_pictures import answer_pictures

SHADE = "#e9eef2"


def draw_tasks(results: Results, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write every figure that the results allow; returns the files. Images of answers are PNGs."""
    table, _ = advise(results)
    written: list[Path] = []
    with styled():
        if table.columns:
            written += save_figure(layers_figure(results.table, table), folder, "tasks-by-layer", formats=formats)
            if wanted_width() is None:  # papers typeset their tables: `vitscope results --best` writes LaTeX
                written += save_figure(table_figure(table), folder, "tasks-table", formats=formats)
        for answer in answer_pictures(results, table):
            written += save_figure(answer.figure, folder, answer.name, formats=("png",))
    return written


def layers_figure(results: pl.DataFrame, table: BestLayers) -> Figure:
    """Every task's score over depth, one panel per task and dataset; the best layer of each model ringed."""
    count = len(table.columns)
    columns = across(min(count, 3))
    down = math.ceil(count / columns)
    figure = Figure(figsize=sized(1.6 + 3.1 * columns, 0.4 + 2.75 * down))
    grid = figure.subplots(down, columns, squeeze=False)
    styles = model_styles(models_of(results))
    for panel, column in zip(grid.flat, table.columns, strict=False):
        here = results.filter((pl.col("dataset") == column.dataset) & (pl.col("protocol") == column.protocol))
        tops = [
            _curve(panel, rows_of_task(here.filter(pl.col("model") == title), column.task), style, column)
            for title, style in styles.items()
        ]
        panel.set_ylim(0, 1.07 * max(*tops, 1e-3))
        panel.set_title(column.task.title, pad=17)
        protocol = "" if column.protocol == "corrected" else f", {column.protocol} protocol"
        panel.text(0, 1.03, f"{column.dataset}{protocol}", transform=panel.transAxes, fontsize=8, color=FAINT)
        panel.set(xlabel="layer", ylabel=column.score)
        deepest = int(results.filter(pl.col("measure") == column.task.measure)["layer"].max())  # type: ignore[arg-type]
        panel.set_xticks([1, *range(3 if deepest > 6 else 2, deepest + 1, 3 if deepest > 6 else 1)])
    empty = list(grid.flat)[count:]
    for panel in empty:
        panel.set_axis_off()
    if empty and wanted_width() is None:
        handles = [Line2D([], [], **style.curve()) for style in styles.values()]
        empty[0].legend(handles=handles, loc="upper left", fontsize=8.5, handlelength=2.4, labelspacing=0.7)
    else:
        place_legend(grid[0, -1], list(styles.values()))
    figure.text(0.01, -0.02, "ring: best layer; band: 95 % bootstrap interval", color=FAINT, fontsize=8, va="top")
    shrink_letters(figure)
    figure.tight_layout(w_pad=1.5, h_pad=1.0)
    return figure


def _curve(panel: Axes, rows: pl.DataFrame, style: ModelStyle, column: Column) -> float:
    """Draw one model's scores; returns the highest point of curve and band."""
    if rows.is_empty():
        return 0.0
    scale = 100.0 if column.task.percent else 1.0
    layers, values = rows["layer"].to_numpy(), scale * rows["value"].to_numpy()
    low, high = scale * rows["ci_low"].to_numpy(), scale * rows["ci_high"].to_numpy()
    panel.fill_between(layers, low, high, color=style.colour, alpha=0.12, lw=0)
    panel.plot(layers, values, **style.curve())
    best = int(values.argmax())
    panel.plot(layers[best], values[best], "o", ms=11, mfc="none", mec=style.colour, mew=1.6)
    return float(np.nanmax([*values, *high]))


def table_figure(table: BestLayers) -> Figure:
    """The table of best layers as a figure."""
    papers = any(cell.paper for cell in table.cells.values())
    row = 0.62 if papers else 0.5
    names = max(len(title) for title, _ in table.models)
    left, wide = 0.35 + 0.085 * names, max(1.75, *(0.09 * len(column.dataset) for column in table.columns))
    width, height = left + wide * len(table.columns), 0.85 + row * len(table.models)
    figure = Figure(figsize=sized(width, height + 0.35))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height + 0.35, 0))
    axes.set_axis_off()
    for position, column in enumerate(table.columns):
        x = left + wide * (position + 0.5)
        axes.text(x, 0.18, column.task.title, ha="center", va="center", fontweight="bold", color=INK)
        axes.text(x, 0.4, column.dataset, ha="center", va="center", fontsize=8, color=INK)
        protocol = "" if column.protocol == "corrected" else f", {column.protocol}"
        axes.text(x, 0.6, column.score + protocol, ha="center", va="center", fontsize=8, color=FAINT)
    axes.plot([0.1, width - 0.04], [0.76, 0.76], color=INK, lw=1.0)
    styles = model_styles(table.models)
    for line, (title, style) in enumerate(styles.items()):
        y = 0.8 + row * (line + 0.5)
        fill = style.colour if style.filled else "none"
        axes.plot(0.2, y, style.marker, color=style.colour, mfc=fill, ms=6)
        axes.text(0.36, y, title, va="center", color=INK)
        for position, (column, cell) in enumerate(table.row(title)):
            _draw_cell(axes, left + wide * position, y, wide, row, column, cell)
    axes.plot([0.1, width - 0.04], [height, height], color=INK, lw=1.0)
    note = "score (best layer), 95 % interval; bold: best; shaded: not clearly worse than the best"
    axes.text(0.1, height + 0.18, note, fontsize=7.5, color=FAINT, va="center")
    return figure


def _draw_cell(axes: Axes, x: float, y: float, wide: float, row: float, column: Column, cell: Cell | None) -> None:
    middle = x + wide / 2
    if cell is None:
        axes.text(middle, y, "–", ha="center", va="center", color=FAINT)
        return
    if cell.tied:
        axes.add_patch(Rectangle((x + 0.04, y - row / 2 + 0.03), wide - 0.08, row - 0.06, color=SHADE, lw=0))
    lines = [interval(column, cell) if not math.isnan(cell.low) else "", of_paper(column, cell)]
    small = [line for line in lines if line]
    top = y - 0.08 * len(small)
    axes.text(
        middle,
        top,
        score(column, cell),
        ha="center",
        va="center",
        color=INK,
        fontweight="bold" if cell.best else "normal",
    )
    for number, line in enumerate(small, start=1):
        style = "italic" if line.startswith("paper") else "normal"
        axes.text(middle, top + 0.165 * number, line, ha="center", va="center", fontsize=7, color=FAINT, style=style)
