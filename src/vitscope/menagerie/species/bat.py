"""Scalloped wings on long fingers, large ears, from the front."""

from __future__ import annotations

from collections.abc import Sequence

from vitscope.menagerie.sketch import Sketch, between, polar


def bat(s: Sketch, build: Sequence[float], pose: Sequence[float]) -> None:
    span = 0.98 + 0.06 * build[0]
    for side, word, flap in ((-1, "left", pose[0] + 0.25 * pose[1]), (1, "right", pose[0] - 0.25 * pose[1])):
        rise = 0.42 * flap
        tip = (side * span, 0.32 + rise)
        wrist = (side * span * 0.52, 0.42 + rise * 0.4)
        hem = [
            (side * span * 0.92, 0.0 + rise * 0.85),
            (side * span * 0.74, 0.1 + rise * 0.6),
            (side * span * 0.64, -0.22 + rise * 0.5),
            (side * span * 0.46, -0.06 + rise * 0.3),
            (side * span * 0.32, -0.34 + rise * 0.15),
            (side * span * 0.2, -0.18),
            (side * 0.06, -0.32),
        ]
        s.patch("wing", [(side * 0.05, 0.22), wrist, tip, *hem], "mark", smooth=False)
        s.limb(
            "wing",
            [(side * 0.1, 0.14), wrist, between(wrist, tip, 0.9)],
            (0.05, 0.045, 0.025),
            "far",
            outlined=False,
        )
        s.limb("wing", [wrist, between(wrist, hem[2], 0.85)], (0.025, 0.018), "far", outlined=False)
        s.mark(f"{word}_wing_tip", between(tip, wrist, 0.12), "wing")
        s.mark(f"{word}_wrist", between(wrist, (0.0, 0.0), 0.04), "wing")
        s.limb("leg", [(side * 0.1, -0.34), (side * (0.13 + 0.04 * pose[2]), -0.52)], (0.045, 0.04), "dark")
        s.mark(f"{word}_foot", (side * (0.127 + 0.035 * pose[2]), -0.48), "leg")
    s.blob("body", (0.0, -0.1), (0.21 + 0.02 * build[1], 0.31), "coat")
    s.blob("body", (0.0, -0.14), (0.12, 0.2), "belly", outlined=False)
    s.mark("belly", (0.0, -0.15), "body")
    head = (0.05 * pose[3], 0.27)
    for side, word in ((-1, "left"), (1, "right")):
        ear = polar(head, 0.5 + 0.04 * build[2], 90 - side * (27 + 10 * pose[4]))
        s.patch(
            "ear",
            [(head[0] + side * 0.02, head[1] + 0.15), ear, (head[0] + side * 0.23, head[1] + 0.04)],
            "skin",
            smooth=False,
        )
        s.patch(
            "ear",
            [
                (head[0] + side * 0.08, head[1] + 0.16),
                between(ear, head, 0.22),
                (head[0] + side * 0.18, head[1] + 0.1),
            ],
            "pink",
            smooth=False,
            outlined=False,
        )
        s.mark(f"{word}_ear", between(ear, (head[0] + side * 0.12, head[1] + 0.1), 0.25), "ear")
    s.blob("head", head, (0.24, 0.21), "skin")
    s.eye((head[0] - 0.09, head[1] + 0.05), 0.07, "left_eye", look=(0.1, 0.0))
    s.eye((head[0] + 0.09, head[1] + 0.05), 0.07, "right_eye", look=(-0.1, 0.0))
    s.blob("mouth", (head[0], head[1] - 0.09), (0.09, 0.045), "black", outlined=False)
    for x in (-0.045, 0.045):
        s.patch(
            "mouth",
            [
                (head[0] + x - 0.028, head[1] - 0.06),
                (head[0] + x + 0.028, head[1] - 0.06),
                (head[0] + x, head[1] - 0.14),
            ],
            "white",
            smooth=False,
            outlined=False,
        )
    s.mark("mouth", (head[0], head[1] - 0.09), "mouth")
