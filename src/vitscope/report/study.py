"""The report of a study: the page, and every figure as PNG, SVG and PDF."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from vitscope.report.attention_figures import draw_attention
from vitscope.report.features_figures import draw_features
from vitscope.report.page import write_page
from vitscope.report.style import save_figure, styled
from vitscope.report.tasks_figures import layers_figure, table_figure
from vitscope.results import Results
from vitscope.study.outcome import StudyOutcome
from vitscope.tasks.table import best_layers

FORMATS = ("png", "svg", "pdf")


def write_report(outcome: StudyOutcome, folder: Path) -> Path:
    """Write report.html and figures/ into the study's folder; returns the page."""
    figures = folder / "figures"
    results = outcome.results
    if _has(results, "attention_distance"):
        draw_attention(results, figures, formats=FORMATS)
    if _has(results, "effective_rank"):
        draw_features(results, figures, formats=FORMATS)
    table = best_layers(results.table)
    if table.columns:
        with styled():
            save_figure(layers_figure(results.table, table), figures, "tasks-by-layer", formats=FORMATS)
            save_figure(table_figure(table), figures, "best-layers", formats=FORMATS)
    return write_page(outcome, folder / "report.html")


def _has(results: Results, measure: str) -> bool:
    return not results.table.filter(pl.col("measure") == measure).is_empty()
