"""Creatures of the water and its edge: fish, octopus, turtle, crocodile."""

from __future__ import annotations

from collections.abc import Sequence

from vitscope.data.menagerie.sketch import Sketch, between, chain, polar
from vitscope.data.menagerie.species.walkers import leg


def fish(s: Sketch, build: Sequence[float], pose: Sequence[float]) -> None:
    deep = 0.36 + 0.05 * build[0]
    wag = 0.16 * pose[0]
    root = (-0.52, wag * 0.6)
    tail = 180 - 40 * pose[0]
    s.patch(
        "tail",
        [
            polar(root, 0.1, tail - 90),
            polar(root, 0.56, tail - 42),
            polar(root, 0.3, tail),
            polar(root, 0.56, tail + 42),
            polar(root, 0.1, tail + 90),
        ],
        "mark",
        smooth=False,
    )
    s.mark("tail_top", polar(root, 0.42, tail - 36), "tail")
    s.mark("tail_bottom", polar(root, 0.42, tail + 36), "tail")
    crest = 0.24 + 0.06 * pose[1] + 0.04 * build[1]
    s.patch(
        "wing",
        [
            (0.22, deep * 0.75),
            (0.02, deep * 0.9 + crest),
            (-0.34, deep * 0.75 + crest * 0.8),
            (-0.36, deep * 0.5),
            (0.0, deep * 0.5),
        ],
        "accent",
    )
    s.mark("back_fin", (-0.08, deep * 0.85 + crest * 0.5), "wing")
    s.patch(
        "wing",
        [
            (0.05, -deep * 0.7),
            (-0.1, -deep * 0.9 - crest * 0.6),
            (-0.3, -deep * 0.75 - crest * 0.5),
            (-0.26, -deep * 0.5),
        ],
        "accent",
    )
    s.mark("belly_fin", (-0.16, -deep * 0.8 - crest * 0.25), "wing")
    s.patch(
        "body",
        [
            (0.78, -0.02),
            (0.6, deep * 0.62),
            (0.15, deep),
            (-0.3, deep * 0.68 + wag * 0.3),
            (-0.6, 0.1 + wag * 0.7),
            (-0.6, -0.1 + wag * 0.7),
            (-0.3, -deep * 0.68 + wag * 0.3),
            (0.15, -deep),
            (0.6, -deep * 0.66),
        ],
    )
    s.mark("side", (-0.05, 0.05), "body")
    s.patch(
        "head",
        [
            (0.8, -0.02),
            (0.62, deep * 0.62),
            (0.36, deep * 0.9),
            (0.28, 0.0),
            (0.36, -deep * 0.9),
            (0.62, -deep * 0.66),
        ],
        "belly",
    )
    s.limb("mouth", [(0.84, -0.1), (0.72, -0.13 - 0.02 * pose[4])], (0.045, 0.035), "pink")
    s.mark("mouth", (0.78, -0.115), "mouth")
    flap = 200 + 40 * pose[2]
    fin = (0.2, -0.08)
    s.patch(
        "wing",
        [fin, polar(fin, 0.34, flap - 24), polar(fin, 0.38, flap), polar(fin, 0.3, flap + 26)],
        "accent",
    )
    s.mark("side_fin", polar(fin, 0.25, flap), "wing")
    s.eye((0.53, 0.1), 0.1)


def octopus(s: Sketch, build: Sequence[float], pose: Sequence[float]) -> None:
    long = 0.3 + 0.03 * build[0]
    for i, (x, direction) in enumerate(
        ((-0.34, 205), (-0.24, 232), (-0.09, 258), (0.09, 282), (0.24, 308), (0.34, 335))
    ):
        side = 1 if x > 0 else -1
        curl = pose[i % 6] * 0.8 + 0.2 * pose[6]
        sweep = direction + 14 * pose[(i + 3) % 6]
        arm = chain(
            (x, -0.08),
            (long, sweep),
            (long, sweep + side * 18 + 42 * curl),
            (long * 0.8, sweep + side * 40 + 95 * curl),
        )
        s.limb("leg", arm, (0.12, 0.1, 0.075, 0.035), "far" if i in (1, 4) else "skin")
        s.mark(f"arm_{i + 1}_tip", between(arm[2], arm[3], 0.85), "leg")
        s.mark(f"arm_{i + 1}_middle", arm[1], "leg")
    tall = 0.5 + 0.05 * build[1] + 0.06 * pose[7]
    lean = 0.12 * pose[8]
    s.patch(
        "body",
        [
            (lean, 0.05 + tall * 1.55),
            (-0.36 + lean * 0.8, 0.05 + tall * 1.1),
            (-0.42 + lean * 0.3, 0.22),
            (-0.4, -0.1),
            (0.0, -0.24),
            (0.4, -0.1),
            (0.42 + lean * 0.3, 0.22),
            (0.36 + lean * 0.8, 0.05 + tall * 1.1),
        ],
    )
    s.mark("mantle", (lean * 0.8, 0.05 + tall * 1.2), "body")
    for side, word in ((-1, "left"), (1, "right")):
        s.eye((side * 0.17, 0.12), 0.125, f"{word}_eye", look=(-0.1 * side + 0.2 * pose[9], -0.1))
    s.limb(
        "mouth", [(-0.09, -0.08), (0.0, -0.12), (0.09, -0.08)], (0.025, 0.03, 0.025), "black", outlined=False
    )
    s.mark("mouth", (0.0, -0.12), "mouth")


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


def crocodile(s: Sketch, build: Sequence[float], pose: Sequence[float]) -> None:
    for name, x, swing in (("far_back", -0.3, pose[0]), ("far_front", 0.2, pose[1])):
        leg(s, name, (x + 0.05, -0.16), (0.14, 0.13), (0.08, 0.065), 36 * swing, 20, far=True, foot=0.08)
    sway = 30 * pose[4]
    tail = chain((-0.38, -0.08), (0.26, 180 - 0.4 * sway), (0.26, 180 - sway), (0.26, 180 - 1.9 * sway))
    for i in range(7):  # the crest runs down the back and the tail
        base = (
            between((0.28, 0.02), (-0.36, 0.02), i / 4) if i < 5 else between(tail[1], tail[2], (i - 5) / 1.4)
        )
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
