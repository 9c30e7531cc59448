"""The leg that all walkers share."""

from __future__ import annotations

from vitscope.menagerie.sketch import Point, Sketch, between, chain, polar


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
        s.limb("leg", [joints[-1], polar(joints[-1], foot, 0.0)], (widths[1], widths[1] * 0.9), ink, join=True)
    s.mark(f"{name}_foot", between(joints[1], joints[2], 0.92), "leg")
