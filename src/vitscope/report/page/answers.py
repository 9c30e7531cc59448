"""What answers look like: the figures of neighbours, matches and masks, small enough to travel inside the page."""

from __future__ import annotations

import base64
import io
import math
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from vitscope.core.results import Results
from vitscope.pipeline.best_layers import best_layers
from vitscope.report.feature_pictures import pca_pictures
from vitscope.report.growing_up import growing_figure
from vitscope.report.head_figures import importance_figures
from vitscope.report.style import settled, styled
from vitscope.report.tasks_pictures import answer_pictures

MANY = 24  # figures at full size; more of them are drawn smaller, so that the page stays small
SOME = 8  # mosaics at full size
DPI = (48, 100)  # smallest and full size


def answer_data(results: Results) -> list[dict[str, Any]]:
    """Every figure with what it shows; none if the data are not at hand, as with loaded results."""
    with styled():
        answers = list(answer_pictures(results, best_layers(results.table)))
        dpi = min(DPI[1], max(DPI[0], DPI[1] * math.sqrt(MANY / max(len(answers), 1))))
        return [
            {"kind": one.kind, "which": one.which, "dataset": one.dataset, "image": _uri(one.figure, dpi)}
            for one in answers
        ]


def feature_pictures(results: Results) -> list[dict[str, str]]:
    """Mosaics of the principal components of patch tokens: what each shows, and the image."""
    with styled():
        shown = list(pca_pictures(results))
        dpi = max(DPI[0], DPI[1] * min(1.0, math.sqrt(SOME / max(len(shown), 1))))
        return [{"title": one.title, "image": _uri(one.figure, dpi)} for one in shown]


def growing_picture(results: Results) -> str:
    """Curves of a study's series over steps, as an image; "" if it has no series."""
    with styled():
        figure = growing_figure(results)
        return "" if figure is None else _svg(figure)


def importance_pictures(results: Results) -> list[str]:
    """How much every head of every model matters, as heat maps; none if nobody asked for it."""
    with styled():
        return [_svg(figure) for figure in importance_figures(results).values()]


def _svg(figure: Figure) -> str:
    """A chart. Letters become outlines: an image has no fonts but its own."""
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", bbox_inches="tight", pad_inches=0.1, metadata={"Date": None})
    return f"data:image/svg+xml;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _uri(figure: Figure, dpi: float) -> str:
    buffer = io.BytesIO()
    options = {"quality": 82, "method": 4}
    figure.savefig(buffer, format="webp", dpi=dpi, bbox_inches=settled(figure).padded(0.1), pil_kwargs=options)
    return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"
