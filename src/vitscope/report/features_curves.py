"""Curves over depth of the feature study: clusters, the residual stream, dimensions."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vitscope.core.teachings import teaching
from vitscope.report.attention_figures import models_of, place_legend
from vitscope.report.features_heatmaps import headline
from vitscope.report.looks import model_styles, text_colour
from vitscope.report.style import FAINT, INK, across, sized

CROWD = 8  # more models are drawn teaching by teaching
SMALLEST_RATIO = 0.01  # an untrained CLS token enters the first layer almost empty: 0.00001 would flatten all curves

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
    title: str
    label: str  # of the value's axis


class Lines:
    """The models of a table, how each is drawn, and its values over depth."""

    def __init__(self, table: pl.DataFrame) -> None:
        self.table = table
        self.models = models_of(table)
        self.styles = model_styles(self.models)
        self.depths: dict[str, int] = dict(table.group_by("model").agg(pl.col("layer").max()).rows())
        same = set(self.depths.values())
        self.depth = same.pop() if len(same) == 1 else None  # None: models differ, and relative depth is drawn
        self.axis_label = "layer" if self.depth else "depth (share of all layers)"

    @lru_cache  # noqa: B019  (lives as long as one figure)
    def of(self, panel: Panel) -> dict[str, np.ndarray]:
        """model -> (4, layers): place, value, low, high."""
        rows = self.table.filter((pl.col("measure") == panel.measure) & (pl.col("variant") == panel.variant))
        found = {}
        for (model,), mine in rows.sort("layer").partition_by("model", as_dict=True).items():
            numbers = mine.select("layer", "value", "ci_low", "ci_high").to_numpy().T.astype(float)
            numbers[0] /= 1 if self.depth else self.depths[str(model)]
            found[str(model)] = numbers
        return found

    def draw(self, axes: Axes, panel: Panel, bright: Container[str]) -> None:
        """The bright models in colour, with their intervals; the others as grey lines behind."""
        lines = self.of(panel)
        behind = [np.append(lines[m][:2], [[np.nan], [np.nan]], axis=1) for m in lines if m not in bright]
        if behind:
            axes.plot(*np.concatenate(behind, axis=1), color="#d9d9e0", lw=0.8, zorder=1)
        for model in (m for m in self.styles if m in lines and m in bright):
            place, value, low, high = lines[model]
            style = self.styles[model]
            axes.fill_between(place, low, high, color=style.colour, alpha=0.13, lw=0)
            axes.plot(place, value, **style.curve() | {"markersize": 4.5 if self.depth else 3.5})
        if self.depth:
            few = self.depth <= 6
            step = 3 if self.depth <= 12 else 6
            axes.set_xticks(range(1, self.depth + 1) if few else [1, *range(step, self.depth + 1, step)])
            axes.set_xlim(0.6, self.depth + 0.4)
        else:
            axes.set_xlim(0, 1.03)


Grid = list[list[tuple[Axes, Panel]]]  # rows of panels that share their scale


def curves(table: pl.DataFrame, rows: Sequence[Sequence[Panel]], *, width: float = 3.1) -> tuple[Figure, Grid]:
    """A few models: panels as given, one legend. Many: a column per teaching, the other models in grey behind."""
    lines = Lines(table)
    if len(lines.models) <= CROWD:
        rows = wrapped(rows)
    return _together(lines, rows, width) if len(lines.models) <= CROWD else _by_teaching(lines, rows)


def wrapped(rows: Sequence[Sequence[Panel]]) -> list[Sequence[Panel]]:
    """Rows that are too long for a narrow figure, cut; each measure begins a row of its own."""
    most = across(max(len(row) for row in rows))
    return [row[start : start + most] for row in rows for start in range(0, len(row), most)]


def _together(lines: Lines, rows: Sequence[Sequence[Panel]], width: float) -> tuple[Figure, Grid]:
    figure = Figure(figsize=sized(width * len(rows[0]) + 1.9, 2.55 * len(rows) + 0.3), layout="constrained")
    axes = figure.subplots(len(rows), len(rows[0]), squeeze=False, sharex=True)
    grid: Grid = []
    for i, row in enumerate(rows):
        grid.append(list(zip(axes[i], row, strict=False)))
        for panel in axes[i, len(row) :]:
            panel.set_visible(False)
        for j, (panel, what) in enumerate(grid[i]):
            lines.draw(panel, what, lines.styles)
            same = i > 0 and j < len(rows[i - 1]) and rows[i - 1][j].title == what.title
            panel.set_title("" if same else what.title)
            panel.set_ylabel(what.label if j == 0 else "")
            if i == len(rows) - 1:
                panel.set_xlabel(lines.axis_label)
    place_legend(axes[0, -1], list(lines.styles.values()))
    return figure, grid


def _by_teaching(lines: Lines, rows: Sequence[Sequence[Panel]]) -> tuple[Figure, Grid]:
    groups: dict[str, list[str]] = {}
    for title, key in lines.models:
        groups.setdefault(key, []).append(title)
    tallest = max(-(-len(titles) // 2) for titles in groups.values())  # lines of a legend
    panels = [panel for row in rows for panel in row]
    figure = Figure(figsize=sized(1.95 * len(groups) + 0.9, 1.75 * len(panels) + 0.9), layout="constrained")
    axes = figure.subplots(len(panels), len(groups), squeeze=False, sharex=True, sharey="row")
    for i, panel in enumerate(panels):
        for j, (key, titles) in enumerate(groups.items()):
            lines.draw(axes[i, j], panel, titles)
            if i == 0:
                axes[i, j].set_title(teaching(key).title, color=text_colour(key), pad=8 + 11 * tallest)
                handles = [Line2D([], [], **lines.styles[title].curve()) for title in titles]
                axes[i, j].legend(handles=handles, loc="lower left", bbox_to_anchor=(-0.04, 0.99), fontsize=6.5,
                                  handlelength=1.8, handletextpad=0.4, columnspacing=0.8, borderpad=0.1,
                                  labelspacing=0.25, ncols=2)  # fmt: skip
        axes[i, 0].set_ylabel(f"{panel.label}\n{panel.title}", fontsize=8)
    figure.supxlabel(lines.axis_label, fontsize=9, color=INK)
    return figure, [[(one, panel) for one in row] for row, panel in zip(axes, panels, strict=True)]


def variants_of(table: pl.DataFrame, measure: str) -> list[str]:
    there = set(table.filter(pl.col("measure") == measure)["variant"])
    return [variant for variant in VARIANT_TITLES if variant in there]


def clustering_figure(table: pl.DataFrame, measures: dict[str, str], title: str) -> Figure:
    """Scores of clusters over depth. measures: name -> label of the axis."""
    variants = variants_of(table, next(iter(measures)))
    rows = [
        [Panel(m, variant, VARIANT_TITLES[variant], label) for variant in variants] for m, label in measures.items()
    ]
    figure, grid = curves(table, rows)
    for row in grid:
        for axes, panel in row:
            if panel.measure == "purity":
                _draw_chance(axes, table, panel.variant)
        for points in ("images", "regions"):  # panels about the same points share their scale
            same = [axes for axes, panel in row if _points(panel.variant) == points]
            if same:
                bottom, top = _reach(same)
                if row[0][1].measure != "purity":  # whose zero is what chance gives
                    bottom = min(0, bottom)
                for axes in same:
                    axes.set_ylim(bottom, top)
    counts = dict.fromkeys(f"{_count(table, v)} {_points(v)}" for v in variants)
    note = f"k-means of {' and '.join(counts)}, k = number of classes; band: lowest to highest seed"
    if "purity" in measures:
        note += "; dashed: labels shuffled"
    else:
        note += "; normalised mutual information, adjusted Rand index (0 is chance)"
    headline(figure, title, note)
    return figure


def _count(table: pl.DataFrame, variant: str) -> int:
    rows = table.filter((pl.col("measure") == "purity") & (pl.col("variant") == variant))
    return int(rows["n"].max())  # type: ignore[arg-type]


def _points(variant: str) -> str:
    return "regions" if "regions" in variant else "images"


def _draw_chance(axes: Axes, table: pl.DataFrame, variant: str) -> None:
    rows = table.filter((pl.col("measure") == "purity_chance") & (pl.col("variant") == variant))
    chance = float(rows["value"].mean() or 0)  # type: ignore[arg-type]
    axes.axhline(chance, color=FAINT, lw=1.2, ls=(0, (3, 2)), zorder=1.5)


def residual_figure(table: pl.DataFrame) -> Figure:
    """What the skip carries against what each branch adds: norms above, CKA below."""
    there = set(table.filter(pl.col("measure") == "skip_over_branch")["variant"])
    names = {"attention/cls": "attention, CLS", "attention/spatial": "attention, spatial", "mlp/cls": "MLP, CLS",
             "mlp/spatial": "MLP, spatial"}  # fmt: skip
    labels = {"skip_over_branch": "|skip| / |branch|", "residual_cka": "CKA of skip with branch"}
    given = set(table["measure"])  # features that are the same for all images have no CKA
    rows = [[Panel(m, v, names[v], label) for v in names if v in there] for m, label in labels.items() if m in given]
    figure, grid = curves(table, rows, width=2.6)
    panels = [pair for row in grid for pair in row]
    ratios = [axes for axes, panel in panels if panel.measure == "skip_over_branch"]
    for axes in ratios:
        axes.set_yscale("log")
        axes.axhline(1, color=INK, lw=1, ls=(0, (4, 2)), zorder=1)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_formatter(lambda *_: "")
    similar = [axes for axes, panel in panels if panel.measure == "residual_cka"]
    lowest, highest = _reach(ratios)
    note = "above the dashed line the skip connection carries more than the branch adds; band: 95 % interval"
    if lowest < SMALLEST_RATIO:
        lowest = SMALLEST_RATIO
        note += f"; ratios below {SMALLEST_RATIO:g} are off the scale"
    for axes in ratios:
        axes.set_ylim(lowest, highest)
    if similar:
        floor = min(0.0, _reach(similar)[0])
        for axes in similar:
            axes.set_ylim(floor, 1.02)
        if table.filter(pl.col("measure") == "residual_cka")["ci_low"].is_nan().all():
            note += "; too few images for an interval of CKA"
    headline(figure, "Who writes into the residual stream?", note)
    return figure


def _reach(panels: Sequence[Axes]) -> tuple[float, float]:
    limits = [axes.get_ylim() for axes in panels]
    return min(low for low, _ in limits), max(high for _, high in limits)


def dimension_figure(table: pl.DataFrame) -> Figure:
    """Effective rank and intrinsic dimension over depth."""
    labels = {"effective_rank": "effective rank", "intrinsic_dimension": "intrinsic dimension"}
    variants = variants_of(table, "effective_rank")
    rows = [[Panel(m, v, VARIANT_TITLES[v], label) for v in variants] for m, label in labels.items()]
    figure, grid = curves(table, rows)
    for row in grid:
        for axes, _ in row:
            axes.set_ylim(bottom=0)
    n = int(table.filter(pl.col("measure") == "effective_rank")["n"].max())  # type: ignore[arg-type]
    note = f"{n} images (the effective rank cannot exceed their number); intrinsic dimension by TwoNN"
    headline(figure, "How many dimensions do features use?", note)
    return figure
