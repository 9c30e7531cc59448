"""All figures of the feature study, and the projections of the last layers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from torch import Tensor

from vitscope.core.results import Results
from vitscope.features.similarity import SIMILARITIES
from vitscope.report.attention_figures import models_of
from vitscope.report.features_curves import clustering_figure, dimension_figure, residual_figure
from vitscope.report.features_heatmaps import (
    TOKEN_TITLES,
    Model,
    depth_figure,
    headline,
    last_layer_figure,
    short,
    similarity_figure,
)
from vitscope.report.looks import text_colour
from vitscope.report.style import FAINT, FORMATS, INK, across, save_figure, sized, styled

# Each is as far as can be (CIEDE2000) from those before it; none is the colour of a teaching: they mean classes here.
CLASS_COLOURS = (
    "#7b2889", "#52dc52", "#f78944", "#0d521b", "#97b2f7", "#6d360d", "#f760dc", "#97890d", "#0d9797", "#0d527b",
    "#ea0d44", "#60dcf7", "#f7a5b2", "#7b6dce", "#dcc089", "#890d36", "#36890d", "#89dcc0", "#a5607b", "#976d44",
)  # fmt: skip
NAMED_CLASSES = len(CLASS_COLOURS)  # more cannot be told apart by colour: they are drawn, but not named
NAMES = ("cka-models", *(f"cka-depth-{kind}" for kind in TOKEN_TITLES), "similarities", "purity", "nmi-ari", "residual",
         "dimensions", "projections")  # fmt: skip


def draw_features(results: Results, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write every figure of the feature study that the results allow; returns the files."""
    table, maps, figures = results.table, results.maps, dict[str, Figure]()
    measures = set(table["measure"])
    models = models_of(table.filter(pl.col("measure").is_in(["effective_rank", "skip_over_branch", "purity", "cka"])))
    own = [about for about in results.provenance if about.get("measure") == "features"]
    pictures = max((about.get("seen", 0) for about in own), default=0)
    with styled():
        if "cka" in measures:
            figures["cka-models"] = last_layer_figure(maps, models, pictures)
        for kind in TOKEN_TITLES:
            if any(f"{title}/cka.depth.{kind}" in maps for title, _ in models):
                figures[f"cka-depth-{kind}"] = depth_figure(maps, models, kind)
        if any(measure.startswith("similarity_") for measure in measures):
            titles = {name: similarity.title for name, similarity in SIMILARITIES.items()}
            counts = table.filter(pl.col("measure").str.starts_with("similarity_"))["n"]
            figures["similarities"] = similarity_figure(maps, models, titles, int(counts.max()))  # type: ignore[arg-type]
        if "purity" in measures:
            both = {"nmi": "NMI", "ari": "ARI"}
            title = "Do features of a class lie together?"
            figures["purity"] = clustering_figure(table, {"purity": "purity"}, title)
            figures["nmi-ari"] = clustering_figure(table, both, "Clusters against classes")
        if "skip_over_branch" in measures:
            figures["residual"] = residual_figure(table)
        if "effective_rank" in measures:
            figures["dimensions"] = dimension_figure(table)
        if any(key.endswith("/projection.pca") for key in maps):
            classes: list[str] = next((about["classes"] for about in own if about.get("classes")), [])
            figures["projections"] = projection_figure(maps, models, classes)
        written = [path for name, f in figures.items() for path in save_figure(f, folder, name, formats=formats)]
    for name in NAMES:  # of an earlier study in this folder that had what this one lacks
        if name not in figures:
            for suffix in formats:
                (folder / f"{name}.{suffix}").unlink(missing_ok=True)
    return written


def projection_figure(maps: dict[str, Tensor], models: list[Model], classes: list[str]) -> Figure:
    """Images in the plane, one panel per model: PCA and t-SNE for a few models, t-SNE alone for many."""
    having = [model for model in models if f"{model[0]}/projection.pca" in maps]
    kinds = ["pca", "tsne"] if any(f"{title}/projection.tsne" in maps for title, _ in having) else ["pca"]
    if len(having) > 5:
        kinds = kinds[-1:]
    most = across(5)
    lines = -(-len(having) // most)
    columns = -(-len(having) // lines)
    figure = Figure(figsize=sized(2.3 * columns + 1.5, 2.4 * lines * len(kinds) + 0.2), layout="constrained")
    panels = figure.subplots(lines * len(kinds), columns, squeeze=False)
    for panel in panels.ravel():
        panel.set_visible(False)
    for number, (title, key) in enumerate(having):
        for row, kind in enumerate(kinds):
            panel = panels[(number // columns) * len(kinds) + row, number % columns]
            panel.set_visible(True)
            _scatter(panel, maps, title, kind)
            if row == 0:
                panel.set_title(short(title), color=text_colour(key), fontsize=9)
            if number % columns == 0:
                panel.set_ylabel({"pca": "principal components", "tsne": "t-SNE"}[kind], color=FAINT)
    if 0 < len(classes) <= NAMED_CLASSES:
        handles = [Line2D([], [], marker="o", ls="", color=class_colour(i), label=short(name, 18), markersize=5)
                   for i, name in enumerate(classes)]  # fmt: skip
        figure.legend(handles=handles, loc="outside right upper", fontsize=8, handletextpad=0.2, borderaxespad=0)
    note = "colour: class" if classes else "the images have no labels"
    if len(classes) > NAMED_CLASSES:
        note = f"colour: one of {len(classes)} classes; colours repeat"
    headline(figure, "The last layer in the plane", f"each dot is an image; {note}")
    for legend in figure.legends:  # beside the panels: saving moves whatever hangs on the figure's own edge
        left = legend.get_window_extent().transformed(panels[0, -1].transAxes.inverted()).x0
        legend.set_loc("upper left")
        legend.set_bbox_to_anchor((left, 1.0), panels[0, -1].transAxes)
    return figure


def class_colour(number: int) -> str:
    """The colour of a class; after twenty they repeat."""
    return CLASS_COLOURS[number % NAMED_CLASSES]


def _scatter(panel: Axes, maps: dict[str, Tensor], title: str, kind: str) -> None:
    panel.set(xticks=[], yticks=[])
    panel.grid(False)
    for spine in panel.spines.values():
        spine.set(visible=True, color="#dcdce4")
    points = maps.get(f"{title}/projection.{kind}")
    if points is None:
        panel.text(0.5, 0.5, "too few images", ha="center", va="center", color=FAINT, transform=panel.transAxes)
        return
    labels = maps.get(f"{title}/projection.labels")
    colours = [class_colour(label) for label in labels.tolist()] if labels is not None else INK
    x, y = np.asarray(points).T
    panel.scatter(x, y, s=14 if len(x) <= 200 else 5, c=colours, linewidths=0, alpha=0.85)
    if kind == "pca":
        share = maps[f"{title}/projection.pca.share"].tolist()
        panel.set_xlabel(f"{share[0]:.0%} and {share[1]:.0%} of variance", fontsize=7, color=FAINT)
