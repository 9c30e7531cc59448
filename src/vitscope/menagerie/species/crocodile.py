"""Long and low, crested, with open jaws full of teeth."""

from __future__ import annotations

from collections.abc import Sequence

from vitscope.menagerie.sketch import Sketch, between, chain, polar
from vitscope.menagerie.species.leg import leg


def crocodile(s: Sketch, build: Sequence[float], pose: Sequence[float]) -> None:
    for name, x, swing in (("far_back", -0.3, pose[0]), ("far_front", 0.2, pose[1])):
        leg(s, name, (x + 0.05, -0.16), (0.14, 0.13), (0.08, 0.065), 36 * swing, 20, far=True, foot=0.08)
    sway = 30 * pose[4]
    tail = chain((-0.38, -0.08), (0.26, 180 - 0.4 * sway), (0.26, 180 - sway), (0.26, 180 - 1.9 * sway))
    for i in range(7):  # the crest runs down the back and the tail
        base = between((0.28, 0.02), (-0.36, 0.02), i / 4) if i < 5 else between(tail[1], tail[2], (i - 5) / 1.4)
        top = 0.24 if i < 5 else 0.2 - 0.03 * (i - 5)
        s.patch(
            "body" if i < 5 else "tail",
            [(base[0] - 0.1, base[1]), (base[0] - 0.02, base[1] + top), (base[0] + 0.1, base[1])],
            "mark",
            smooth=False,
        )
    s.limb("tail", tail, (0.17, 0.12, 0.08, 0.025))
    s.mark("tail_tip", between(tail[2], tail[3], 0.85), "tail")
    s.mark("tail_middle", tail[1], "tail")
    bulk = 0.19 + 0.02 * build[0]
    s.limb(
        "body",
        [(-0.4, -0.08), (-0.05, -0.1 + 0.03 * pose[5]), (0.28, -0.04)],
        (bulk * 0.92, bulk, bulk * 0.85),
        join=True,
    )
    s.mark("back", (-0.05, 0.0), "body")
    for name, x, swing in (("near_back", -0.38, pose[2]), ("near_front", 0.14, pose[3])):
        leg(s, name, (x, -0.16), (0.16, 0.14), (0.1, 0.07), 36 * swing, 20, foot=0.09)
    head = polar((0.26, -0.03), 0.2, 14 + 18 * pose[6])
    jaw = 6 * pose[6]
    gape = 13 + 11 * pose[7]
    snout = 0.5 + 0.05 * build[1]
    lower, upper = polar(head, snout * 0.95, jaw - gape), polar(head, snout, jaw + gape * 0.6)
    s.limb("mouth", [head, between(head, lower, 0.5), lower], (0.11, 0.06, 0.045), "belly")
    s.mark("lower_jaw", between(head, lower, 0.93), "mouth")
    for i in range(4):
        tooth = between(head, upper, 0.42 + 0.16 * i)
        s.patch(
            "mouth",
            [
                (tooth[0] - 0.045, tooth[1] - 0.02),
                (tooth[0] + 0.045, tooth[1] - 0.02),
                (tooth[0], tooth[1] - 0.14),
            ],
            "white",
            smooth=False,
        )
    s.limb("mouth", [between(head, upper, 0.2), between(head, upper, 0.6), upper], (0.1, 0.07, 0.065), "skin")
    s.blob("mouth", polar(upper, 0.05, 95), (0.05, 0.045), "skin", join=True)
    s.mark("snout", upper, "mouth")
    s.blob("head", head, (0.2, 0.16), "skin", turn=jaw, join=True)
    brow = polar(head, 0.15, 82 + jaw)
    s.blob("head", brow, (0.1, 0.085), "skin", join=True)
    s.eye((brow[0] + 0.01, brow[1] + 0.01), 0.07)
    s.mark("cheek", polar(head, 0.08, 220), "head")
