"""Small maps side by side, a row for each layer and a column for each head, in one set of axes.

Axes of their own for each map would cost more to draw than everything in them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from vitscope.report.style import FAINT, INK, sized

GAP = 0.1  # between maps, as a share of a map's width
TOP, LEFT = 0.92, 0.26  # inches, for titles and the numbers of layers


class Mosaic:
    """Maps are 1 wide and `ratio` high, in units of the axes; y points down. first: number of the first layer."""

    def __init__(self, layers: int, heads: int, ratio: float, first: int = 1) -> None:
        self.ratio = ratio
        side = 0.71 if heads <= 12 else 0.55  # inches
        wide, tall = heads + (heads - 1) * GAP, layers * ratio + (layers - 1) * GAP
        side = min(side, (sized(LEFT + side * wide, 1)[0] - LEFT) / wide)
        width, height = LEFT + side * wide, TOP + side * tall
        self.figure = Figure(figsize=(width, height))
        self.axes: Axes = self.figure.add_axes((LEFT / width, 0, side * wide / width, side * tall / height))
        self.axes.set(xlim=(0, wide), ylim=(tall, 0))
        self.axes.set_axis_off()
        for layer in range(layers):
            middle = layer * (ratio + GAP) + ratio / 2
            self.axes.text(-0.1, middle, f"{layer + first}", ha="right", va="center", fontsize=8, color=INK)
        for head in range(heads):
            self.axes.text(head * (1 + GAP) + 0.5, -0.06, f"{head + 1}", ha="center", fontsize=8, color=INK)

    def corner(self, layer: int, head: int) -> tuple[float, float]:
        """Left and top of a map."""
        return head * (1 + GAP), layer * (self.ratio + GAP)

    def show(self, layer: int, head: int, values: np.ndarray, **how: Any) -> None:
        """Draw the map of a head. values: (h, w); how: of `Axes.imshow`."""
        left, top = self.corner(layer, head)
        box = (left, left + 1, top + self.ratio, top)
        limits = self.axes.get_xlim(), self.axes.get_ylim()
        self.axes.imshow(values, extent=box, aspect="auto", **how)
        self.axes.set(xlim=limits[0], ylim=limits[1])

    def frame(self, layer: int, head: int, colour: str, width: float) -> None:
        corner = self.corner(layer, head)
        self.axes.add_patch(Rectangle(corner, 1, self.ratio, fill=False, edgecolor=colour, lw=width, clip_on=False))

    def note(self, layer: int, head: int, text: str) -> None:
        """A few characters in the lower right corner of a map."""
        left, top = self.corner(layer, head)
        back = {"facecolor": "white", "alpha": 0.75, "pad": 0.6, "lw": 0}
        self.axes.text(left + 0.96, top + 0.96 * self.ratio, text, ha="right", va="bottom", fontsize=7, color=INK,
                       bbox=back)  # fmt: skip

    def titled(self, title: str, what: str) -> Figure:
        """The finished figure."""
        height = self.figure.get_figheight()
        self.figure.text(0.0, 1 - 0.12 / height, title, va="top", fontsize=11, fontweight="bold", color=INK)
        under = f"{what}\nrows: layers, columns: heads"
        self.figure.text(0.0, 1 - 0.36 / height, under, va="top", fontsize=8, color=FAINT)
        return self.figure
