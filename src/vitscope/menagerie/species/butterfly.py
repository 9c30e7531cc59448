"""Four broad wings about a slim body, from above."""

from __future__ import annotations

from collections.abc import Sequence

from vitscope.menagerie.sketch import Sketch, chain


def butterfly(s: Sketch, build: Sequence[float], pose: Sequence[float]) -> None:
    open_ = 0.78 + 0.22 * pose[0]  # wings half closed .. spread
    lift = 12 * pose[1]
    size = 1.0 + 0.07 * build[0]
    for side, word in ((-1, "left"), (1, "right")):
        skew = open_ * (1 + 0.12 * side * pose[2])

        def spread(x: float, y: float, by: float = lift, mirror: float = side * skew) -> tuple[float, float]:
            return mirror * x, y + x * by / 45

        s.patch(
            "wing",
            [
                spread(0.06, -0.05),
                spread(0.5 * size, -0.1),
                spread(0.68 * size, -0.38),
                spread(0.55 * size, -0.72),
                spread(0.28, -0.66 - 0.1 * build[1]),
                spread(0.1, -0.32),
            ],
            "mark",
        )
        s.mark(f"{word}_lower_wing", spread(0.46 * size, -0.45), "wing")
        s.patch(
            "wing",
            [
                spread(0.06, 0.1),
                spread(0.32, 0.6),
                spread(0.78 * size, 0.78 + 0.06 * build[2]),
                spread(0.95 * size, 0.5),
                spread(0.78 * size, 0.05),
                spread(0.4, -0.16),
                spread(0.06, -0.1),
            ],
            "coat",
        )
        s.mark(f"{word}_upper_wing", spread(0.74 * size, 0.58), "wing")
        s.mark(f"{word}_wing_root", spread(0.3, 0.18), "wing")
        feeler = chain(
            (0.04 * side, 0.4),
            (0.22, 90 - side * (24 + 16 * pose[3])),
            (0.2, 90 - side * (46 + 24 * pose[3])),
        )
        s.limb("ear", feeler, (0.025, 0.022, 0.022), "dark")
        s.blob("ear", feeler[-1], (0.05, 0.05), "dark", outlined=False)
        s.mark(f"{word}_antenna", feeler[-1], "ear")
    sway = 0.09 * pose[4]
    s.limb("body", [(0.0, 0.25), (sway * 0.3, -0.1), (sway, -0.52)], (0.1, 0.085, 0.05), "dark")
    s.mark("abdomen", (sway * 0.8, -0.4), "body")
    s.blob("head", (0.0, 0.34), (0.15, 0.14), "belly")
    s.eye((-0.065, 0.37), 0.062, "left_eye", look=(0.1, 0.0))
    s.eye((0.065, 0.37), 0.062, "right_eye", look=(-0.1, 0.0))
