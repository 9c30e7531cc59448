"""The figures of a study for papers and talks: PNG, SVG and PDF. The page draws its own."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from vitscope.core.errors import VitscopeError
from vitscope.core.files import write_text
from vitscope.core.reading import SMALL, read_json
from vitscope.core.results import Results
from vitscope.report.attention_figures import draw_attention
from vitscope.report.feature_pictures import draw_pictures
from vitscope.report.features_figures import draw_features
from vitscope.report.growing_up import draw_growing
from vitscope.report.head_figures import importance_figures
from vitscope.report.style import save_figure, styled
from vitscope.report.tasks_figures import draw_tasks
from vitscope.report.token_figures import draw_tokens

FORMATS = ("png", "svg", "pdf")


DRAWN = ".drawn.json"  # names of the files of the last drawing


def draw_figures(results: Results, folder: Path) -> list[Path]:
    """Write every figure that the results allow, in every format; returns the files.

    Figures that were drawn here before of other results, and are not of these, are taken away.
    """
    paths = _draw(results, folder)
    names = {path.name for path in paths}
    for stale in _drawn_before(folder) - names:
        (folder / stale).unlink(missing_ok=True)
    if paths:
        write_text(folder / DRAWN, json.dumps(sorted(names)))
    return paths


def _drawn_before(folder: Path) -> set[str]:
    if not (folder / DRAWN).is_file():
        return set()
    try:
        names = read_json(folder / DRAWN, most=SMALL)
        return {name for name in names if name == Path(name).name and Path(name).suffix[1:] in FORMATS}
    except (VitscopeError, TypeError, ValueError):  # damaged: then nothing is known
        return set()


def _draw(results: Results, folder: Path) -> list[Path]:
    paths = []
    if _has(results, "attention_distance") or _has(results, "saliency_best_head"):
        paths += draw_attention(results, folder, formats=FORMATS)
    if _has(results, "effective_rank") or _has(results, "purity"):
        paths += draw_features(results, folder, formats=FORMATS)
    with styled():
        for name, figure in importance_figures(results).items():
            paths += save_figure(figure, folder, name, formats=FORMATS)
    paths += draw_growing(results, folder, formats=FORMATS)
    paths += draw_pictures(results, folder, formats=FORMATS)
    paths += draw_tokens(results, folder, formats=FORMATS)
    return paths + draw_tasks(results, folder, formats=FORMATS)


def _has(results: Results, measure: str) -> bool:
    return not results.table.filter(pl.col("measure") == measure).is_empty()
