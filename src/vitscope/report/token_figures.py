"""Figures over depth of what came after the paper: sinks, norms, likeness, spectrum, cues, drift; and of outliers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure
from torch import Tensor

from vitscope.core.results import Results
from vitscope.data.corruption import CORRUPTIONS, STRENGTHS
from vitscope.report.attention_figures import models_of
from vitscope.report.features_curves import Panel, curves
from vitscope.report.features_heatmaps import headline, short
from vitscope.report.looks import text_colour
from vitscope.report.style import FORMATS, HEAT, save_figure, sized, styled

LOGARITHMIC = {"sink_ratio", "norm_spread", "token_norm"}
FIGURES: dict[str, tuple[str, str, tuple[Panel, ...]]] = {
    "sinks": (
        "What draws attention, whoever looks",
        "mean over heads; a sink of 1: all tokens receive the same; dependence of 0: all tokens look at the same",
        (
            Panel("sink_ratio", "", "sink: largest / median", "attention received"),
            Panel("attention_nmi", "", "dependence on the query", "normalised information"),
            Panel("cls_self", "", "CLS on itself", "share of attention"),
            Panel("patch_self", "", "patches on themselves", "share of attention"),
        ),
    ),
    "token-norms": (
        "Tokens that grow out of proportion",
        "outliers: patch tokens beyond the gap of the histogram of norms; band: 95 % interval",
        (
            Panel("norm_outliers", "", "outlier tokens", "share of patch tokens"),
            Panel("norm_spread", "", "largest over median norm", "ratio"),
            Panel("token_norm", "patches, median", "median norm", "norm of patch tokens"),
        ),
    ),
    "token-likeness": (
        "Do tokens stay apart?",
        "patch tokens of the same image; band: 95 % interval",
        (
            Panel("patch_patch_cosine", "", "two patches", "mean cosine"),
            Panel("cls_patch_cosine", "", "CLS and a patch", "mean cosine"),
            Panel("position_share", "", "share of position", "share of variance"),
            Panel("patch_patch_without_position", "", "two patches, less position", "likeness"),
            Panel("frequency", "", "fine over coarse", "log amplitude"),
        ),
    ),
    "shape-or-texture": (
        "Shape or texture?",
        "k-NN of images with the shape of one class and the texture of another; chance gives a share of a half where "
        "classes are equally common; band: 95 % interval",
        (
            Panel("shape_share", "cls", "share of shape", "share of decided images"),
            Panel("shape_decisions", "cls", "decided by shape", "share of images"),
            Panel("texture_decisions", "cls", "decided by texture", "share of images"),
        ),
    ),
    "drift": (
        "How far features move when images are corrupted",
        "1 - cosine of the feature of an image and of its corrupted self, strongest of three levels; band: 95 % "
        "interval",
        tuple(
            Panel("robustness_drift", f"{corruption} {STRENGTHS[-1]}", corruption, "drift")
            for corruption in CORRUPTIONS
        ),
    ),
    "spectrum": (
        "The spectrum of features",
        "RankMe cannot exceed the number of points; slope: eigenvalues fall like i^-alpha; band: 95 % interval",
        tuple(
            Panel(measure, variant, f"{title}, {name}", label)
            for measure, title, label in (("rankme", "RankMe", "RankMe"), ("spectrum_slope", "slope", "alpha"))
            for variant, name in (("cls", "CLS"), ("patch", "patches"))
        ),
    ),
}


def draw_tokens(results: Results, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write every figure of tokens that the results allow; returns the files."""
    figures: dict[str, Figure] = {}
    with styled():
        for name, (title, note, panels) in FIGURES.items():
            rows = over_heads(results.table, {panel.measure for panel in panels})
            there = set(rows.select("measure", "variant").rows())
            if shown := [panel for panel in panels if (panel.measure, panel.variant) in there]:
                figures[name] = token_figure(rows, shown, title, note)
        if any(key.endswith("/norm_outliers") and value.any() for key, value in results.maps.items()):
            figures["outlier-maps"] = outlier_figure(results.maps, models_of(results.table))
        return [path for name, f in figures.items() for path in save_figure(f, folder, name, formats=formats)]


def over_heads(table: pl.DataFrame, measures: set[str]) -> pl.DataFrame:
    """Rows of some measures, one per layer: the mean where there is one per head (which has no interval)."""
    rows = table.filter(pl.col("measure").is_in(list(measures)) & pl.col("layer").is_not_null())
    keys = ["model", "teaching", "measure", "variant", "layer"]
    alone = pl.col("head").is_null().all()
    ends = (pl.when(alone).then(pl.col(end).mean()).otherwise(float("nan")).alias(end) for end in ("ci_low", "ci_high"))
    return rows.group_by(keys, maintain_order=True).agg(pl.col("value").mean(), *ends)


def token_figure(rows: pl.DataFrame, panels: Sequence[Panel], title: str, note: str) -> Figure:
    figure, grid = curves(rows, [panels], width=2.5)
    for axes, panel in (pair for row in grid for pair in row):
        if panel.measure in LOGARITHMIC:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.yaxis.set_minor_formatter(lambda *_: "")
        axes.set_ylabel(panel.label)
    headline(figure, title, note)
    return figure


def outlier_figure(maps: Mapping[str, Tensor], models: Sequence[tuple[str, str]]) -> Figure:
    """How often each position holds an outlier, layer by layer: a row per model that has some."""
    having = [(title, key) for title, key in models if f"{title}/norm_outliers" in maps]
    having = [(title, key) for title, key in having if maps[f"{title}/norm_outliers"].any()]
    depth = max(len(maps[f"{title}/norm_outliers"]) for title, _ in having)
    figure = Figure(figsize=sized(0.95 * depth + 0.6, 1.25 * len(having) + 0.5), layout="constrained")
    axes = figure.subplots(len(having), depth, squeeze=False)
    for row, (title, key) in zip(axes, having, strict=True):
        found = maps[f"{title}/norm_outliers"]
        for layer, panel in enumerate(row):
            panel.set(xticks=[], yticks=[])
            panel.grid(False)
            if layer >= len(found):
                panel.set_visible(False)
                continue
            values = found[layer].numpy()
            panel.imshow(values, cmap=HEAT, vmin=0, vmax=max(float(found.max()), 1e-6))
            share = values.mean()
            panel.set_xlabel(f"{share:.1%}" if share else "none", fontsize=7)
            panel.set_title(str(layer + 1), fontsize=8, loc="center")
        row[0].set_ylabel(short(title), color=text_colour(key), fontsize=8)
    headline(figure, "Where outlier tokens are", "how often each position holds one; above: layer; below: share")
    return figure
