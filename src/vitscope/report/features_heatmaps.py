"""Heat maps of the feature study: models against models, depth against depth."""

from __future__ import annotations

import textwrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from torch import Tensor

from vitscope.report.looks import text_colour
from vitscope.report.style import FAINT, INK, SEQUENTIAL, across, folded, shrink_letters, sized, wanted_width

Model = tuple[str, str]  # title, teaching

TOKEN_TITLES = {"cls": "CLS token", "spatial": "spatial tokens", "all": "all tokens"}
ABSENT = "#ececf1"


def model_heatmap(axes: Axes, matrix: np.ndarray, models: list[Model], *, low: np.ndarray | None = None,
                  high: np.ndarray | None = None, name_rows: bool = True, wide: int = 1) -> AxesImage:  # fmt: skip
    """One (M, M) matrix of similarities, with numbers in the cells while they can be read. wide: panels of a row."""
    count = len(models)
    shown = np.ma.masked_invalid(matrix)
    image = axes.imshow(shown, cmap=_with_absent(SEQUENTIAL), vmin=0, vmax=1)
    axes.grid(False)
    for side in axes.spines.values():
        side.set_visible(False)
    room = (wanted_width() or 99) / (wide * count + 2)  # inches of a cell, at least
    size = 9 if count <= 4 else 8 if count <= 8 else 6.5 if count <= 14 else 5
    for i in range(count):
        for j in range(count):
            value = matrix[i, j]
            if np.isnan(value) or room < 0.3:
                continue
            text = f"{value:.2f}"
            if low is not None and high is not None and count <= 4 and i != j and not np.isnan(low[i, j]):
                text += f"\n{low[i, j]:.2f} to {high[i, j]:.2f}"
            text = text.replace("-0.00", "0.00")
            axes.text(j, i, text if count <= 14 else text.replace("0.", "."), ha="center", va="center", fontsize=size,
                      linespacing=1.5, color="white" if value > 0.55 else INK)  # fmt: skip
    name_models(axes, models, rows=name_rows)
    return image


def name_models(axes: Axes, models: list[Model], *, rows: bool = True, places: list[float] | None = None) -> None:
    """Model names on both sides, in the colour of their teaching."""
    at = places or [float(i) for i in range(len(models))]
    size = 9 if len(models) <= 8 else 8 if len(models) <= 14 else 7
    flat = len(models) <= 3 and longest_line(models) <= 14
    axes.set_xticks(at, [short(title) for title, _ in models], rotation=0 if flat else 90, fontsize=size)
    axes.set_yticks(at, [short(title) if rows else "" for title, _ in models], fontsize=size)
    for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
        for label, (_, key) in zip(labels, models, strict=True):
            label.set(color=text_colour(key), fontweight="bold")


def short(title: str, most: int = 24) -> str:
    """A title that fits on an axis: a long one is broken at its spaces, and its long words keep both ends.

    >>> short("Untrained vit_tiny_patch16_224").splitlines()
    ['Untrained', 'vit_tiny_patch16_224']
    """
    most = most if (wanted_width() or 9) > 4 else min(most, 14)
    lines = title.split(" ") if len(title) > most else [title]
    return "\n".join(s if len(s) <= most else f"{s[: most // 2]}…{s[-(most // 2 - 1) :]}" for s in lines)


def longest_line(models: list[Model]) -> int:
    """Characters of the longest line among the models' short titles."""
    return max(len(line) for title, _ in models for line in short(title).splitlines())


def last_layer_figure(maps: dict[str, Tensor], models: list[Model], images: int) -> Figure:
    """Last-layer CKA between models: CLS beside spatial tokens beside all."""
    kinds = [k for k in TOKEN_TITLES if f"models/cka.last.{k}" in maps]
    cell = 1.15 if len(models) <= 3 else 0.8 if len(models) <= 5 else 0.5 if len(models) <= 8 else 0.3
    side, names = cell * len(models), 0.08 * longest_line(models)
    rows, columns = (1, len(kinds)) if across(3) == 3 else (len(kinds), 1)
    figure = Figure(
        figsize=sized((side + 0.25) * columns + names + 0.9, (side + 0.25) * rows + names + 0.15, lowest=0.35),
        layout="constrained",
    )
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    widest = 0.0
    for number, (panel, kind) in enumerate(zip(panels, kinds, strict=True)):
        sides = [maps[f"models/cka.last.{kind}{suffix}"].numpy() for suffix in ("", ".low", ".high", ".null")]
        image = model_heatmap(
            panel, sides[0], models, low=sides[1], high=sides[2], name_rows=number % columns == 0, wide=columns
        )
        if number // columns < rows - 1:
            panel.set_xticklabels([])
        panel.set_title(TOKEN_TITLES[kind])
        widest = max(widest, float(np.nanmax(sides[3], initial=0.0)))
    colour_bar(figure, image, panels, "CKA")
    note = f"{images} images"
    if widest > 0:
        note += f"; features that have nothing in common score 0 ± {2 * widest:.2f} (two deviations)"
    if any(maps[f"models/cka.last.{kind}"].isnan().any() for kind in kinds):
        note += "; grey: no such token, or the same for all images"
    headline(figure, "How alike are the last layers?", note)
    return figure


def depth_figure(maps: dict[str, Tensor], models: list[Model], kind: str) -> Figure:
    """CKA of every depth with every depth: models with themselves on the diagonal, pairs beside it."""
    having = [model for model in models if f"{model[0]}/cka.depth.{kind}" in maps]
    draw = _depth_panels if len(having) <= 4 else _depth_mosaic
    figure, image, axes = draw(maps, having, kind)
    colour_bar(figure, image, axes, "CKA")
    norms = any(_has_norms(maps, kind, title) for title, _ in having)
    where = "after norm1 and norm2 of every layer" if norms else "every layer"
    note = f"{where}, down and across from the first one; framed: a model with itself"
    if any(maps[f"{title}/cka.depth.{kind}"].isnan().any() for title, _ in having):
        note += "; grey: the same for all images"
    headline(figure, f"Which depths are alike? {TOKEN_TITLES[kind]}", note)
    return figure


def _depth_panels(maps: dict[str, Tensor], models: list[Model], kind: str) -> tuple[Figure, AxesImage, list[Axes]]:
    """A panel per pair, with layer numbers: for a few models."""
    count = len(models)
    side = 2.7 if count <= 2 else 2.1
    figure = Figure(figsize=sized(side * count + 1.7, side * count + 1.0, lowest=0))
    figure.set_layout_engine("constrained", w_pad=0.02, h_pad=0.02, wspace=0, hspace=0)
    panels = figure.subplots(count, count, squeeze=False)
    for i, (a, key_a) in enumerate(models):
        for j, (b, key_b) in enumerate(models):
            panel: Axes = panels[i, j]
            matrix = _depth_matrix(maps, kind, a, b)
            image = panel.imshow(matrix, cmap=_with_absent(SEQUENTIAL), vmin=0, vmax=1, aspect="auto")
            panel.grid(False)
            panel.set(xticks=[], yticks=[])
            for spine in panel.spines.values():
                spine.set(visible=i == j, color=INK, linewidth=1.2)
            if j == 0:
                panel.set_ylabel(short(a), color=text_colour(key_a), fontweight="bold")
                layer_ticks(panel.yaxis, matrix.shape[0])
            if i == count - 1:
                panel.set_xlabel(short(b), color=text_colour(key_b), fontweight="bold")
                layer_ticks(panel.xaxis, matrix.shape[1])
    return figure, image, list(panels.ravel())


def _depth_mosaic(maps: dict[str, Tensor], models: list[Model], kind: str) -> tuple[Figure, AxesImage, list[Axes]]:
    """All pairs as one image, every matrix at the same size: for many models."""
    count, cell, gap = len(models), 48, 3
    canvas = np.full((count * (cell + gap) - gap, count * (cell + gap) - gap, 4), 1.0)
    colours = _with_absent(SEQUENTIAL)
    for i, (a, _) in enumerate(models):
        for j, (b, _) in enumerate(models):
            matrix = _depth_matrix(maps, kind, a, b)
            rows, columns = (np.arange(cell) * size // cell for size in matrix.shape)
            top, left = i * (cell + gap), j * (cell + gap)
            coloured = colours(np.ma.masked_invalid(np.clip(matrix, 0, 1)))
            canvas[top : top + cell, left : left + cell] = coloured[rows][:, columns]
    side = min(9.0, 0.95 * count) if count <= 10 else 0.62 * count
    figure = Figure(figsize=sized(side + 1.9, side + 1.0, lowest=0), layout="constrained")
    axes = figure.subplots()
    axes.imshow(canvas)
    axes.set(xlim=(-2, canvas.shape[1] + 1), ylim=(canvas.shape[0] + 1, -2))  # room for the frames
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    for i in range(count):
        corner = (i * (cell + gap) - 1, i * (cell + gap) - 1)
        axes.add_patch(Rectangle(corner, cell + 1, cell + 1, fill=False, edgecolor=INK, linewidth=1.1))
    name_models(axes, models, places=[i * (cell + gap) + cell / 2 for i in range(count)])
    labelled = models[:1] if figure.get_figwidth() / count < 0.6 else models
    for j, (title, _) in enumerate(labelled):  # first and last layer, above the columns
        layers = len(maps[f"{title}/cka.depth.{kind}"]) // (2 if _has_norms(maps, kind, title) else 1)
        for at, name, where in ((0, "1", "left"), (cell, str(layers), "right")):
            axes.text(j * (cell + gap) + at, -3, name, ha=where, va="bottom", fontsize=7, color=FAINT)
    return figure, AxesImage(axes, cmap=SEQUENTIAL, norm=Normalize(0, 1)), [axes]


def _with_absent(colours: Colormap) -> Colormap:
    return colours.with_extremes(bad=ABSENT)


def _depth_matrix(maps: dict[str, Tensor], kind: str, a: str, b: str) -> np.ndarray:
    if a == b:
        return maps[f"{a}/cka.depth.{kind}"].numpy()
    pair = maps.get(f"{a}/cka.depth.{kind}.{b}")
    return pair.numpy() if pair is not None else maps[f"{b}/cka.depth.{kind}.{a}"].T.numpy()


def _has_norms(maps: dict[str, Tensor], kind: str, model: str) -> bool:
    """Two sites per layer."""
    residual = maps.get(f"{model}/residual.attention.{kind}")
    return residual is None or len(maps[f"{model}/cka.depth.{kind}"]) == 2 * len(residual)


def layer_ticks(axis, sites: int) -> None:  # type: ignore[no-untyped-def]
    """Layer numbers beside a depth map; two sites are one layer."""
    layers = sites // 2
    step = 1 if layers <= 6 else 3 if layers <= 12 else 6
    wanted = [1, *range(step, layers + 1, step)] if step > 1 else list(range(1, layers + 1))
    axis.set_ticks([2 * layer - 1.5 for layer in wanted], [str(layer) for layer in wanted], fontsize=7)


def similarity_figure(maps: dict[str, Tensor], models: list[Model], titles: dict[str, str], images: int) -> Figure:
    """Other similarities of the last layers: scores above the diagonal, what unrelated features get below it."""
    kinds = [k for k in ("cls", "spatial") if any(f"models/similarity.{n}.{k}" in maps for n in titles)]
    names = [n for n in titles if any(f"models/similarity.{n}.{k}" in maps for k in kinds)]
    cell = 0.85 if len(models) <= 3 else 0.55 if len(models) <= 8 else 0.26
    side, room = cell * len(models), 0.08 * longest_line(models)
    narrow = across(len(names)) < len(names)  # names below each other then
    rows, columns = (len(names), len(kinds)) if narrow else (len(kinds), len(names))
    figure = Figure(
        figsize=sized((side + 0.15) * columns + room + 1.1, (side + 0.1) * rows + room + 0.4, lowest=0.3),
        layout="constrained",
    )
    panels = figure.subplots(rows, columns, squeeze=False)
    for row, column in np.ndindex(rows, columns):
        name, kind = (names[row], kinds[column]) if narrow else (names[column], kinds[row])
        score = maps[f"models/similarity.{name}.{kind}"].numpy()
        null = maps[f"models/similarity.{name}.{kind}.null"].numpy()
        both = np.where(np.tri(len(models), k=-1, dtype=bool), null, score)
        panel: Axes = panels[row, column]
        image = model_heatmap(panel, both, models, name_rows=column == 0, wide=columns)
        if row < rows - 1:
            panel.set_xticklabels([])
        tokens = "CLS token" if kind == "cls" else "mean spatial token"
        above, beside = (folded(tokens), folded(titles[name])) if narrow else (titles[name], tokens)
        panel.set_title(above if row == 0 else "", fontsize=9)
        if column == 0:
            panel.set_ylabel(beside, color=FAINT)
    colour_bar(figure, image, list(panels.ravel()), "similarity")
    note = f"{images} images; above the diagonal the score, below it the score when images are shuffled"
    headline(figure, "Other ways to say how alike the last layers are", note)
    return figure


def colour_bar(figure: Figure, image: AxesImage, panels, label: str) -> None:  # type: ignore[no-untyped-def]
    bar = figure.colorbar(image, ax=panels, fraction=0.03, pad=0.012, aspect=18, shrink=0.9)
    bar.set_label(label)
    bar.outline.set_visible(False)


def headline(figure: Figure, title: str, note: str) -> None:
    """A question as title, and below it what a reader must know. The layout is settled: it is not solved again."""
    height, wanted = figure.get_figheight(), wanted_width()
    shrink_letters(figure)
    figure.draw_without_rendering()
    figure.set_layout_engine()
    large, small = (12.0, 8.0) if wanted is None else (8.5, 6.0)
    if wanted is not None:  # a letter is a little more than half as wide as high, a bold one more so
        title, note = (textwrap.fill(title, int(95 * wanted / large)), textwrap.fill(note, int(112 * wanted / small)))
    above = 0.4 + small / 72 * 1.25 * note.count("\n")
    figure.text(0.01, 1 + above / height, title, ha="left", va="bottom", fontsize=large, fontweight="bold", color=INK)
    figure.text(0.01, 1 + 0.16 / height, note, ha="left", va="bottom", fontsize=small, color=FAINT)
