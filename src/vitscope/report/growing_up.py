"""A run over time: numbers of a series of checkpoints, drawn over steps instead of over depth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from vitscope.core.results import Results
from vitscope.report.features_heatmaps import headline
from vitscope.report.looks import ModelStyle, model_styles
from vitscope.report.style import FORMATS, across, save_figure, sized, styled

PANELS = 4  # in a row


@dataclass(frozen=True)
class Curve:
    """What is drawn over steps. pick: "last" layer, "best" layer, or "mean" over all layers and heads."""

    measure: str
    variants: tuple[str, ...]  # the first that there is
    title: str
    pick: str = "last"


CURVES = (
    Curve("knn_top1", ("cls k=20", "mean k=20"), "k-NN accuracy, best layer", "best"),
    Curve("segmentation_miou", ("knn",), "segmentation mIoU, best layer", "best"),
    Curve("rankme", ("cls", "spatial"), "RankMe"),
    Curve("spectrum_slope", ("cls", "spatial"), "slope of the spectrum"),
    Curve("cls_patch_cosine", ("",), "cosine of CLS and patches"),
    Curve("position_share", ("",), "share of position"),
    Curve("head_kind", ("offset local",), "share of offset local heads", "mean"),
    Curve("cka", ("cls", "spatial"), "CKA with the last checkpoint", "pair"),
)


def series_of(settings: Mapping[str, Any]) -> dict[str, list[tuple[int, str]]]:
    """name of a series -> (step, title of the model), in order of steps; from a study's settings."""
    found: dict[str, list[tuple[int, str]]] = {}
    for entry in settings.get("models", ()):
        if isinstance(entry, dict) and entry.get("series") and entry.get("step") is not None:
            found.setdefault(entry["series"], []).append((entry["step"], entry.get("title") or entry["name"]))
    return {name: sorted(steps) for name, steps in found.items() if len(steps) > 1}


def points(
    table: pl.DataFrame, curve: Curve, steps: Sequence[tuple[int, str]]
) -> list[tuple[int, float, float, float]]:
    """(step, value, low, high) of every checkpoint that has the number."""
    rows = table.filter((pl.col("measure") == curve.measure) & pl.col("value").is_not_nan())
    for variant in curve.variants:
        mine = rows.filter(pl.col("variant") == variant)
        if not mine.is_empty():
            break
    found = []
    last = steps[-1][1]
    for step, title in steps:
        here = mine.filter(pl.col("model") == title)
        if curve.pick == "pair":
            there = (pl.col("model") == title) & (pl.col("other_model") == last)
            back = (pl.col("model") == last) & (pl.col("other_model") == title)
            here = mine.filter(there | back)
        if here.is_empty():
            continue
        if curve.pick == "mean":
            value = float(here["value"].mean())  # type: ignore[arg-type]
            found.append((step, value, value, value))
            continue
        order = ["value"] if curve.pick == "best" else ["layer"]
        row = here.sort(order).tail(1).select("value", "ci_low", "ci_high").row(0)
        found.append((step, *row))
    return found


Lines = dict[Curve, dict[str, list[tuple[int, float, float, float]]]]  # of each series


def _lines(results: Results) -> Lines:
    """The curves that have more than a point to show."""
    series = series_of(results.settings)
    lines = {curve: {n: points(results.table, curve, steps) for n, steps in series.items()} for curve in CURVES}
    return {curve: mine for curve, mine in lines.items() if any(len(line) > 1 for line in mine.values())}


def growing_rows(results: Results) -> list[list[Any]]:
    """What the figure shows as a table, names of columns first; empty if a study has no series."""
    rows = [
        [name, curve.title, curve.measure, *(None if math.isnan(part) else part for part in point)]
        for curve, mine in _lines(results).items()
        for name, line in mine.items()
        for point in line
    ]
    return [["series", "curve", "measure", "step", "value", "ci_low", "ci_high"], *rows] if rows else []


def growing_figure(results: Results) -> Figure | None:
    """Curves over steps for every series of a study; None if it has none."""
    drawn = _lines(results)
    if not drawn:
        return None
    series = series_of(results.settings)
    teachings: dict[str, str] = dict(results.table.select("model", "teaching").unique().rows())
    styles = model_styles([(name, teachings.get(steps[0][1], "other")) for name, steps in series.items()])
    columns = across(min(len(drawn), PANELS))
    rows = -(-len(drawn) // columns)
    figure = Figure(figsize=sized(2.5 * columns + 1.2, 2.3 * rows + 0.5), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel in panels[len(drawn) :]:
        panel.set_visible(False)
    for panel, (curve, mine) in zip(panels, drawn.items(), strict=False):
        for name, line in mine.items():
            if line:
                _draw(panel, line, styles[name])
        panel.set_title(curve.title)
        panel.set_xlabel("step")
    if len(series) > 1:
        panels[columns - 1].legend(loc="upper left", bbox_to_anchor=(1.01, 1.02), fontsize=8)
    headline(figure, "Growing up", f"{', '.join(series)}: checkpoints over steps; band: 95 % interval")
    return figure


def _draw(panel: Any, line: Sequence[tuple[int, float, float, float]], style: ModelStyle) -> None:
    step, value, low, high = zip(*line, strict=True)
    panel.fill_between(step, low, high, color=style.colour, alpha=0.13, lw=0)
    panel.plot(step, value, **style.curve())
    if max(value) == min(value):  # nothing happens: an axis of tiny steps would make much of it
        panel.set_ylim(min(0.0, *value), max(1.0, *value))


def draw_growing(results: Results, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    with styled():
        figure = growing_figure(results)
        return [] if figure is None else save_figure(figure, folder, "growing-up", formats=formats)
