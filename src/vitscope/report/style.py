"""How every figure looks: one type, one set of colours, room for labels; saved as PNG, SVG and PDF together."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, Literal

import matplotlib
import matplotlib.colors
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from vitscope.core.files import write_atomically
from vitscope.report.looks import PAPER

INK, FAINT = "#1c1c28", "#6f6f7d"
SEQUENTIAL = matplotlib.colors.LinearSegmentedColormap.from_list(
    "vitscope", ["#fbfaf6", "#cfe3e6", "#7fb7c4", "#2f7f9a", "#134a6b", "#0b2440"]
)
HEAT = matplotlib.colors.LinearSegmentedColormap.from_list(
    "vitscope-heat", ["#fff9ec", "#fbd9a4", "#f39a5f", "#d4485f", "#8c2a6b", "#2c1648"]
)
FORMATS = ("png", "svg", "pdf")
PADDING = 0.12  # inches around a figure
Width = Literal["column", "page"]
WIDTHS: dict[Width, float] = {"column": 3.25, "page": 6.75}  # inches: a column of a paper, and both
LETTERS: dict[Width, float] = {"column": 0.72, "page": 0.85}  # of their size otherwise
SMALLEST = 5.5  # points
_width: ContextVar[Width | None] = ContextVar("width", default=None)

_SETTINGS: Any = {
    "text.parse_math": False,  # names of files and models are shown as they are
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#e7e7ec",
    "grid.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "svg.hashsalt": "vitscope",
    "svg.fonttype": "none",
    "image.interpolation": "nearest",
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
}


@contextmanager
def styled() -> Iterator[None]:
    """Within it, figures look like vitscope's. Figures are made with `matplotlib.figure.Figure`, never pyplot."""
    with matplotlib.rc_context(_SETTINGS):
        yield


def without_grid() -> AbstractContextManager[None]:
    """For panels of images: making grid lines and ticks that are never seen would take longer than the image."""
    return matplotlib.rc_context({"axes.grid": False})


def settled(figure: Figure) -> Bbox:
    """What a figure takes up, in inches; everything in it has its place and is not laid out again, whatever is saved.

    Saving a figure that has a layout engine, or looks for its own edges, draws it twice, once to no avail.
    """
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
        figure.set_layout_engine()
    return figure.get_tightbbox()


@contextmanager
def figure_width(width: Width | None) -> Iterator[None]:
    """Within it, figures are as wide as a column of a paper or a page of it; None: as wide as they like."""
    token = _width.set(width)
    try:
        yield
    finally:
        _width.reset(token)


def wanted_width() -> float | None:
    """Inches that figures are to be wide; None: as they like."""
    width = _width.get()
    return None if width is None else WIDTHS[width]


def sized(width: float, height: float, *, lowest: float = 0.5) -> tuple[float, float]:
    """The size of a figure that would like to be so large. lowest: share of its height that a narrow one keeps.

    >>> sized(8, 4)
    (8, 4)
    >>> with figure_width("page"):
    ...     sized(13.02, 4)
    (6.51, 2.0)
    """
    wanted = wanted_width()
    if wanted is None:
        return width, height
    scale = min(1.0, (wanted - 2 * PADDING) / width)
    return scale * width, max(scale, lowest) * height


def across(most: int) -> int:
    """How many panels stand side by side, of at most so many."""
    wanted = wanted_width()
    return most if wanted is None else min(most, 2 if wanted < 4 else 4)


def folded(title: str, most: int = 12) -> str:
    """The title of a panel, in lines where panels are as small as in a column."""
    return title if (wanted_width() or 9) > 4 else textwrap.fill(title, most)


def shrink_letters(figure: Figure) -> None:
    """Letters and marks of a narrow figure are smaller, but can be read; once, before its layout is solved."""
    width = _width.get()
    if width is None or getattr(figure, "shrunk", False):
        return
    for text in figure.findobj(Text):
        text.set_fontsize(max(SMALLEST, LETTERS[width] * float(text.get_fontsize())))
    for line in figure.findobj(Line2D):
        assert isinstance(line, Line2D)
        line.set(linewidth=0.6 * line.get_linewidth(), markersize=0.6 * line.get_markersize())
        line.set_markeredgewidth(0.7 * line.get_markeredgewidth())
    figure.shrunk = True  # type: ignore[attr-defined]


def save_figure(figure: Figure, folder: Path, name: str, *, formats: Iterable[str] = FORMATS) -> list[Path]:
    """Write the figure in every format, atomically; the same figure gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    shrink_letters(figure)
    box = _box(figure)
    paths = []
    for suffix in formats:
        buffer = io.BytesIO()
        metadata = {"Date": None} if suffix == "svg" else {"CreationDate": None} if suffix == "pdf" else {}
        options: Any = {"pil_kwargs": {"compress_level": 3}} if suffix == "png" else {}  # 15 % larger than by 6
        figure.savefig(buffer, format=suffix, dpi=160, bbox_inches=box, metadata=metadata, **options)
        path = folder / f"{name}.{suffix}"
        write_atomically(path, partial(Path.write_bytes, data=buffer.getvalue()))
        paths.append(path)
    return paths


def _box(figure: Figure) -> Bbox:
    """What is saved, in inches: everything, and exactly as wide as wanted."""
    box = settled(figure).padded(PADDING)
    wanted = wanted_width()
    if wanted is None:
        return box
    for _ in range(4):  # what hangs over the side does not shrink with the figure
        if box.width <= wanted + 1e-3:
            break
        figure.set_figwidth(max(0.3 * wanted, figure.get_figwidth() - (box.width - wanted)))
        figure.draw_without_rendering()
        box = figure.get_tightbbox().padded(PADDING)
    middle = (box.x0 + box.x1) / 2
    return Bbox.from_extents(middle - wanted / 2, box.y0, middle + wanted / 2, box.y1)
