"""Creatures of the ground: snake, snail, spider, crab."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi, sin

from vitscope.data.menagerie.sketch import Sketch, between, chain, polar


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


def spider(s: Sketch, build: Sequence[float], pose: Sequence[float]) -> None:
    long = 0.5 + 0.04 * build[0]
    for i, (root, fan) in enumerate(((0.2, 52), (0.1, 18), (-0.02, -18), (-0.12, -50))):
        for side, word in ((-1, "left"), (1, "right")):
            gait = pose[i] if side > 0 else -pose[(i + 1) % 4]
            direction = fan + 14 * gait
            out = 90 - side * (90 - direction)
            arch = side * (34 if fan > 0 else -34)
            hip, knee, foot = chain(
                (side * 0.12, root), (long, out + arch), (long * 1.05, out - arch * 1.2 - side * 12 * pose[4])
            )
            joints = [hip, between(hip, knee, 0.88), between(knee, foot, 0.12), foot]  # a sharp knee
            s.limb("leg", joints, (0.06, 0.055, 0.055, 0.035), "far" if i in (1, 2) else "skin")
            s.mark(f"{word}_foot_{i + 1}", between(knee, foot, 0.9), "leg")
    s.blob("body", (0.05 * pose[5], -0.36), (0.3 + 0.03 * build[1], 0.35 + 0.03 * build[2]), "coat")
    s.mark("abdomen", (0.05 * pose[5], -0.36), "body")
    s.blob("head", (0.0, 0.1), (0.22, 0.21), "skin")
    for side, word in ((-1, "left"), (1, "right")):
        s.limb("mouth", [(side * 0.07, 0.27), (side * (0.06 + 0.02 * pose[6]), 0.37)], (0.04, 0.03), "dark")
        s.mark(f"{word}_fang", (side * 0.065, 0.34), "mouth")
        s.eye((side * 0.09, 0.17), 0.082, f"{word}_eye", look=(-0.1 * side, 0.15))


def crab(s: Sketch, build: Sequence[float], pose: Sequence[float]) -> None:
    wide = 0.5 + 0.04 * build[0]
    for side, word in ((-1, "left"), (1, "right")):
        for i in range(3):
            gait = pose[i] * side
            joints = chain(
                (side * (wide - 0.1 - 0.1 * i), -0.22),
                (0.28, 90 - side * (112 + 22 * i + 10 * gait)),
                (0.26, 90 - side * (152 + 14 * i + 16 * gait)),
            )
            s.limb("leg", joints, (0.06, 0.05, 0.03), "far")
            s.mark(f"{word}_foot_{i + 1}", between(joints[1], joints[2], 0.88), "leg")
        raise_ = pose[3] if side < 0 else pose[4]
        arm = chain(
            (side * (wide - 0.1), 0.0),
            (0.3, 90 - side * (72 - 16 * raise_)),
            (0.26, 90 - side * (20 - 34 * raise_)),
        )
        s.limb("leg", arm, (0.075, 0.07, 0.07), "skin")
        grip = 90 - side * (-8 - 34 * raise_)
        gape = 16 + 12 * pose[5]
        size = 0.34 + (0.05 if side > 0 else -0.02) * build[1]
        claw = arm[-1]
        for jaw in (1, -1):
            s.patch(
                "leg",
                [
                    polar(claw, 0.08, grip + 180),
                    polar(claw, size * 0.55, grip + jaw * (gape + 42)),
                    polar(claw, size * 0.95, grip + jaw * (gape + 16)),
                    polar(claw, size * 1.12, grip + jaw * gape * 0.5),
                    polar(claw, size * 0.62, grip + jaw * gape * 0.8),
                    polar(claw, size * 0.3, grip),
                ],
                "accent",
                join=jaw < 0,
            )
        s.mark(f"{word}_claw", polar(claw, size * 0.75, grip + gape + 10), "leg")
        s.mark(f"{word}_elbow", arm[1], "leg")
        stalk = chain((side * 0.15, 0.2), (0.24, 90 - side * (8 + 14 * pose[6] * side)))
        s.limb("ear", stalk, (0.045, 0.04), "skin")
        s.eye(stalk[-1], 0.095, f"{word}_eye", look=(0.0, 0.1))
    s.patch(
        "body",
        [
            (0.0, 0.26),
            (-wide * 0.75, 0.2),
            (-wide, -0.02),
            (-wide * 0.62, -0.3),
            (0.0, -0.36),
            (wide * 0.62, -0.3),
            (wide, -0.02),
            (wide * 0.75, 0.2),
        ],
    )
    s.mark("shell", (0.0, 0.0), "body")
    s.limb(
        "mouth", [(-0.12, -0.14), (0.0, -0.19), (0.12, -0.14)], (0.025, 0.025, 0.025), "black", outlined=False
    )
    s.mark("mouth", (0.0, -0.188), "mouth")
