"""A round shell with a spiral on a foot that stretches, and eyes on stalks."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi, sin

from vitscope.menagerie.sketch import Sketch, between, chain, polar


def snail(s: Sketch, build: Sequence[float], pose: Sequence[float]) -> None:
    reach = 0.1 * pose[0]  # stretched out or drawn in
    neck = polar((0.38 + reach, -0.42), 0.42, 62 + 26 * pose[1])
    for name, direction, ink in (("far_eye", 112, "far"), ("near_eye", 72, "skin")):
        stalk = chain(
            polar(neck, 0.04, 90),
            (0.19, direction - 20 * pose[2]),
            (0.17, direction - 38 * pose[2] + 14 * pose[3]),
        )
        s.limb("ear", stalk, (0.045, 0.035, 0.035), ink)
        s.mark(name.replace("eye", "stalk"), stalk[1], "ear")
        s.eye(stalk[-1], 0.075, name)
    s.limb("tail", [(-0.95 - reach, -0.58), (-0.55, -0.54), (-0.1, -0.5)], (0.03, 0.09, 0.13), "belly")
    s.mark("tail_tip", (-0.88 - reach, -0.575), "tail")
    s.limb(
        "head",
        [(-0.15, -0.5), (0.25 + reach, -0.5), between((0.4 + reach, -0.42), neck, 0.5), neck],
        (0.13, 0.13, 0.13, 0.13),
        "belly",
        join=True,
    )
    s.mark("face", neck, "head")
    s.limb("mouth", [polar(neck, 0.06, -30), polar(neck, 0.1, -80)], (0.02, 0.02), "black", outlined=False)
    s.mark("foot", (0.2 + reach, -0.55), "head")
    size = 0.46 + 0.04 * build[0]
    lean = 10 * pose[4]
    hub = polar((-0.16, -0.46), size * 0.92, 96 + lean)
    s.blob("body", hub, (size, size * (0.96 + 0.06 * build[1])), "coat")
    spiral = []
    for i in range(12):
        t = i / 11
        spiral.append(
            (
                hub[0] + size * (0.08 + 0.7 * t) * cos(2 * pi * 1.6 * t + 0.6 + lean / 57),
                hub[1] + size * (0.08 + 0.7 * t) * sin(2 * pi * 1.6 * t + 0.6 + lean / 57),
            )
        )
    s.limb("body", spiral, [0.035 + 0.03 * i / 11 for i in range(12)], "mark", outlined=False)
    s.mark("shell_centre", hub, "body")
    s.mark("shell_top", polar(hub, size * 0.85, 90 + lean), "body")
