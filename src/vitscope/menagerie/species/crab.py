"""A wide shell between two raised claws, six legs below, eyes on stalks."""

from __future__ import annotations

from collections.abc import Sequence

from vitscope.menagerie.sketch import Sketch, between, chain, polar


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
    s.limb("mouth", [(-0.12, -0.14), (0.0, -0.19), (0.12, -0.14)], (0.025, 0.025, 0.025), "black", outlined=False)
    s.mark("mouth", (0.0, -0.188), "mouth")
