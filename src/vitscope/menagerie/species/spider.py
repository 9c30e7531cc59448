"""Two round segments and eight kneed legs, from above."""

from __future__ import annotations

from collections.abc import Sequence

from vitscope.menagerie.sketch import Sketch, between, chain


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
