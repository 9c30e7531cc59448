"""Long ears that flop, a round haunch, a white tail."""

from __future__ import annotations

from collections.abc import Sequence

from vitscope.menagerie.sketch import Sketch, between, chain, polar
from vitscope.menagerie.species.leg import leg


def rabbit(s: Sketch, build: Sequence[float], pose: Sequence[float]) -> None:
    pitch = 14 * pose[0]
    s.blob("tail", (-0.56, -0.22 - 0.004 * pitch), (0.13, 0.13), "white")
    s.mark("tail", (-0.6, -0.22 - 0.004 * pitch), "tail")
    chest = polar((-0.2, -0.25), 0.3, 28 + pitch)
    leg(
        s,
        "far_front",
        (chest[0] + 0.06, chest[1] - 0.06),
        (0.22, 0.2),
        (0.07, 0.055),
        26 * pose[1],
        0,
        far=True,
        foot=0.06,
    )
    s.blob("body", (-0.18, -0.22), (0.42 + 0.03 * build[0], 0.33 + 0.03 * build[1]), turn=16 + pitch)
    s.mark("back", (-0.26, 0.0), "body")
    leg(s, "near_front", chest, (0.23, 0.22), (0.08, 0.06), 26 * pose[2], 0, foot=0.07)
    hock = 0.1 * pose[3]
    s.blob("leg", (-0.33, -0.35), (0.23, 0.2), "skin", turn=20 * pose[3])
    s.limb("leg", [(-0.36, -0.5), (-0.24, -0.54), (-0.05 + hock, -0.55)], (0.08, 0.08, 0.065), "skin", join=True)
    s.mark("near_back_foot", (-0.08 + hock, -0.55), "leg")
    head = polar(chest, 0.36, 56 + 20 * pose[4])
    long = 0.27 + 0.03 * build[2]
    for name, direction, flop in (("far_ear", 104, pose[6]), ("near_ear", 82, pose[7])):
        up = direction + 22 * pose[5]
        ear = chain(polar(head, 0.15, up), (long, up + 16 * flop), (long, up + 48 * flop))
        s.limb("ear", ear, (0.07, 0.1, 0.055), "skin" if name == "near_ear" else "far")
        s.limb(
            "ear",
            [between(ear[0], ear[1], 0.4), ear[1], between(ear[1], ear[2], 0.75)],
            (0.03, 0.05, 0.02),
            "pink",
            outlined=False,
        )
        s.mark(name, between(ear[1], ear[2], 0.85), "ear")
    s.blob("head", head, (0.25, 0.22), "coat", turn=-12)
    s.blob("head", (head[0] + 0.1, head[1] - 0.09), (0.13, 0.1), "belly", outlined=False)
    s.blob("mouth", (head[0] + 0.22, head[1] - 0.03), (0.045, 0.035), "pink", outlined=False)
    s.mark("nose", (head[0] + 0.21, head[1] - 0.03), "mouth")
    s.eye((head[0] + 0.05, head[1] + 0.06), 0.075)
