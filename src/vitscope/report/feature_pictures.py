"""Mosaics of feature pictures: images by layers, models by layers; likeness to a point, attention from a point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from vitscope.core.files import file_names
from vitscope.core.results import Results
from vitscope.report.attention_figures import models_of
from vitscope.report.features_heatmaps import headline, short
from vitscope.report.looks import text_colour
from vitscope.report.style import FORMATS, HEAT, INK, SEQUENTIAL, save_figure, sized, styled, without_grid

COLUMNS = 7  # layers in one mosaic, the last among them
TILE = 0.95  # inches
NOTE = "colours: second to fourth principal component of patch tokens; black: background by the first"


@dataclass(frozen=True)
class PcaPicture:
    """A mosaic for the page and for files. model: whose; "" for the one that shows all models."""

    name: str
    title: str
    model: str
    figure: Figure


def some_layers(depth: int, most: int = COLUMNS) -> list[int]:
    """Layers that are shown, evenly spread and the last among them, counted from 0.

    >>> some_layers(12, 4)
    [0, 4, 7, 11]
    """
    return sorted({round(i) for i in np.linspace(0, depth - 1, min(most, depth))})


def pca_pictures(results: Results) -> Iterator[PcaPicture]:
    """One mosaic of all models for the first image, then one for every model."""
    models = [(title, key) for title, key in models_of(results.table) if f"{title}/pca" in results.maps]
    if not models:
        return
    colours = {title: results.maps[f"{title}/pca"] for title, _ in models}
    images = {title: results.maps[f"{title}/pca.images"] for title, _ in models}
    if len(models) > 1:
        figure = models_mosaic({t: c[0] for t, c in colours.items()}, images[models[0][0]][0], dict(models))
        yield PcaPicture("pca-models", "all models, one image", "", figure)
    for title, name in file_names(title for title, _ in models).items():
        figure = images_mosaic(title, colours[title], images[title])
        yield PcaPicture(f"pca-{name}", title, title, figure)


def draw_pictures(results: Results, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    with styled():
        return [p for one in pca_pictures(results) for p in save_figure(one.figure, folder, one.name, formats=formats)]


def images_mosaic(title: str, colours: Tensor, images: Tensor) -> Figure:
    """A row per image, a column per layer. colours: uint8 (n, L, h, w, 3); images: uint8 (n, 3, H, W)."""
    layers = some_layers(colours.shape[1])
    figure, panels = tiles(len(images), 1 + len(layers), images.shape[-2] / images.shape[-1])
    for row, image, mine in zip(panels, images, colours, strict=True):
        row[0].imshow(image.permute(1, 2, 0).numpy())
        for panel, layer in zip(row[1:], layers, strict=True):
            panel.imshow(mine[layer].numpy())
    name_layers(panels[0, 1:], layers)
    headline(figure, f"What patches have in common: {short(title, 60)}", NOTE)
    return figure


def models_mosaic(colours: Mapping[str, Tensor], image: Tensor, teachings: Mapping[str, str]) -> Figure:
    """One image, a row per model, a column per layer. colours: title -> uint8 (L, h, w, 3); image: uint8 (3, H, W)."""
    columns = min(COLUMNS, max(len(mine) for mine in colours.values()))
    widest = max(len(short(title)) for title in colours)
    figure, panels = tiles(
        len(colours), 1 + columns, image.shape[-2] / image.shape[-1], left=0.2 + 0.07 * widest, gap=0.17
    )
    for row, (title, mine) in zip(panels, colours.items(), strict=True):
        row[0].imshow(image.permute(1, 2, 0).numpy())
        layers = some_layers(len(mine), columns)
        for panel, layer in zip(row[1:], layers, strict=False):
            panel.imshow(mine[layer].numpy())
            panel.set_title(f"{layer + 1}", fontsize=7, fontweight="normal", loc="center", pad=2)
        for panel in row[1 + len(layers) :]:
            panel.set_visible(False)
        colour = text_colour(teachings[title])
        name_row(row[0], short(title), color=colour)
    headline(figure, "One image as models see it", f"number: layer; {NOTE}")
    return figure


def likeness_figure(
    title: str, maps: Tensor, images: Sequence[Any], chosen: int, point: tuple[float, float], layers: Sequence[int]
) -> Figure:
    """Cosine of the patch at a point with every patch, layer by layer. maps: (n, L, h, w); point: x, y as shares."""
    first = np.asarray(images[0])
    figure, panels = tiles(len(images), 1 + len(layers), first.shape[0] / first.shape[1])
    for number, (row, image, mine) in enumerate(zip(panels, images, maps, strict=True)):
        row[0].imshow(np.asarray(image))
        if number == chosen:
            mark(row[0], point, np.asarray(image).shape)
        for panel, layer in zip(row[1:], layers, strict=True):
            panel.imshow(mine[layer].numpy(), cmap=SEQUENTIAL, vmin=0, vmax=1)
    name_layers(panels[0, 1:], layers)
    headline(
        figure, f"Alike the marked patch: {short(title, 60)}", "cosine with its token, dark is 1, white is 0 or less"
    )
    return figure


def point_attention_figure(
    title: str, rows: Tensor, image: Any, point: tuple[float, float], layers: Sequence[int]
) -> Figure:
    """Where the patch at a point looks: a row per layer, a column per head. rows: (L, H, h, w)."""
    pixels = np.asarray(image)
    heads = min(rows.shape[1], 12)
    figure, panels = tiles(len(layers), 1 + heads, pixels.shape[0] / pixels.shape[1], tile=0.8, left=0.3)
    for place, (row, layer) in enumerate(zip(panels, layers, strict=True)):
        row[0].imshow(pixels)
        mark(row[0], point, pixels.shape)
        name_row(row[0], f"{layer + 1}")
        for head, panel in enumerate(row[1:]):
            values = rows[layer, head].numpy()
            panel.imshow(values, cmap=HEAT, vmin=0, vmax=max(float(np.quantile(values, 0.99)), 1e-9))
            if place == 0:
                panel.set_title(f"{head + 1}", fontsize=8, fontweight="normal", loc="center", pad=3)
    shown = "" if heads == rows.shape[1] else f" (first {heads} of {rows.shape[1]})"
    headline(figure, f"Where the marked patch looks: {short(title, 60)}", f"rows: layers; columns: heads{shown}")
    return figure


def tiles(
    rows: int, columns: int, shape: float, *, tile: float = TILE, left: float = 0.1, gap: float = 0.03
) -> tuple[Figure, Any]:
    """A grid of panels without axes. shape: height over width of each; left, gap: inches beside and above rows."""
    tile = (sized(tile * columns + left, 1)[0] - left) / columns
    size = (tile * columns + left, (tile * shape + gap) * rows + 0.75)
    figure = Figure(figsize=size, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.02, h_pad=0.02, wspace=0.01, hspace=0.01)  # type: ignore[union-attr,call-arg]
    with without_grid():
        panels = figure.subplots(rows, columns, squeeze=False)
    for panel in panels.ravel():
        panel.set_axis_off()
    return figure, panels


def name_layers(panels: Sequence[Axes], layers: Sequence[int]) -> None:
    for panel, layer in zip(panels, layers, strict=True):
        panel.set_title(f"layer {layer + 1}", fontsize=8, fontweight="normal", loc="center", pad=3)


def name_row(panel: Axes, name: str, color: str = INK) -> None:
    """A name to the left of a row's first panel."""
    panel.annotate(name, (0, 0.5), (-6, 0), xycoords="axes fraction", textcoords="offset points", fontsize=8,
                   ha="right", va="center", color=color)  # fmt: skip


def mark(panel: Axes, point: tuple[float, float], shape: Sequence[int]) -> None:
    """A ring at a point that is seen on bright and on dark ground."""
    x, y = point[0] * shape[1] - 0.5, point[1] * shape[0] - 0.5
    panel.plot([x], [y], marker="o", markersize=8, markerfacecolor="none", markeredgecolor="white", markeredgewidth=3)
    panel.plot([x], [y], marker="o", markersize=8, markerfacecolor="none", markeredgecolor=INK, markeredgewidth=1.3)
