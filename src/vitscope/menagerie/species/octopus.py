"""A tall mantle with two large eyes over six curling arms."""

from __future__ import annotations

from collections.abc import Sequence

from vitscope.menagerie.sketch import Sketch, between, chain


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
    s.limb("mouth", [(-0.09, -0.08), (0.0, -0.12), (0.09, -0.08)], (0.025, 0.03, 0.025), "black", outlined=False)
    s.mark("mouth", (0.0, -0.12), "mouth")
