"""A ribbon that winds, with a head that rises and a tongue."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sin

from vitscope.menagerie.sketch import Sketch, between, chain, polar


def snake(s: Sketch, build: Sequence[float], pose: Sequence[float]) -> None:
    thick = 0.15 + 0.018 * build[0]
    waves = 1.3 + 0.2 * build[1] + 0.25 * pose[2]
    swing = 0.36 + 0.12 * pose[1]
    bow = 0.22 * pose[3]
    spine = []
    for i in range(11):
        t = i / 10
        x = -0.95 + 1.6 * t
        spine.append(
            (
                x,
                swing * (0.5 + 0.5 * t) * sin(2 * pi * waves * t + pi * pose[0])
                + bow * (4 * (t - 0.5) ** 2 - 0.5) * 0.8,
            )
        )
    lift = 0.28 * max(pose[4], 0.0)
    spine[-1] = (spine[-1][0], spine[-1][1] + lift)
    spine[-2] = (spine[-2][0], spine[-2][1] + lift * 0.4)
    widths = [0.03 + (thick - 0.03) * min(1.0, 2.6 * i / 10) for i in range(11)]
    neck = spine[-1]
    rise = 18 * pose[5] + 30 * lift
    flick = chain(polar(neck, 0.25, rise), (0.16, rise + 12 * pose[6]))
    s.limb("mouth", flick, (0.024, 0.022), "red", outlined=False)
    for fork in (-28, 28):
        s.limb(
            "mouth",
            [flick[-1], polar(flick[-1], 0.1, rise + fork)],
            (0.022, 0.016),
            "red",
            join=True,
            outlined=False,
        )
    s.mark("tongue", between(flick[0], flick[1], 0.6), "mouth")
    s.limb("tail", spine[:5], widths[:5])
    s.mark("tail_tip", spine[0], "tail")
    s.limb("body", spine[3:], widths[3:], join=True)
    for name, i in (("rear", 4), ("middle", 6), ("front", 8)):
        s.mark(name, spine[i], "body")
    s.limb(
        "head",
        [polar(neck, 0.04, rise + 180), polar(neck, 0.1, rise), polar(neck, 0.22, rise)],
        (0.15, 0.18, 0.11),
        "skin",
    )
    s.mark("snout", polar(neck, 0.24, rise), "head")
    s.eye(polar(polar(neck, 0.1, rise), 0.06, rise + 90), 0.085)
