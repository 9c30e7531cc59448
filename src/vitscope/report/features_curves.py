"""Curves over depth of the feature study: clusters, the residual stream, dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vitscope.report.attention_figures import models_of, place_legend
from vitscope.report.features_heatmaps import headline
from vitscope.report.style import FAINT, INK, ModelStyle, model_styles

VARIANT_TITLES = {
    "cls": "CLS token",
    "spatial": "mean spatial token",
    "regions": "masked regions",
    "regions, dense": "masked regions (dense)",
}


@dataclass(frozen=True)
class Panel:
    """One set of curves: which rows of the table, and what to call them."""

    measure: str
    variant: str
    title: str = ""
    label: str = ""


def draw_curves(
    axes: Axes, table: pl.DataFrame, panel: Panel, styles: dict[str, ModelStyle], depth: int | None
) -> None:
    """Value over layers of every model, with its interval. depth: None draws relative depth, for models that differ."""
    rows = table.filter((pl.col("measure") == panel.measure) & (pl.col("variant") == panel.variant))
    for model, style in styles.items():
        mine = rows.filter(pl.col("model") == model).sort("layer")
        if mine.is_empty():
            continue
        place = mine["layer"] if depth else mine["layer"] / depth_of(table, model)
        axes.fill_between(place, mine["ci_low"], mine["ci_high"], color=style.colour, alpha=0.13, lw=0)
        axes.plot(place, mine["value"], **style.curve() | {"markersize": 4.5 if len(styles) <= 8 else 3})
    axes.set_title(panel.title)
    axes.set_ylabel(panel.label)
    if depth:
        axes.set_xticks(range(1, depth + 1, 1 if depth <= 12 else 3))
        axes.set_xlim(0.6, depth + 0.4)


def depth_of(table: pl.DataFrame, model: str) -> int:
    return int(table.filter(pl.col("model") == model)["layer"].max())  # type: ignore[arg-type]


def common_depth(table: pl.DataFrame) -> int | None:
    """The number of layers, if all models have the same."""
    depths = {depth_of(table, model) for model, _ in models_of(table)}
    return depths.pop() if len(depths) == 1 else None


def grid_of_curves(
    table: pl.DataFrame, rows: Sequence[Sequence[Panel]], *, width: float = 3.3, height: float = 2.7
) -> tuple[Figure, list[list[Axes]]]:
    """A figure of panels with one legend to its right."""
    styles = model_styles(models_of(table))
    depth = common_depth(table)
    figure = Figure(figsize=(width * len(rows[0]) + 2.0, height * len(rows) + 0.3), layout="constrained")
    axes = figure.subplots(len(rows), len(rows[0]), squeeze=False, sharex=True)
    for i, row in enumerate(rows):
        for j, panel in enumerate(row):
            draw_curves(axes[i, j], table, panel, styles, depth)
            if i == len(rows) - 1:
                axes[i, j].set_xlabel("layer" if depth else "depth (share of all layers)")
    place_legend(axes[0, -1], list(styles.values()))
    return figure, axes.tolist()


def variants_of(table: pl.DataFrame, measure: str) -> list[str]:
    there = set(table.filter(pl.col("measure") == measure)["variant"])
    return [variant for variant in VARIANT_TITLES if variant in there]


def clustering_figure(table: pl.DataFrame, measures: dict[str, str], title: str) -> Figure:
    """Scores of clusters over depth. measures: name -> label of the axis."""
    variants = variants_of(table, next(iter(measures)))
    rows = [
        [
            Panel(measure, v, VARIANT_TITLES[v] if i == 0 else "", label if j == 0 else "")
            for j, v in enumerate(variants)
        ]
        for i, (measure, label) in enumerate(measures.items())
    ]
    figure, axes = grid_of_curves(table, rows)
    for i, measure in enumerate(measures):
        for j, variant in enumerate(variants):
            axes[i][j].set_ylim(0 if measure != "ari" else None, None)
            if measure == "purity":
                _draw_chance(axes[i][j], table, variant)
    counts = {v: _count(table, v) for v in variants}
    told = ", ".join(f"{n} {'regions' if v.startswith('regions') else 'pictures'}" for v, n in counts.items())
    headline(
        figure,
        title,
        f"k-means, k = number of classes; band: lowest to highest seed; {'; '.join(dict.fromkeys(told.split(', ')))}",
    )
    return figure


def _count(table: pl.DataFrame, variant: str) -> int:
    return int(table.filter((pl.col("measure") == "purity") & (pl.col("variant") == variant))["n"].max())  # type: ignore[arg-type]


def _draw_chance(axes: Axes, table: pl.DataFrame, variant: str) -> None:
    chance = table.filter((pl.col("measure") == "purity_chance") & (pl.col("variant") == variant))["value"].mean()
    if chance is not None:
        axes.axhline(float(chance), color=FAINT, lw=1, ls=(0, (2, 2)), zorder=0)  # type: ignore[arg-type]
        axes.text(0.995, float(chance), "shuffled labels", color=FAINT, fontsize=7, ha="right", va="bottom",  # type: ignore[arg-type]
                  transform=axes.get_yaxis_transform())  # fmt: skip


def residual_figure(table: pl.DataFrame) -> Figure:
    """What the skip carries against what each branch adds: norms above, CKA below."""
    there = set(table.filter(pl.col("measure") == "skip_over_branch")["variant"])
    kinds = [kind for kind in ("cls", "spatial") if f"attention/{kind}" in there]
    columns = [(part, kind) for part in ("attention", "mlp") for kind in kinds]
    names = {"attention": "attention", "mlp": "MLP", "cls": "CLS", "spatial": "spatial"}
    rows = [
        [
            Panel(measure, f"{part}/{kind}", f"{names[part]}, {names[kind]}" if i == 0 else "", label if j == 0 else "")
            for j, (part, kind) in enumerate(columns)
        ]
        for i, (measure, label) in enumerate(
            {"skip_over_branch": "|skip| / |branch|", "residual_cka": "CKA of skip with branch"}.items()
        )
    ]
    figure, axes = grid_of_curves(table, rows, width=2.7, height=2.5)
    for panel in axes[0]:
        panel.set_yscale("log")
        panel.axhline(1, color=INK, lw=0.8, ls=(0, (2, 2)), zorder=0)
        panel.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        panel.yaxis.set_minor_formatter(lambda *_: "")
    limits = [panel.get_ylim() for panel in axes[0]]
    for panel in axes[0]:
        panel.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))
    lowest = min(panel.get_ylim()[0] for panel in axes[1])
    for panel in axes[1]:
        panel.set_ylim(min(lowest, 0), 1.02)
    note = "above the dashed line the skip connection carries more than the branch adds; band: 95 % interval"
    headline(figure, "Who writes into the residual stream?", note)
    return figure


def dimension_figure(table: pl.DataFrame) -> Figure:
    """Effective rank and intrinsic dimension over depth."""
    variants = variants_of(table, "effective_rank")
    labels = {"effective_rank": "effective rank", "intrinsic_dimension": "intrinsic dimension"}
    rows = [
        [Panel(m, v, VARIANT_TITLES[v] if i == 0 else "", label if j == 0 else "") for j, v in enumerate(variants)]
        for i, (m, label) in enumerate(labels.items())
    ]
    figure, axes = grid_of_curves(table, rows)
    for row in axes:
        for panel in row:
            panel.set_ylim(bottom=0)
    n = int(table.filter(pl.col("measure") == "effective_rank")["n"].max())  # type: ignore[arg-type]
    headline(figure, "How many dimensions do features use?",
             f"{n} pictures (the effective rank cannot exceed their number); intrinsic dimension by TwoNN")  # fmt: skip
    return figure
