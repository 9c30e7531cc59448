"""Creatures with wings: bird, penguin, butterfly, bat."""

from __future__ import annotations

from collections.abc import Sequence

from vitscope.data.menagerie.sketch import Sketch, between, chain, polar


def bird(s: Sketch, build: Sequence[float], pose: Sequence[float]) -> None:
    tilt = 18 + 14 * pose[0]
    hip = (-0.02, -0.3)
    for name, x, swing in (("far_foot", 0.1, pose[1]), ("near_foot", -0.04, pose[2])):
        joints = chain((hip[0] + x, hip[1]), (0.2, -100 + 22 * swing), (0.24, -78 + 26 * swing))
        s.limb("leg", joints, (0.04, 0.035, 0.035), "accent")
        s.limb(
            "leg",
            [polar(joints[-1], 0.09, 195), polar(joints[-1], 0.15, -8)],
            (0.032, 0.025),
            "accent",
            join=True,
        )
        s.mark(name, joints[-1], "leg")
    root = polar((0.0, -0.05), 0.38, 180 + tilt)
    fan = 180 + tilt - 16 * pose[3]
    s.patch(
        "tail",
        [
            polar(root, 0.1, fan + 90),
            polar(root, 0.5, fan + 13),
            polar(root, 0.44, fan),
            polar(root, 0.5, fan - 13),
            polar(root, 0.1, fan - 90),
        ],
        "far",
        smooth=False,
    )
    s.mark("tail_tip", polar(root, 0.4, fan), "tail")
    flap = pose[4]
    if flap > 0.0:  # the far wing shows when the near one is raised
        _wing(s, (0.0, 0.05), 105 + 30 * flap, 0.55 + 0.25 * flap, "far")
    s.blob("body", (0.0, -0.05), (0.45 + 0.03 * build[0], 0.31 + 0.03 * build[1]), turn=tilt)
    s.blob("body", (0.08, -0.16), (0.3, 0.18), "belly", turn=tilt, outlined=False)
    s.mark("breast", (0.14, -0.16), "body")
    head = polar((0.0, -0.05), 0.53, 47 + 12 * pose[5])
    beak = -8 + 20 * pose[6]
    gape = 10 + 10 * pose[7]
    for sign in (-1, 1):
        s.patch(
            "mouth",
            [
                polar(head, 0.16, beak + 50 * sign),
                polar(head, 0.43, beak + gape * sign * 0.55),
                polar(head, 0.1, beak),
            ],
            "accent",
            smooth=False,
        )
    s.mark("beak", polar(head, 0.3, beak + gape * 0.4), "mouth")
    s.blob("head", head, (0.22, 0.21), "skin")
    s.mark("crown", polar(head, 0.13, 100), "head")
    s.eye(polar(head, 0.09, 45 + beak), 0.075)
    _wing(s, (-0.02, 0.04), 178 - 68 * max(flap, -0.2), 0.58 + 0.04 * build[2] + 0.2 * max(flap, 0.0), "mark")
    s.mark(
        "wing_tip", polar((-0.02, 0.04), 0.46 + 0.2 * max(flap, 0.0), 178 - 68 * max(flap, -0.2) + 2), "wing"
    )


def _wing(s: Sketch, root: tuple[float, float], direction: float, length: float, ink: str) -> None:
    s.patch(
        "wing",
        [
            polar(root, 0.17, direction + 150),
            polar(root, 0.16, direction - 90),
            polar(root, length * 0.62, direction - 22),
            polar(root, length, direction),
            polar(root, length * 0.8, direction + 14),
            polar(root, length * 0.45, direction + 28),
        ],
        ink,
    )


def penguin(s: Sketch, build: Sequence[float], pose: Sequence[float]) -> None:
    plump = 0.36 + 0.035 * build[0]
    for name, x, lift in (("far_foot", 0.16, max(pose[0], 0.0)), ("near_foot", -0.12, max(-pose[0], 0.0))):
        at = (x, -0.86 + 0.12 * lift)
        s.limb(
            "leg",
            [at, (at[0] + 0.12, at[1] - 0.01), (at[0] + 0.22, at[1] - 0.01)],
            (0.075, 0.07, 0.05),
            "accent",
        )
        s.mark(name, (at[0] + 0.14, at[1] - 0.01), "leg")
    s.patch("tail", [(-0.2, -0.6), (-0.48, -0.84), (-0.16, -0.8)], "far", smooth=False)
    s.mark("tail_tip", (-0.36, -0.76), "tail")
    far, near = -58 + 38 * pose[2], 238 - 38 * pose[1]
    flipper = chain((plump * 0.7, 0.12), (0.24, far), (0.24, far - 14))
    s.limb("wing", flipper, (0.09, 0.1, 0.03), "far")
    s.mark("far_flipper", between(flipper[1], flipper[2], 0.85), "wing")
    s.patch(
        "body",
        [
            (0.0, 0.5),
            (-plump * 0.7, 0.25),
            (-plump, -0.3),
            (-plump * 0.7, -0.78),
            (0.05, -0.88),
            (plump * 0.82, -0.72),
            (plump, -0.25),
            (plump * 0.75, 0.25),
        ],
    )
    s.patch(
        "body",
        [
            (0.1, 0.2),
            (-0.12, -0.05),
            (-0.14, -0.5),
            (0.08, -0.78),
            (plump * 0.8, -0.5),
            (plump * 0.84, 0.0),
            (0.22, 0.24),
        ],
        "white",
        outlined=False,
    )
    s.mark("belly", (0.1, -0.3), "body")
    head = (0.03 + 0.06 * pose[3], 0.55)
    beak = 4 + 26 * pose[4]
    for sign in (-1, 1):
        s.patch(
            "mouth",
            [polar(head, 0.23, beak + 24 * sign), polar(head, 0.47, beak + 2 * sign), polar(head, 0.1, beak)],
            "accent",
            smooth=False,
        )
    s.mark("beak", polar(head, 0.34, beak + 4), "mouth")
    s.blob("head", head, (0.28, 0.27), "skin")
    s.blob("head", polar(head, 0.13, beak - 20), (0.14, 0.17), "white", outlined=False)
    s.mark("crown", polar(head, 0.2, 105), "head")
    s.eye(polar(head, 0.13, 28 + beak * 0.5), 0.075)
    flipper = chain((-plump * 0.55, 0.14), (0.28, near), (0.28, near + 16))
    s.limb("wing", flipper, (0.09, 0.12, 0.035), "skin")
    s.mark("near_flipper", between(flipper[1], flipper[2], 0.85), "wing")


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


def bat(s: Sketch, build: Sequence[float], pose: Sequence[float]) -> None:
    span = 0.98 + 0.06 * build[0]
    for side, word, flap in ((-1, "left", pose[0] + 0.25 * pose[1]), (1, "right", pose[0] - 0.25 * pose[1])):
        rise = 0.42 * flap
        tip = (side * span, 0.32 + rise)
        wrist = (side * span * 0.52, 0.42 + rise * 0.4)
        hem = [
            (side * span * 0.92, 0.0 + rise * 0.85),
            (side * span * 0.74, 0.1 + rise * 0.6),
            (side * span * 0.64, -0.22 + rise * 0.5),
            (side * span * 0.46, -0.06 + rise * 0.3),
            (side * span * 0.32, -0.34 + rise * 0.15),
            (side * span * 0.2, -0.18),
            (side * 0.06, -0.32),
        ]
        s.patch("wing", [(side * 0.05, 0.22), wrist, tip, *hem], "mark", smooth=False)
        s.limb(
            "wing",
            [(side * 0.1, 0.14), wrist, between(wrist, tip, 0.9)],
            (0.05, 0.045, 0.025),
            "far",
            outlined=False,
        )
        s.limb("wing", [wrist, between(wrist, hem[2], 0.85)], (0.025, 0.018), "far", outlined=False)
        s.mark(f"{word}_wing_tip", between(tip, wrist, 0.12), "wing")
        s.mark(f"{word}_wrist", between(wrist, (0.0, 0.0), 0.04), "wing")
        s.limb("leg", [(side * 0.1, -0.34), (side * (0.13 + 0.04 * pose[2]), -0.52)], (0.045, 0.04), "dark")
        s.mark(f"{word}_foot", (side * (0.127 + 0.035 * pose[2]), -0.48), "leg")
    s.blob("body", (0.0, -0.1), (0.21 + 0.02 * build[1], 0.31), "coat")
    s.blob("body", (0.0, -0.14), (0.12, 0.2), "belly", outlined=False)
    s.mark("belly", (0.0, -0.15), "body")
    head = (0.05 * pose[3], 0.27)
    for side, word in ((-1, "left"), (1, "right")):
        ear = polar(head, 0.5 + 0.04 * build[2], 90 - side * (27 + 10 * pose[4]))
        s.patch(
            "ear",
            [(head[0] + side * 0.02, head[1] + 0.15), ear, (head[0] + side * 0.23, head[1] + 0.04)],
            "skin",
            smooth=False,
        )
        s.patch(
            "ear",
            [
                (head[0] + side * 0.08, head[1] + 0.16),
                between(ear, head, 0.22),
                (head[0] + side * 0.18, head[1] + 0.1),
            ],
            "pink",
            smooth=False,
            outlined=False,
        )
        s.mark(f"{word}_ear", between(ear, (head[0] + side * 0.12, head[1] + 0.1), 0.25), "ear")
    s.blob("head", head, (0.24, 0.21), "skin")
    s.eye((head[0] - 0.09, head[1] + 0.05), 0.07, "left_eye", look=(0.1, 0.0))
    s.eye((head[0] + 0.09, head[1] + 0.05), 0.07, "right_eye", look=(-0.1, 0.0))
    s.blob("mouth", (head[0], head[1] - 0.09), (0.09, 0.045), "black", outlined=False)
    for x in (-0.045, 0.045):
        s.patch(
            "mouth",
            [
                (head[0] + x - 0.028, head[1] - 0.06),
                (head[0] + x + 0.028, head[1] - 0.06),
                (head[0] + x, head[1] - 0.14),
            ],
            "white",
            smooth=False,
            outlined=False,
        )
    s.mark("mouth", (head[0], head[1] - 0.09), "mouth")
