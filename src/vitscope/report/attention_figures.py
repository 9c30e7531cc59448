"""Figures of the attention study: mosaics of every head, distance and saliency over depth."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from torch import Tensor

from vitscope.attention.head_kinds import direction
from vitscope.attention.kinds import KINDS
from vitscope.core.files import file_names
from vitscope.core.results import Results
from vitscope.report.attention_mosaic import Mosaic
from vitscope.report.looks import ModelStyle, model_styles
from vitscope.report.style import (
    FAINT,
    FORMATS,
    HEAT,
    INK,
    SEQUENTIAL,
    folded,
    save_figure,
    shrink_letters,
    sized,
    styled,
    wanted_width,
)

KIND_COLOURS = {  # none of them is the colour of a teaching: they mean kinds of heads, as frames and squares
    "cls-bound": "#2f3136",
    "offset local": "#007878",
    "strict local": "#2a2fa8",
    "axial local": "#7d6b00",
    "soft local": "#a3c64a",
    "global": "#E0E0E0",
}


SALIENCY = {"saliency_best_head": "IoU with object masks", "saliency_ap_best_head": "average precision"}


def draw_attention(results: Results, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write every figure of the attention study that the results allow; returns the files."""
    figures: dict[str, Figure] = {}
    table = results.table
    with styled():
        titles = [title for title, _ in models_of(table.filter(pl.col("measure") == "attention_distance"))]
        for title, name in file_names(titles).items():
            maps = {key.removeprefix(f"{title}/"): v for key, v in results.maps.items() if key.startswith(f"{title}/")}
            if "cls" in maps:
                figures[f"cls-maps-{name}"] = cls_mosaic(title, maps["cls"])
            else:
                falls = "where attention falls, mean over spatial tokens"
                figures[f"spatial-maps-{name}"] = cls_mosaic(title, maps["pure"], falls)
            if "pool" in maps:
                looks, last = "where the pooling head looks", len(maps["kind"])
                figures[f"pool-maps-{name}"] = cls_mosaic(title, maps["pool"], looks, first=last)
            figures[f"aligned-{name}"] = aligned_mosaic(title, maps)
        if titles:
            figures["attention-distance"] = distance_figure(table)
        if not table.filter(pl.col("measure") == "saliency_best_head").is_empty():
            figures["saliency"] = saliency_figure(table)
        return [path for name, f in figures.items() for path in save_figure(f, folder, name, formats=formats)]


def models_of(table: pl.DataFrame) -> list[tuple[str, str]]:
    """(title, teaching) of the models, in the order they were studied."""
    return table.select("model", "teaching").unique(maintain_order=True).rows()


def cls_mosaic(title: str, maps: Tensor, where: str = "where CLS looks", first: int = 1) -> Figure:
    """Mean attention maps, layer by layer (rows, from the first one on) and head by head. maps: (L, H, h, w).

    Each map has its own scale, since what matters is where a head looks; but never finer than from 0 to three times
    its mean, so that an even map looks even.
    """
    mosaic = Mosaic(maps.shape[0], maps.shape[1], maps.shape[2] / maps.shape[3], first)
    for layer in range(maps.shape[0]):
        for head in range(maps.shape[1]):
            values = maps[layer, head].numpy()
            mosaic.show(layer, head, values, cmap=HEAT, vmin=0, vmax=max(values.max(), 3 * values.mean()))
    return mosaic.titled(title, f"{where} (mean over images)")


def aligned_mosaic(title: str, maps: dict[str, Tensor]) -> Figure:
    """Aligned maps of every head, framed by the head's kind; the token that looks is at the centre."""
    aligned, kind, offset, axis = maps["aligned.corrected"], maps["kind"], maps["kind.offset"], maps["kind.axis"]
    layers, heads = kind.shape
    h, w = (aligned.shape[2] + 1) // 2, (aligned.shape[3] + 1) // 2
    reach_i, reach_j = (3 * h) // 4, (3 * w) // 4  # offsets beyond it are seen by few sources: noise
    crop = aligned[:, :, h - 1 - reach_i : h + reach_i, w - 1 - reach_j : w + reach_j]
    mosaic = Mosaic(layers, heads, crop.shape[2] / crop.shape[3])
    for layer in range(layers):
        for head in range(heads):
            values = crop[layer, head].numpy()  # never finer than 5 times uniform attention: an even head looks even
            most = max(values.max(), 5 / (h * w))
            mosaic.show(layer, head, np.sqrt(values), cmap=SEQUENTIAL, vmin=0, vmax=np.sqrt(most))
            name = KINDS[int(kind[layer, head])]
            mosaic.frame(layer, head, KIND_COLOURS[name], 0.8 if name == "global" else 2.4)
            if name == "offset local":
                mosaic.note(layer, head, _arrow(*offset[layer, head].tolist()))
            elif name == "axial local":
                mosaic.note(layer, head, "\u2195" if axis[layer, head] else "\u2194")
    counts = {name: int((kind == KINDS.index(name)).sum()) for name in KINDS}
    handles = [Patch(facecolor="none", edgecolor=KIND_COLOURS[k], linewidth=2.4, label=f"{k} ({counts[k]})")
               for k in KINDS if counts[k]]  # fmt: skip
    mosaic.figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(0.0, -0.005), ncols=len(handles),
                         fontsize=8, handlelength=1.2, columnspacing=1.4)  # fmt: skip
    return mosaic.titled(title, "attention by offset from the token that looks; frame: kind of head")


def _arrow(down: int, across: int) -> str:
    arrows = {
        (-1, 0): "\u2191", (1, 0): "\u2193", (0, -1): "\u2190", (0, 1): "\u2192",
        (-1, -1): "\u2196", (-1, 1): "\u2197", (1, -1): "\u2199", (1, 1): "\u2198",
    }  # fmt: skip
    sign = (int(np.sign(down)), int(np.sign(across)))
    far = max(abs(down), abs(across))
    return arrows.get(sign, direction(down, across)) + (str(far) if far > 1 else "")


def distance_figure(table: pl.DataFrame) -> Figure:
    """Attention distance over depth: one dot per head, a line through each model's mean."""
    rows = table.filter((pl.col("measure") == "attention_distance") & (pl.col("variant") == "grid"))
    models = models_of(rows)
    styles = model_styles(models)
    depth = int(rows["layer"].max())  # type: ignore[arg-type]
    figure = Figure(figsize=sized(max(6.4, 0.55 * depth + 2.4), 3.9))
    axes = figure.subplots()
    for title, _ in models:
        mine, style = rows.filter(pl.col("model") == title), styles[title]
        axes.scatter(mine["layer"], mine["value"], s=11, color=style.colour, alpha=0.45, linewidths=0)
        mean = mine.group_by("layer").agg(pl.col("value").mean()).sort("layer")
        axes.plot(mean["layer"], mean["value"], **style.curve())
    axes.set(title="How far spatial tokens look", xlabel="layer", ylabel="attention distance\n(longer grid edge = 1)")
    axes.set_xticks(range(1, depth + 1, 1 if depth <= 12 or wanted_width() is None else 3))
    axes.set_ylim(0, max(0.62, float(rows["value"].max()) * 1.08))  # type: ignore[arg-type]
    below = -0.2 if wanted_width() is None else -0.62 / figure.get_figheight()
    axes.text(0, below, "dots: heads; line: mean over heads", transform=axes.transAxes, color=FAINT, fontsize=8)
    place_legend(axes, list(styles.values()))
    return figure


def saliency_figure(table: pl.DataFrame) -> Figure:
    """IoU and average precision of the best head with object masks over depth, for each source of attention."""
    rows = table.filter(pl.col("measure").is_in(list(SALIENCY)) & (pl.col("protocol") == "corrected"))
    rows = rows.with_columns(source=pl.col("variant").str.split(",").list.first())  # without the mass, if another
    models = models_of(rows)
    styles = model_styles(models)
    titles = {"cls": "from CLS", "spatial": "from spatial tokens", "centre": "from the centre token"}
    sources = [s for s in titles if s in rows["source"].unique().to_list()]
    measures = [m for m in SALIENCY if m in rows["measure"].unique().to_list()]
    depth = int(rows["layer"].max())  # type: ignore[arg-type]
    figure = Figure(figsize=sized(1 + 3.5 * len(sources), 0.9 + 2.8 * len(measures)))
    panels = figure.subplots(len(measures), len(sources), sharey="row", squeeze=False)
    for (number, measure), (column, source) in product(enumerate(measures), enumerate(sources)):
        panel = panels[number, column]
        here = rows.filter((pl.col("measure") == measure) & (pl.col("source") == source))
        for title, _ in models:
            mine, style = here.filter(pl.col("model") == title).sort("layer"), styles[title]
            panel.fill_between(mine["layer"], mine["ci_low"], mine["ci_high"], color=style.colour, alpha=0.12, lw=0)
            panel.plot(mine["layer"], mine["value"], **style.curve())
        panel.set(
            title=folded(titles[source]) if number == 0 else "", xlabel="layer" if number == len(measures) - 1 else ""
        )
        panel.set_xticks(range(1, depth + 1, 1 if depth <= 12 and wanted_width() is None else 3))
        panel.set_ylim(bottom=0)
        panels[number, 0].set_ylabel(f"{SALIENCY[measure]}\n(best head of each layer)")
    place_legend(panels[0, -1], list(styles.values()))
    figure.suptitle(
        "Does attention find the object?", x=0.07, y=1.0, ha="left", fontsize=11, fontweight="bold", color=INK
    )
    share, disc = (table.filter(pl.col("measure") == name)["value"] for name in ("object_share", "saliency_disc"))
    known = "" if share.is_empty() else f"; IoU of all patches, and average precision of no knowledge: {share[0]:.2f}"
    known += "" if disc.is_empty() else f"; IoU of the best centred disc: {disc[0]:.2f}"
    note = f"band: 95 % bootstrap interval over images{known}"
    if (wanted := wanted_width()) is not None:
        note = textwrap.fill(note, int(18 * wanted))
    figure.text(0.07, -0.02, note, color=FAINT, fontsize=8, va="top" if wanted else "baseline")
    shrink_letters(figure)
    figure.tight_layout()
    return figure


def place_legend(axes: Axes, styles: list[ModelStyle]) -> None:
    """A legend to the right of the axes, in as many columns as it needs; below a narrow figure."""
    handles = [Line2D([], [], **style.curve()) for style in styles]
    if (wanted := wanted_width()) is not None:
        figure = axes.figure
        assert isinstance(figure, Figure)
        columns = max(1, int(wanted / (0.42 + 0.062 * max(len(style.title) for style in styles))))
        figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(0.0, -0.3 / figure.get_figheight()),
                      ncols=columns, fontsize=8, handlelength=2.2, columnspacing=1.2)  # fmt: skip
        return
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.02), ncols=1 + (len(styles) - 1) // 14,
                fontsize=8, handlelength=2.4, labelspacing=0.6)  # fmt: skip
