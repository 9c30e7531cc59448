"""A round body on two thin legs, with a beak, a fan of a tail and wings that flap."""

from __future__ import annotations

from collections.abc import Sequence

from vitscope.menagerie.sketch import Sketch, chain, polar


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
    s.mark("wing_tip", polar((-0.02, 0.04), 0.46 + 0.2 * max(flap, 0.0), 178 - 68 * max(flap, -0.2) + 2), "wing")


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
