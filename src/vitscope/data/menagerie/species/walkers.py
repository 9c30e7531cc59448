"""Four-legged creatures seen from the side: giraffe, elephant, cat, rabbit."""

from __future__ import annotations

from collections.abc import Sequence

from vitscope.data.menagerie.sketch import Point, Sketch, between, chain, polar


def leg(
    s: Sketch,
    name: str,
    hip: Point,
    lengths: tuple[float, float],
    widths: tuple[float, float],
    swing: float,
    bend: float,
    *,
    far: bool = False,
    foot: float = 0.0,
) -> None:
    """A leg that swings by degrees about the hip and bends at the knee; the foot, if any, points forward."""
    joints = chain(hip, (lengths[0], -90 + swing), (lengths[1], -90 + swing - bend))
    # Near legs grow out of the body that was drawn just before: one coat, no line between them.
    ink = "far" if far else "coat"
    s.limb("leg", joints, (widths[0], (widths[0] + widths[1]) / 2, widths[1]), ink, join=not far)
    if foot:
        s.limb(
            "leg", [joints[-1], polar(joints[-1], foot, 0.0)], (widths[1], widths[1] * 0.9), ink, join=True
        )
    s.mark(f"{name}_foot", between(joints[1], joints[2], 0.92), "leg")


def giraffe(s: Sketch, build: Sequence[float], pose: Sequence[float]) -> None:
    reach = 0.42 + 0.04 * build[0]
    back, front = (-0.42, -0.12), (0.0, -0.1)
    for name, hip, swing in (("far_back", back, pose[0]), ("far_front", front, pose[1])):
        leg(
            s,
            name,
            (hip[0] + 0.06, hip[1]),
            (reach, reach),
            (0.075, 0.055),
            22 * swing,
            16 * pose[4],
            far=True,
        )
    tail = chain((-0.55, 0.02), (0.2, 215 + 35 * pose[5]), (0.22, 250 + 45 * pose[5]))
    s.limb("tail", tail, (0.03, 0.03, 0.025), "skin")
    s.blob("tail", tail[-1], (0.06, 0.09), "dark", turn=45 * pose[5])
    s.mark("tail_tip", tail[-1], "tail")
    s.blob("body", (-0.22, 0.0), (0.4, 0.23 + 0.03 * build[1]), turn=9)
    s.mark("back", (-0.38, 0.1), "body")
    for name, hip, swing in (("near_back", back, pose[2]), ("near_front", front, pose[3])):
        leg(s, name, hip, (reach, reach), (0.085, 0.06), 22 * swing, -16 * pose[4])
    lean = 66 + 26 * pose[6]
    length = 0.42 + 0.07 * build[2]
    neck = chain((0.02, 0.02), (length, lean), (length, lean + 18 * pose[7]))
    s.limb("body", neck, (0.16, 0.095, 0.085), join=True)
    s.mark("neck", neck[1], "body")
    crown = neck[-1]
    nod = -22 + 22 * pose[8]
    for side, name in ((-0.05, "far_horn"), (0.03, "near_horn")):
        tip = polar((crown[0] + side, crown[1] + 0.06), 0.19, 98 + nod * 0.5)
        s.limb("ear", [(crown[0] + side, crown[1] + 0.05), tip], (0.028, 0.028), "skin")
        s.blob("ear", tip, (0.05, 0.05), "dark", outlined=False)
        s.mark(name, tip, "ear")
    s.limb("ear", [(crown[0] - 0.06, crown[1] + 0.03), polar(crown, 0.2, 155 + nod)], (0.05, 0.02), "belly")
    nose = polar(crown, 0.27 + 0.03 * build[3], nod)
    s.limb("head", [crown, between(crown, nose, 0.5), nose], (0.12, 0.1, 0.085), "skin")
    s.limb("mouth", [between(crown, nose, 0.82), nose], (0.085, 0.08), "belly")
    s.mark("nose", nose, "mouth")
    s.eye((crown[0] + 0.03, crown[1] + 0.05), 0.075)


def elephant(s: Sketch, build: Sequence[float], pose: Sequence[float]) -> None:
    stout = 0.13 + 0.015 * build[0]
    for name, hip, swing in (("far_back", (-0.32, -0.2), pose[0]), ("far_front", (0.22, -0.2), pose[1])):
        leg(s, name, hip, (0.25, 0.27), (stout, stout * 0.9), 22 * swing, 8, far=True)
    tail = chain((-0.62, 0.15), (0.2, 230 + 35 * pose[4]), (0.17, 255 + 50 * pose[4]))
    s.limb("tail", tail, (0.045, 0.035, 0.03), "skin")
    s.blob("tail", tail[-1], (0.045, 0.07), "dark")
    s.mark("tail_tip", tail[-1], "tail")
    s.blob("body", (-0.12, 0.08), (0.56 + 0.04 * build[1], 0.43 + 0.03 * build[2]))
    s.mark("back", (-0.2, 0.38), "body")
    for name, hip, swing in (("near_back", (-0.42, -0.2), pose[2]), ("near_front", (0.1, -0.2), pose[3])):
        leg(s, name, hip, (0.27, 0.28), (stout * 1.1, stout), 22 * swing, 8)
    head = (0.5, 0.25 + 0.07 * pose[5])
    lift = 70 * pose[6]
    trunk = chain(
        (head[0] + 0.18, head[1] - 0.06),
        (0.22, -62 + 0.55 * lift),
        (0.22, -82 + 1.3 * lift),
        (0.2, -60 + 1.9 * lift + 30 * pose[7]),
    )
    s.limb("mouth", trunk, (0.13, 0.09, 0.075, 0.06), "skin")
    s.mark("trunk_tip", between(trunk[2], trunk[3], 0.95), "mouth")
    s.mark("trunk_middle", trunk[1], "mouth")
    tusk = chain((head[0] + 0.14, head[1] - 0.15), (0.12, -40), (0.13, -5))
    s.limb("mouth", tusk, (0.045, 0.04, 0.02), "white")
    s.blob("head", head, (0.28, 0.28), "skin")
    s.mark("forehead", (head[0] + 0.1, head[1] + 0.2), "head")
    flap = 1.0 + 0.28 * pose[8]
    s.patch(
        "ear",
        [
            (head[0] - 0.02, head[1] + 0.25),
            (head[0] - 0.26 * flap, head[1] + 0.3),
            (head[0] - 0.36 * flap, head[1] + 0.02),
            (head[0] - 0.24 * flap, head[1] - 0.28),
            (head[0] - 0.06, head[1] - 0.16),
        ],
        "accent",
    )
    s.mark("ear", (head[0] - 0.22 * flap, head[1] + 0.0), "ear")
    s.eye((head[0] + 0.11, head[1] + 0.06), 0.07)


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
    s.limb(
        "body", [hips, ((hips[0] + chest[0]) / 2, -0.02 + 0.05 * pose[6]), chest], (bulk, bulk * 0.95, bulk)
    )
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
    s.limb(
        "leg", [(-0.36, -0.5), (-0.24, -0.54), (-0.05 + hock, -0.55)], (0.08, 0.08, 0.065), "skin", join=True
    )
    s.mark("near_back_foot", (-0.08 + hock, -0.55), "leg")
    head = polar(chest, 0.36, 56 + 20 * pose[4])
    long = 0.27 + 0.03 * build[2]
    for name, direction, flop in (("far_ear", 104, pose[6]), ("near_ear", 82, pose[7])):
        direction += 22 * pose[5]
        ear = chain(
            polar(head, 0.15, direction), (long, direction + 16 * flop), (long, direction + 48 * flop)
        )
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
