"""Upright, white-bellied, with flippers and flat feet."""

from __future__ import annotations

from collections.abc import Sequence

from vitscope.menagerie.sketch import Sketch, between, chain, polar


def penguin(s: Sketch, build: Sequence[float], pose: Sequence[float]) -> None:
    plump = 0.36 + 0.035 * build[0]
    for name, x, lift in (("far_foot", 0.16, max(pose[0], 0.0)), ("near_foot", -0.12, max(-pose[0], 0.0))):
        at = (x, -0.86 + 0.12 * lift)
        s.limb(
            "leg",
            [at, (at[0] + 0.12, at[1] - 0.01), (at[0] + 0.22, at[1] - 0.01)],
            (0.075, 0.07, 0.05),
            "accent",
        )
        s.mark(name, (at[0] + 0.14, at[1] - 0.01), "leg")
    s.patch("tail", [(-0.2, -0.6), (-0.48, -0.84), (-0.16, -0.8)], "far", smooth=False)
    s.mark("tail_tip", (-0.36, -0.76), "tail")
    far, near = -58 + 38 * pose[2], 238 - 38 * pose[1]
    flipper = chain((plump * 0.7, 0.12), (0.24, far), (0.24, far - 14))
    s.limb("wing", flipper, (0.09, 0.1, 0.03), "far")
    s.mark("far_flipper", between(flipper[1], flipper[2], 0.85), "wing")
    s.patch(
        "body",
        [
            (0.0, 0.5),
            (-plump * 0.7, 0.25),
            (-plump, -0.3),
            (-plump * 0.7, -0.78),
            (0.05, -0.88),
            (plump * 0.82, -0.72),
            (plump, -0.25),
            (plump * 0.75, 0.25),
        ],
    )
    s.patch(
        "body",
        [
            (0.1, 0.2),
            (-0.12, -0.05),
            (-0.14, -0.5),
            (0.08, -0.78),
            (plump * 0.8, -0.5),
            (plump * 0.84, 0.0),
            (0.22, 0.24),
        ],
        "white",
        outlined=False,
    )
    s.mark("belly", (0.1, -0.3), "body")
    head = (0.03 + 0.06 * pose[3], 0.55)
    beak = 4 + 26 * pose[4]
    for sign in (-1, 1):
        s.patch(
            "mouth",
            [polar(head, 0.23, beak + 24 * sign), polar(head, 0.47, beak + 2 * sign), polar(head, 0.1, beak)],
            "accent",
            smooth=False,
        )
    s.mark("beak", polar(head, 0.34, beak + 4), "mouth")
    s.blob("head", head, (0.28, 0.27), "skin")
    s.blob("head", polar(head, 0.13, beak - 20), (0.14, 0.17), "white", outlined=False)
    s.mark("crown", polar(head, 0.2, 105), "head")
    s.eye(polar(head, 0.13, 28 + beak * 0.5), 0.075)
    flipper = chain((-plump * 0.55, 0.14), (0.28, near), (0.28, near + 16))
    s.limb("wing", flipper, (0.09, 0.12, 0.035), "skin")
    s.mark("near_flipper", between(flipper[1], flipper[2], 0.85), "wing")
