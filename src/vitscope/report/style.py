"""How every figure looks: one type, one set of colours, room for labels; saved as PNG, SVG and PDF together."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.colors
from matplotlib.figure import Figure
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


def save_figure(figure: Figure, folder: Path, name: str, *, formats: Iterable[str] = FORMATS) -> list[Path]:
    """Write the figure in every format, atomically; the same figure gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    box = settled(figure).padded(PADDING)
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
