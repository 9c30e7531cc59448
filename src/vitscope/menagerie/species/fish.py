"""A deep body between a forked tail and a face, fins above, below and beside."""

from __future__ import annotations

from collections.abc import Sequence

from vitscope.menagerie.sketch import Sketch, polar


def fish(s: Sketch, build: Sequence[float], pose: Sequence[float]) -> None:
    deep = 0.36 + 0.05 * build[0]
    wag = 0.16 * pose[0]
    root = (-0.52, wag * 0.6)
    tail = 180 - 40 * pose[0]
    s.patch(
        "tail",
        [
            polar(root, 0.1, tail - 90),
            polar(root, 0.56, tail - 42),
            polar(root, 0.3, tail),
            polar(root, 0.56, tail + 42),
            polar(root, 0.1, tail + 90),
        ],
        "mark",
        smooth=False,
    )
    s.mark("tail_top", polar(root, 0.42, tail - 36), "tail")
    s.mark("tail_bottom", polar(root, 0.42, tail + 36), "tail")
    crest = 0.24 + 0.06 * pose[1] + 0.04 * build[1]
    s.patch(
        "wing",
        [
            (0.22, deep * 0.75),
            (0.02, deep * 0.9 + crest),
            (-0.34, deep * 0.75 + crest * 0.8),
            (-0.36, deep * 0.5),
            (0.0, deep * 0.5),
        ],
        "accent",
    )
    s.mark("back_fin", (-0.08, deep * 0.85 + crest * 0.5), "wing")
    s.patch(
        "wing",
        [
            (0.05, -deep * 0.7),
            (-0.1, -deep * 0.9 - crest * 0.6),
            (-0.3, -deep * 0.75 - crest * 0.5),
            (-0.26, -deep * 0.5),
        ],
        "accent",
    )
    s.mark("belly_fin", (-0.16, -deep * 0.8 - crest * 0.25), "wing")
    s.patch(
        "body",
        [
            (0.78, -0.02),
            (0.6, deep * 0.62),
            (0.15, deep),
            (-0.3, deep * 0.68 + wag * 0.3),
            (-0.6, 0.1 + wag * 0.7),
            (-0.6, -0.1 + wag * 0.7),
            (-0.3, -deep * 0.68 + wag * 0.3),
            (0.15, -deep),
            (0.6, -deep * 0.66),
        ],
    )
    s.mark("side", (-0.05, 0.05), "body")
    s.patch(
        "head",
        [
            (0.8, -0.02),
            (0.62, deep * 0.62),
            (0.36, deep * 0.9),
            (0.28, 0.0),
            (0.36, -deep * 0.9),
            (0.62, -deep * 0.66),
        ],
        "belly",
    )
    s.limb("mouth", [(0.84, -0.1), (0.72, -0.13 - 0.02 * pose[4])], (0.045, 0.035), "pink")
    s.mark("mouth", (0.78, -0.115), "mouth")
    flap = 200 + 40 * pose[2]
    fin = (0.2, -0.08)
    s.patch(
        "wing",
        [fin, polar(fin, 0.34, flap - 24), polar(fin, 0.38, flap), polar(fin, 0.3, flap + 26)],
        "accent",
    )
    s.mark("side_fin", polar(fin, 0.25, flap), "wing")
    s.eye((0.53, 0.1), 0.1)
