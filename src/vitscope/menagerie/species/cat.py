"""Pointed ears, a tail that curls, four legs that walk."""

from __future__ import annotations

from collections.abc import Sequence

from vitscope.menagerie.sketch import Sketch, between, chain, polar
from vitscope.menagerie.species.leg import leg


def cat(s: Sketch, build: Sequence[float], pose: Sequence[float]) -> None:
    rise = 0.12 * pose[9]  # crouching behind or in front
    hips, chest = (-0.42, -0.08 - rise), (0.18, -0.05 + rise)
    reach = 0.24 + 0.03 * build[0]
    for name, hip, swing in (("far_back", hips, pose[0]), ("far_front", chest, pose[1])):
        leg(
            s,
            name,
            (hip[0] + 0.05, hip[1] - 0.05),
            (reach, reach * 0.9),
            (0.085, 0.06),
            34 * swing,
            14,
            far=True,
            foot=0.06,
        )
    curl = pose[4]
    tail = chain(
        (hips[0] - 0.1, hips[1] + 0.06),
        (0.26, 150 + 45 * pose[5]),
        (0.26, 105 + 55 * pose[5] + 30 * curl),
        (0.22, 80 + 30 * pose[5] + 85 * curl),
    )
    s.limb("tail", tail, (0.075, 0.065, 0.06, 0.05))
    s.mark("tail_tip", between(tail[2], tail[3], 0.95), "tail")
    s.mark("tail_middle", tail[1], "tail")
    bulk = 0.19 + 0.025 * build[1]
    s.limb("body", [hips, ((hips[0] + chest[0]) / 2, -0.02 + 0.05 * pose[6]), chest], (bulk, bulk * 0.95, bulk))
    s.mark("back", ((hips[0] + chest[0]) / 2, 0.06), "body")
    for name, hip, swing in (("near_back", hips, pose[2]), ("near_front", chest, pose[3])):
        leg(
            s,
            name,
            (hip[0] - 0.02, hip[1] - 0.06),
            (reach, reach * 0.9),
            (0.1, 0.065),
            34 * swing,
            14,
            foot=0.06,
        )
    head = polar(chest, 0.36, 48 + 28 * pose[7])
    size = 0.24 + 0.015 * build[2]
    tilt = 14 * pose[8]
    for side, name in ((62, "near_ear"), (118, "far_ear")):
        a, b = polar(head, size * 0.98, side + tilt + 24), polar(head, size * 0.98, side + tilt - 24)
        tip = polar(head, size * 1.72, side + tilt + (8 if side > 90 else -8))
        s.patch("ear", [a, tip, b, head], "skin", smooth=False)
        s.patch(
            "ear",
            [between(a, b, 0.25), between(tip, head, 0.18), between(a, b, 0.75)],
            "pink",
            smooth=False,
            outlined=False,
        )
        s.mark(name, between(tip, head, 0.2), "ear")
    s.blob("head", head, (size * 1.08, size * 0.95), "coat", turn=tilt)
    s.blob("mouth", (head[0] + 0.07, head[1] - 0.1), (0.11, 0.075), "belly", turn=tilt, outlined=False)
    s.blob("mouth", (head[0] + 0.08, head[1] - 0.05), (0.035, 0.025), "black", outlined=False)
    s.mark("nose", (head[0] + 0.08, head[1] - 0.07), "mouth")
    s.eye((head[0] - 0.06, head[1] + 0.05), 0.068, "far_eye")
    s.eye((head[0] + 0.15, head[1] + 0.05), 0.068, "near_eye")
