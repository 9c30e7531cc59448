"""Heads as pictures: any measure as a heat map or against another, and where several sources look on average."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from torch import Tensor

from vitscope.attention.maps import PLACES
from vitscope.core.errors import VitscopeError, shorten
from vitscope.core.files import file_names
from vitscope.core.results import Results
from vitscope.pipeline.registry import ANALYSES
from vitscope.report.attention_figures import models_of, place_legend
from vitscope.report.attention_mosaic import Mosaic
from vitscope.report.features_heatmaps import short
from vitscope.report.looks import model_styles
from vitscope.report.style import FAINT, HEAT, INK, SEQUENTIAL, across, folded, sized

ACROSS = 4  # panels side by side
STRIP = 3  # tokens' heights for the strip of prefix tokens and the gap below it
SOURCES = {  # who looks -> name of the kept maps, and in words
    "cls": ("cls", "CLS"),
    "all": ("all", "every token"),
    "mean": ("spatial", "the mean of the patch tokens"),
    "pool": ("pool", "the pooling head"),
    **{name: (f"from.{name}", f"the patch token at the {name}") for name in PLACES},
}


def head_values(results: Results, name: str) -> dict[str, np.ndarray]:
    """A measure of every head: model -> (L, H), NaN where there is none; under `corrected`, of the first dataset.

    name: a measure, or MEASURE:VARIANT; without a variant, the first that there is.
    """
    measure, _, variant = name.partition(":")
    rows = results.table.filter(pl.col("head").is_not_null() & (pl.col("protocol") == "corrected"))
    mine = rows.filter(pl.col("measure") == measure)
    if mine.is_empty():
        there = ", ".join(sorted(rows["measure"].unique()))
        raise VitscopeError(f"there is no measure '{shorten(measure)}' of heads here: there is {there}")
    variants = mine["variant"].unique(maintain_order=True).to_list()
    if variant and variant not in variants:
        raise VitscopeError(f"{measure} has no variant '{shorten(variant)}': there is {', '.join(variants)}")
    mine = mine.filter((pl.col("variant") == (variant or variants[0])) & (pl.col("dataset") == mine["dataset"][0]))
    found = {}
    for title, _ in models_of(mine):
        own = mine.filter(pl.col("model") == title)
        layer, head = own["layer"].to_numpy(), own["head"].to_numpy()
        values = np.full((layer.max(), head.max()), np.nan)
        values[layer - 1, head - 1] = own["value"].to_numpy()
        found[title] = values
    return found


def title_of(name: str) -> str:
    """A measure in words, with its unit and variant."""
    measure, _, variant = name.partition(":")
    known = {one.name: one for analysis in ANALYSES.values() for one in analysis.measures}
    title = known[measure].title if measure in known else measure.replace("_", " ")
    unit = f" ({known[measure].unit})" if measure in known and known[measure].unit else ""
    return title + unit + (f", {variant}" if variant else "")


def heat_figure(results: Results, name: str) -> Figure:
    """Every head of every model, layers down and heads across, on one scale."""
    values = head_values(results, name)
    every = np.concatenate([one[np.isfinite(one)] for one in values.values()])
    largest = float(np.abs(every).max())
    signed = bool(every.min() < 0)  # then nothing is in the middle of the scale
    scale = {"vmin": -largest if signed else 0.0, "vmax": largest, "cmap": "RdBu_r" if signed else SEQUENTIAL}
    columns = across(min(len(values), ACROSS))
    rows = -(-len(values) // columns)
    deepest = max(len(one) for one in values.values())
    figure = Figure(figsize=sized(0.8 + 2.9 * columns, rows * (0.9 + 0.2 * deepest)), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    for panel, (title, one) in zip(panels.flat, values.items(), strict=False):
        layers, heads = one.shape
        image = panel.imshow(one, aspect="auto", extent=(0.5, heads + 0.5, layers + 0.5, 0.5), **scale)
        panel.set_title(folded(short(title)), fontsize=9)
        panel.set(xlabel="head", ylabel="layer")
        panel.set_xticks(range(1, heads + 1, 1 if heads <= 12 else 3))
        panel.set_yticks(range(1, layers + 1, 1 if layers <= 12 else 3))
        panel.grid(False)
    for panel in list(panels.flat)[len(values) :]:
        panel.set_axis_off()
    figure.colorbar(image, ax=panels, fraction=0.05, aspect=30).outline.set_visible(False)
    figure.suptitle(title_of(name), x=0.01, ha="left", fontsize=11, fontweight="bold", color=INK)
    return figure


def importance_figures(results: Results) -> dict[str, Figure]:
    """Heat maps of how much heads matter, by file name; none if nobody asked for it."""
    there = set(results.table.filter(pl.col("head").is_not_null())["measure"])
    measures = [name for name in ("head_importance", "head_importance_knn") if name in there]
    return {f"heat-{name.replace('_', '-')}": heat_figure(results, name) for name in measures}


def scatter_figure(results: Results, along: str, up: str) -> Figure:
    """One measure against another: a dot for each head, larger in later layers."""
    x, y = head_values(results, along), head_values(results, up)
    models = [(title, teaching) for title, teaching in models_of(results.table) if title in x and title in y]
    if not models:
        raise VitscopeError(f"no model has both {along} and {up}")
    styles = model_styles(models)
    figure = Figure(figsize=sized(6.6, 4.6))
    axes = figure.subplots()
    for title, _ in models:
        style, (layers, heads) = styles[title], x[title].shape
        depth = np.repeat(np.arange(1, layers + 1) / layers, heads)
        face = style.colour if style.filled else "none"
        axes.scatter(x[title].flatten(), y[title].flatten(), s=8 + 34 * depth, marker=style.marker, facecolors=face,
                     edgecolors=style.colour, linewidths=0.7, alpha=0.6)  # fmt: skip
    axes.set(xlabel=title_of(along), ylabel=title_of(up), title=f"{title_of(up)} against {title_of(along)}")
    axes.grid(True, axis="both")
    axes.text(
        0, -0.17, "a mark for each head, larger in later layers", transform=axes.transAxes, color=FAINT, fontsize=8
    )
    place_legend(axes, list(styles.values()))
    return figure


def source_figure(title: str, maps: Tensor, cells: Tensor | None, words: str) -> Figure:
    """Mean maps (L, H, h, w) of one source, a row for each layer; above each, what prefix tokens get, (L, H, prefix).

    Maps have their own scales, as in the mosaic of CLS maps; the strip of prefix tokens is dark for 0, bright for 1.
    """
    layers, heads, h, w = maps.shape
    strip = STRIP if cells is not None else 0
    mosaic = Mosaic(layers, heads, (h + strip) / w)
    for layer in range(layers):
        for head in range(heads):
            values = maps[layer, head].numpy()
            image = HEAT(values / max(values.max(), 3 * values.mean(), 1e-12))  # (h, w, 4)
            if cells is not None:
                widths = np.diff(np.linspace(0, w, cells.shape[-1] + 1).round().astype(int))
                row = HEAT(np.repeat(cells[layer, head].numpy(), widths))[None]  # (1, w, 4)
                image = np.concatenate([row.repeat(strip - 1, 0), np.ones((1, w, 4)), image])
            mosaic.show(layer, head, image)
    note = "" if cells is None else "; strip: share on CLS and other prefix tokens, from 0 to 1"
    return mosaic.titled(title, f"where {words} looks (mean over images){note}")


def source_figures(results: Results, sources: Sequence[str]) -> dict[str, Figure]:
    """A mosaic for each source and each model that has it."""
    figures: dict[str, Figure] = {}
    titles = [title for title, _ in models_of(results.table) if f"{title}/kind" in results.maps]
    for source in sources:
        if source not in SOURCES:
            raise VitscopeError(f"there are no maps from '{shorten(source)}': there are {', '.join(SOURCES)}")
        kept, words = SOURCES[source]
        name = kept.removeprefix("from.")
        for title, plain in file_names(titles).items():
            found = results.maps.get(f"{title}/{kept}")
            if found is not None:
                cells = results.maps.get(f"{title}/cells.{name}")
                figures[f"maps-from-{source}-{plain}"] = source_figure(title, found, cells, words)
    return figures


def draw_heads(
    results: Results, heat: Sequence[str], against: Sequence[tuple[str, str]], sources: Sequence[str]
) -> dict[str, Figure]:
    """The figures that were asked for, by file name."""

    def plain(name: str) -> str:
        return "".join(letter if letter.isalnum() else "-" for letter in name)

    figures = {f"heat-{plain(name)}": heat_figure(results, name) for name in heat}
    for along, up in against:
        figures[f"{plain(up)}-against-{plain(along)}"] = scatter_figure(results, along, up)
    return figures | source_figures(results, sources)
