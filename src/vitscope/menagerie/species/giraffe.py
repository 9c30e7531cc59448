"""Long legs, a long neck that bends, two horns."""

from __future__ import annotations

from collections.abc import Sequence

from vitscope.menagerie.sketch import Sketch, between, chain, polar
from vitscope.menagerie.species.leg import leg


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
