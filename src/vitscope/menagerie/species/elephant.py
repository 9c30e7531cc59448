"""A mountain on pillars, with a trunk, a tusk and an ear that flaps."""

from __future__ import annotations

from collections.abc import Sequence

from vitscope.menagerie.sketch import Sketch, between, chain
from vitscope.menagerie.species.leg import leg


def elephant(s: Sketch, build: Sequence[float], pose: Sequence[float]) -> None:
    stout = 0.13 + 0.015 * build[0]
    for name, hip, swing in (("far_back", (-0.32, -0.2), pose[0]), ("far_front", (0.22, -0.2), pose[1])):
        leg(s, name, hip, (0.25, 0.27), (stout, stout * 0.9), 22 * swing, 8, far=True)
    tail = chain((-0.62, 0.15), (0.2, 230 + 35 * pose[4]), (0.17, 255 + 50 * pose[4]))
    s.limb("tail", tail, (0.045, 0.035, 0.03), "skin")
    s.blob("tail", tail[-1], (0.045, 0.07), "dark")
    s.mark("tail_tip", tail[-1], "tail")
    s.blob("body", (-0.12, 0.08), (0.56 + 0.04 * build[1], 0.43 + 0.03 * build[2]))
    s.mark("back", (-0.2, 0.38), "body")
    for name, hip, swing in (("near_back", (-0.42, -0.2), pose[2]), ("near_front", (0.1, -0.2), pose[3])):
        leg(s, name, hip, (0.27, 0.28), (stout * 1.1, stout), 22 * swing, 8)
    head = (0.5, 0.25 + 0.07 * pose[5])
    lift = 70 * pose[6]
    trunk = chain(
        (head[0] + 0.18, head[1] - 0.06),
        (0.22, -62 + 0.55 * lift),
        (0.22, -82 + 1.3 * lift),
        (0.2, -60 + 1.9 * lift + 30 * pose[7]),
    )
    s.limb("mouth", trunk, (0.13, 0.09, 0.075, 0.06), "skin")
    s.mark("trunk_tip", between(trunk[2], trunk[3], 0.95), "mouth")
    s.mark("trunk_middle", trunk[1], "mouth")
    tusk = chain((head[0] + 0.14, head[1] - 0.15), (0.12, -40), (0.13, -5))
    s.limb("mouth", tusk, (0.045, 0.04, 0.02), "white")
    s.blob("head", head, (0.28, 0.28), "skin")
    s.mark("forehead", (head[0] + 0.1, head[1] + 0.2), "head")
    flap = 1.0 + 0.28 * pose[8]
    s.patch(
        "ear",
        [
            (head[0] - 0.02, head[1] + 0.25),
            (head[0] - 0.26 * flap, head[1] + 0.3),
            (head[0] - 0.36 * flap, head[1] + 0.02),
            (head[0] - 0.24 * flap, head[1] - 0.28),
            (head[0] - 0.06, head[1] - 0.16),
        ],
        "accent",
    )
    s.mark("ear", (head[0] - 0.22 * flap, head[1] + 0.0), "ear")
    s.eye((head[0] + 0.11, head[1] + 0.06), 0.07)
