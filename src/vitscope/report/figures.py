"""The figures of a study for papers and talks: PNG, SVG and PDF. The page draws its own."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from vitscope.report.attention_figures import draw_attention
from vitscope.report.features_figures import draw_features
from vitscope.report.style import save_figure, styled
from vitscope.report.tasks_figures import layers_figure, table_figure
from vitscope.results import Results
from vitscope.study.outcome import StudyOutcome
from vitscope.tasks.table import best_layers

FORMATS = ("png", "svg", "pdf")


def draw_figures(outcome: StudyOutcome, folder: Path) -> list[Path]:
    """Write every figure that the results allow, in every format; returns the files."""
    results = outcome.results
    paths = []
    if _has(results, "attention_distance"):
        paths += draw_attention(results, folder, formats=FORMATS)
    if _has(results, "effective_rank"):
        paths += draw_features(results, folder, formats=FORMATS)
    table = best_layers(results.table)
    if table.columns:
        with styled():
            paths += save_figure(layers_figure(results.table, table), folder, "tasks-by-layer", formats=FORMATS)
            paths += save_figure(table_figure(table), folder, "best-layers", formats=FORMATS)
    return paths


def _has(results: Results, measure: str) -> bool:
    return not results.table.filter(pl.col("measure") == measure).is_empty()
