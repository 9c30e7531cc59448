"""How each model looks in every figure and on the page: by its teaching, by its step in a series, or by itself.

Colours are kept readable: whatever a palette says, a mark stands out from its ground at 3 : 1 (WCAG AA), on paper and
on a dark screen, which have a tone of their own each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vitscope.core.teachings import teaching

PAPER = "#ffffff"
MOST, LEAST = 0.26, 0.16  # luminance of marks on a light ground at most, on a dark one at least
TEXT = 0.17  # of text on a light ground at most: 4.5 : 1
RAMP, DARK_RAMP = (MOST, 0.035), (LEAST, 0.7)  # first and last checkpoint of a series
SHADES = (1.0, 0.45, 1.5, 0.25)  # of the luminance of a teaching's colour, for its first, second ... model
OWN = ("#6A4C93", "#1A3FC4", "#B0006D", "#6B4A00", "#5A7D00", "#00808F", "#D6336C", "#7A1F1F")
MARKERS = {  # those of matplotlib and of the page
    "p": "triangle-right", "o": "circle", "s": "square", "^": "triangle-up", "D": "diamond", "v": "triangle-down",
    "P": "cross", "X": "stroke",
}  # fmt: skip
LINES: tuple[tuple[Any, str], ...] = (  # of matplotlib and of SVG
    ("-", ""), ((0, (4, 1.5)), "7 3"), ((0, (1, 1)), "2 2.5"), ((0, (6, 1.5, 1, 1.5)), "9 3 2 3"),
)  # fmt: skip
STEP = re.compile(r"(?P<series>.+) @ (?P<step>[0-9]+)")  # what checkpoints of a series are called


@dataclass(frozen=True)
class ModelStyle:
    """How one model is drawn. colour: on paper; dark: on a dark screen; series: what it is a checkpoint of."""

    title: str
    colour: str
    dark: str
    marker: str
    shape: str
    line: Any
    dash: str
    filled: bool = True
    series: str = ""
    step: str = ""

    def curve(self) -> dict[str, Any]:
        """Keyword arguments for `Axes.plot`."""
        return {
            "color": self.colour,
            "marker": self.marker,
            "linestyle": self.line,
            "label": self.title,
            "markerfacecolor": self.colour if self.filled else PAPER,
        }


def model_styles(models: Sequence[tuple[str, str]]) -> dict[str, ModelStyle]:
    """A style for each (model title, teaching key), in order.

    Checkpoints of a series go from pale to dark; models of one teaching share its hue and marker, and differ in shade,
    line and fill; a model of which nothing is known has a colour and a marker of its own.
    """
    places = _series(models)
    unknown: dict[str, int] = {}  # models and series of which nothing is known
    turns: dict[str, dict[str, int]] = {}  # the same of each teaching: as many as there were before
    styles = {}
    for title, key in models:
        how = teaching(key)
        series, step, at = places.get(title, ("", "", None))
        if how.key == "other":
            turn = unknown.setdefault(series or title, len(unknown))
            colour, marker = OWN[turn % len(OWN)], list(MARKERS)[turn % len(MARKERS)]
            shape, shade, turn = MARKERS[marker], 1.0, turn // len(OWN)
        else:
            mine = turns.setdefault(how.key, {})
            turn = mine.setdefault(series or title, len(mine))
            colour, marker, shape = how.colour, how.marker, how.shape
            shade = 1.0 if how.key == "none" else SHADES[turn % len(SHADES)]
        if at is None:
            tones = on_paper(colour, shade), on_dark(colour, 1 / shade)
        else:
            tones = toned(colour, _between(*RAMP, at)), toned(colour, _between(*DARK_RAMP, at))
        line, dash = LINES[turn % len(LINES)]
        filled = (turn + turn // len(LINES)) % 2 == 0  # eight of a teaching before two look alike
        styles[title] = ModelStyle(title, *tones, marker, shape, line, dash, filled, series, step)
    return styles


def _series(models: Sequence[tuple[str, str]]) -> dict[str, tuple[str, str, float]]:
    """title -> (series, step, place from 0 to 1), of models that have fellows in their series."""
    found: dict[tuple[str, str], list[tuple[int, str, str]]] = {}
    for title, key in models:
        if match := STEP.fullmatch(title):
            found.setdefault((match["series"], key), []).append((int(match["step"]), match["step"], title))
    return {
        title: (series, step, place / (len(fellows) - 1))
        for (series, _), fellows in found.items()
        if len(fellows) > 1
        for place, (_, step, title) in enumerate(sorted(fellows))
    }


def _between(first: float, last: float, at: float) -> float:
    """Evenly for the eye: by ratios."""
    return float(first ** (1 - at) * last**at)


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb, as WCAG defines it.

    >>> luminance("#ffffff"), round(luminance("#808080"), 3)
    (1.0, 0.216)
    """
    red, green, blue = (_linear(int(colour[i : i + 2], 16) / 255) for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else float(((value + 0.055) / 1.055) ** 2.4)


def toned(colour: str, wanted: float) -> str:
    """The colour mixed with black or white until it has this luminance."""
    end = 0 if luminance(colour) > wanted else 255
    near, far = 0.0, 1.0
    channels = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    mixed = colour
    for _ in range(12):
        middle = (near + far) / 2
        mixed = "#" + "".join(f"{round(c + middle * (end - c)):02x}" for c in channels)
        beyond = luminance(mixed) < wanted if end == 0 else luminance(mixed) > wanted
        near, far = (near, middle) if beyond else (middle, far)
    return mixed


def on_paper(colour: str, shade: float = 1.0, most: float = MOST) -> str:
    """The colour as it is, or as dark as it must be to be seen on a light ground."""
    wanted = min(shade * luminance(colour), most)
    return colour if wanted == luminance(colour) else toned(colour, wanted)


def on_dark(colour: str, shade: float = 1.0) -> str:
    """The colour as it is, or as light as it must be to be seen on a dark ground."""
    wanted = max(min(shade * luminance(colour), 0.85), LEAST)
    return colour if wanted == luminance(colour) else toned(colour, wanted)


def text_colour(key: str) -> str:
    """The colour of a teaching, dark enough for words on paper."""
    return on_paper(teaching(key).colour, most=TEXT)
