"""What a link to a study looks like where it is shared: its title, its advice and its scores, 1200 x 630 pixels."""

from __future__ import annotations

import io
import textwrap
from urllib.parse import quote

from matplotlib.figure import Figure

from vitscope.report.looks import PAPER
from vitscope.report.page.payload import Page
from vitscope.report.style import FAINT, INK, styled

PANELS = 3
ICON = "data:image/svg+xml," + quote(
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'><rect width='32' height='32' rx='7' fill='#134a6b'/>"
    "<path d='M4 16Q16 4 28 16Q16 28 4 16Z' fill='#fdfcf9'/><path d='M12 12h3.5v3.5H12zM16.5 12H20v3.5h-3.5zM12 "
    "16.5h3.5V20H12z' fill='#134a6b'/><path d='M16.5 16.5H20V20h-3.5z' fill='#d9485f'/></svg>"
)


def share_picture(page: Page) -> bytes:
    """A PNG."""
    with styled():
        figure = Figure(figsize=(12, 6.3))
        title = _lines(page.title, 52, 2)
        figure.text(0.05, 0.92, title, fontsize=26, fontweight="bold", color=INK, va="top")
        below = 0.78 - 0.08 * title.count("\n")
        said = _lines(page.headline or page.subtitle, 96, 3)
        figure.text(0.05, below, said, fontsize=15, color=INK, va="top", linespacing=1.4)
        tasks = [task for task in page.data["tasks"] if task["protocol"] == "corrected"][:PANELS]
        for number, task in enumerate(tasks):
            wide = 0.9 / len(tasks)
            axes = figure.add_axes((0.07 + number * wide, 0.11, wide - 0.06, 0.4))
            for one in task["series"]:
                style = page.models[one["model"]].style
                axes.plot(one["layer"], one["value"], **style.curve())
            if task["line"] is not None:
                axes.axhline(task["line"], color=FAINT, linestyle=":", linewidth=1)
            axes.set(title=_lines(f"{task['title']}, {task['dataset']}", 36, 1), xlabel="layer")
            axes.margins(y=0.12)
            axes.set_ylim(bottom=0)
        figure.text(0.95, 0.03, "vitscope", fontsize=12, color=FAINT, ha="right")
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=100, facecolor=PAPER)
    return buffer.getvalue()


def _lines(text: str, width: int, most: int) -> str:
    """At most so many lines; what does not fit is left out."""
    return "\n".join(textwrap.wrap(text, width, max_lines=most, placeholder=" …"))
