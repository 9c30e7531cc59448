"""The teachings, and the one colour and marker each has in every figure and page.

Colours are the Okabe-Ito palette: distinct for the common kinds of colour blindness. Markers differ too, so that
figures survive a black-and-white printer.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Teaching:
    key: str
    title: str
    kind: str  # explicit, contrastive, reconstruction, other, none
    colour: str
    marker: str  # matplotlib marker
    shape: str  # Vega symbol


TEACHINGS: dict[str, Teaching] = {
    t.key: t
    for t in (
        Teaching("fs", "FS", "explicit", "#0072B2", "o", "circle"),
        Teaching("clip", "CLIP", "explicit", "#56B4E9", "s", "square"),
        Teaching("dino", "DINO", "contrastive", "#D55E00", "^", "triangle-up"),
        Teaching("moco", "MoCo-v3", "contrastive", "#E69F00", "v", "triangle-down"),
        Teaching("mae", "MAE", "reconstruction", "#009E73", "D", "diamond"),
        Teaching("beit", "BEiT", "reconstruction", "#CC79A7", "P", "cross"),
        Teaching("none", "Untrained", "none", "#8A8A8A", "X", "stroke"),
        Teaching("other", "Other", "other", "#6A4C93", "p", "triangle-right"),
    )
}


def teaching(key: str) -> Teaching:
    """The teaching of that name; whatever is not one of the study's six is `other`."""
    return TEACHINGS.get(key, TEACHINGS["other"])
