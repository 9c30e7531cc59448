"""A dome of a shell, stubby legs, a head on a neck."""

from __future__ import annotations

from collections.abc import Sequence

from vitscope.menagerie.sketch import Sketch, between, chain, polar
from vitscope.menagerie.species.leg import leg


def turtle(s: Sketch, build: Sequence[float], pose: Sequence[float]) -> None:
    high = 0.52 + 0.06 * build[0]
    stub = 0.17 + 0.02 * build[1]
    for name, x, swing in (("far_back", -0.3, pose[0]), ("far_front", 0.32, pose[1])):
        leg(s, name, (x, -0.28), (stub, stub), (0.11, 0.1), 36 * swing, 0, far=True)
    tail = chain((-0.6, -0.26), (0.24, 192 + 26 * pose[4]))
    s.limb("tail", tail, (0.09, 0.025), "belly")
    s.mark("tail_tip", between(tail[0], tail[1], 0.75), "tail")
    head = polar((0.55, -0.22), 0.36 + 0.09 * pose[5], 30 + 28 * pose[6])
    s.limb("head", [(0.45, -0.24), between((0.5, -0.22), head, 0.5), head], (0.11, 0.1, 0.11), "belly")
    s.blob("head", head, (0.19, 0.16), "belly", turn=12 * pose[6], join=True)
    s.mark("crown", polar(head, 0.1, 110), "head")
    s.limb(
        "mouth",
        [(head[0] + 0.07, head[1] - 0.075), (head[0] + 0.165, head[1] - 0.045)],
        (0.018, 0.018),
        "black",
        outlined=False,
    )
    s.mark("mouth", (head[0] + 0.12, head[1] - 0.06), "mouth")
    s.eye((head[0] + 0.06, head[1] + 0.04), 0.072)
    s.patch(
        "body",
        [
            (-0.68, -0.28),
            (-0.62, high * 0.2),
            (-0.4, high * 0.72),
            (0.0, high * 0.92),
            (0.4, high * 0.7),
            (0.6, high * 0.15),
            (0.64, -0.28),
            (0.0, -0.3),
        ],
    )
    s.mark("shell_top", (0.0, high * 0.8), "body")
    s.limb("body", [(-0.68, -0.26), (0.0, -0.29), (0.66, -0.26)], (0.07, 0.08, 0.07), "mark")
    s.mark("shell_front", (0.56, -0.265), "body")
    s.mark("shell_back", (-0.58, -0.265), "body")
    for name, x, swing in (("near_back", -0.42, pose[2]), ("near_front", 0.4, pose[3])):
        hip = (x, -0.32)
        joints = chain(hip, (stub, -90 + 36 * swing), (stub, -90 + 36 * swing))
        s.limb("leg", joints, (0.12, 0.12, 0.11), "belly")
        s.mark(f"{name}_foot", between(joints[1], joints[2], 0.85), "leg")
