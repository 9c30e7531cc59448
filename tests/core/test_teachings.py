"""One colour and one marker per teaching: the study's six keep theirs, and no two can be taken for each other."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.markers import MarkerStyle

import vitscope.report.page
from vitscope.core.teachings import STUDIED, TEACHINGS, teaching

PAGE = Path(vitscope.report.page.__file__).parent
# Machado, Oliveira and Fernandes (2009), severity 1: linear RGB as it is seen with one kind of cone missing.
SEEN_WITH = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def linear(colour: str) -> np.ndarray:
    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of linear sRGB, white D65."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ rgb.clip(0, 1) / (0.9505, 1.0, 1.089)
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_the_study_keeps_its_colours_and_markers() -> None:
    """Okabe and Ito's palette, as every figure so far has it."""
    looks = {key: (TEACHINGS[key].colour, TEACHINGS[key].marker) for key in STUDIED}
    assert looks == {
        "fs": ("#0072B2", "o"),
        "clip": ("#56B4E9", "s"),
        "dino": ("#D55E00", "^"),
        "moco": ("#E69F00", "v"),
        "mae": ("#009E73", "D"),
        "beit": ("#CC79A7", "P"),
    }


def test_markers_and_shapes_are_their_own_and_can_be_drawn() -> None:
    for what in ("marker", "shape", "colour", "title"):
        values = [getattr(how, what) for how in TEACHINGS.values()]
        assert len(set(values)) == len(values)
    symbols = (PAGE / "templates/marks.html.j2").read_text()
    paths = (PAGE / "js/marks.js").read_text()
    for how in TEACHINGS.values():
        assert MarkerStyle(how.marker).is_filled()
        assert f'id="mark-{how.shape}"' in symbols
        assert re.search(rf'^  "?{how.shape}"?: "M', paths, re.MULTILINE)


@pytest.mark.parametrize("eyes", list(SEEN_WITH))
def test_colours_stay_apart_for_every_eye(eyes: str) -> None:
    """A difference of 2.3 is just noticed; the Okabe-Ito colours and ours beside them keep 9."""
    seen = {key: lab(SEEN_WITH[eyes] @ linear(how.colour)) for key, how in TEACHINGS.items()}
    closest = {(a, b): np.linalg.norm(seen[a] - seen[b]) for a, b in combinations(seen, 2)}
    assert min(closest.values()) > 8.5, min(closest, key=lambda pair: closest[pair])


def test_modern_colours_show_on_light_and_dark_pages() -> None:
    """3 : 1, as WCAG asks of marks; those of the study are older than that."""
    for how in TEACHINGS.values():
        if how.words:
            bright = linear(how.colour) @ (0.2126, 0.7152, 0.0722)
            light, dark = (linear(page) @ (0.2126, 0.7152, 0.0722) for page in ("#fdfcf9", "#12141b"))
            assert (light + 0.05) / (bright + 0.05) >= 3, how.key
            assert (bright + 0.05) / (dark + 0.05) >= 3, how.key


def test_what_is_not_known_is_other() -> None:
    assert teaching("osmosis") is TEACHINGS["other"]
    assert teaching("image-text").kind == "explicit"
