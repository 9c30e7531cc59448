"""Palettes of creatures, and what each ink of a sketch means in a palette."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Colour = tuple[int, int, int]
NO_COLOUR = (0, 0, 0)


@dataclass(frozen=True)
class Palette:
    """The name is what captions say; the colours are sRGB."""

    name: str
    coat: Colour
    belly: Colour
    mark: Colour
    accent: Colour


PALETTES = (
    Palette("red", (214, 60, 52), (250, 178, 150), (140, 24, 40), (245, 150, 60)),
    Palette("orange", (240, 140, 48), (255, 224, 170), (176, 76, 22), (250, 200, 80)),
    Palette("yellow", (246, 208, 70), (255, 244, 190), (186, 128, 34), (240, 150, 60)),
    Palette("green", (104, 178, 76), (214, 232, 150), (40, 112, 62), (240, 196, 80)),
    Palette("teal", (48, 170, 164), (184, 236, 220), (20, 100, 116), (250, 168, 120)),
    Palette("blue", (76, 126, 220), (190, 216, 250), (34, 60, 150), (250, 190, 70)),
    Palette("purple", (150, 94, 200), (224, 196, 246), (86, 40, 136), (250, 170, 190)),
    Palette("pink", (242, 140, 174), (255, 220, 226), (190, 68, 120), (255, 200, 120)),
    Palette("brown", (156, 104, 66), (226, 192, 150), (92, 54, 34), (220, 150, 80)),
    Palette("grey", (150, 156, 168), (212, 216, 224), (92, 98, 114), (214, 160, 170)),
    Palette("black", (78, 76, 92), (164, 160, 176), (38, 34, 50), (240, 160, 70)),
    Palette("white", (240, 238, 234), (255, 252, 246), (186, 176, 172), (246, 170, 110)),
)
PALETTE = {palette.name: palette for palette in PALETTES}
PATTERNS = ("plain", "striped", "banded", "spotted", "patched")


def scaled(colour: Colour, factor: float) -> Colour:
    r, g, b = (min(255, max(0, round(c * factor))) for c in colour)
    return r, g, b


def mixed(a: Colour, b: Colour, share: float) -> Colour:
    red, green, blue = (round(x + (y - x) * share) for x, y in zip(a, b, strict=True))
    return red, green, blue


@dataclass(frozen=True, eq=False)
class Ink:
    """Colours of a polygon from its top to its bottom: ramps[plain | marked | edge, top | bottom] is sRGB."""

    ramps: NDArray[np.int32]  # (3, 2, 3)

    @classmethod
    def plain(cls, top: Colour, bottom: Colour) -> Ink:
        return cls(np.array([(top, bottom), (NO_COLOUR, NO_COLOUR), (NO_COLOUR, NO_COLOUR)], np.int32))

    @classmethod
    def of_creature(cls, colour: Colour, mark: Colour, *, flat: bool = False) -> Ink:
        """Rounded by light from above, and outlined in its own dark shade."""
        bright, dim = (1.0, 0.95) if flat else (1.1, 0.84)
        edge = mixed(scaled(colour, 0.3), (20, 16, 26), 0.5)
        ramps = (
            (scaled(colour, bright), scaled(colour, dim)),
            (scaled(mark, 1.08), scaled(mark, 0.86)),
            (edge, edge),
        )
        return cls(np.array(ramps, np.int32))


def inks(palette: Palette, shift: Colour, names: Iterable[str]) -> dict[str, Ink]:
    """The inks that a sketch names, for one individual; `shift` moves its colours a little off the palette."""

    def moved(colour: Colour) -> Colour:
        r, g, b = (min(255, max(0, c + d)) for c, d in zip(colour, shift, strict=True))
        return r, g, b

    coat, mark = moved(palette.coat), moved(palette.mark)
    colours = {
        "coat": coat,  # carries the pattern
        "skin": coat,
        "far": scaled(coat, 0.74),  # limbs on the side that is turned away
        "belly": moved(palette.belly),
        "mark": mark,
        "accent": moved(palette.accent),
        "dark": mixed(scaled(palette.mark, 0.5), (24, 20, 28), 0.4),
        "pink": (246, 160, 172),
        "red": (222, 50, 60),
        "white": (252, 250, 246),
        "black": (24, 20, 28),
    }
    return {name: Ink.of_creature(colours[name], mark, flat=name in ("white", "black")) for name in names}
