"""F3: in which order local and global information is processed.

Seen on real networks (64 COCO photos): supervised B/16 looks farther with every layer, from 0.27 at layer 2 to 0.59 at
layer 12 (beyond uniform attention, 0.56); DINOv2 S/14 stays between 0.26 and 0.41 after its first layer. The curves
move apart by 0.32, and early layers of both mix heads that look 0.1 far or less with heads that look 0.5 far.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from statistics import fmean

import numpy as np
import polars as pl

from vitscope.findings.claim import Claim, Part, followed, missing
from vitscope.findings.measured import Measured
from vitscope.findings.tables import (
    KINDS,
    Model,
    Study,
    curve,
    deep_enough,
    mean_by_teaching,
    measured_throughout,
    numbers,
    of_kind,
    titles,
)
from vitscope.findings.thresholds import Thresholds

Curve = list[Measured]  # from the first layer to the last, at as many depths as the shallowest model has layers


def _parts(study: Study, t: Thresholds) -> Iterator[Part]:
    frame = study.rows("attention_distance", "patch_free")
    models = [model for model in deep_enough(measured_throughout(frame), t.least_depth) if model.kind in KINDS]
    kinds = [kind for kind in KINDS if of_kind(models, kind)]
    if len(kinds) < 2:
        here = f"only {KINDS[kinds[0]]}" if kinds else "none"
        yield missing(f"it takes the attention distance of models of two kinds of teaching (here: {here})")
        return
    points = min(model.depth for model in models)
    curves = {model: resampled(list(curve(frame, model).values()), points) for model in models}
    yield _order(curves, kinds, t)
    yield _by_family(curves)
    yield _mixed(frame, models, t)


def resampled(values: Curve, points: int) -> Curve:
    """A curve over relative depth at `points` places, linear between layers."""
    if len(values) == points:
        return values
    at, layers = np.linspace(0, 1, points), np.linspace(0, 1, len(values))
    columns = ([v.value for v in values], [v.low for v in values], [v.high for v in values])
    interpolated = [np.interp(at, layers, column).tolist() for column in columns]
    return [Measured(*row) for row in zip(*interpolated, strict=True)]


def _order(curves: dict[Model, Curve], kinds: list[str], t: Thresholds) -> Part:
    """Going deeper, one kind becomes more global against another, by a clear amount, for any two kinds."""
    points = range(len(next(iter(curves.values()))))
    mean = {
        kind: [mean_by_teaching([(m, values[i]) for m, values in curves.items() if m.kind == kind]) for i in points]
        for kind in kinds
    }
    same: list[str] = []
    other: list[str] = []
    evidence = []
    for one, two in combinations(kinds, 2):
        apart = [a - b for a, b in zip(mean[one], mean[two], strict=True)]  # at each depth
        most, least = max(apart, key=_value), min(apart, key=_value)
        swing = most - least
        told = f"{one} and {two} models (by {swing:.2f} over depth)"
        (other if most.clearly_above(least, t.order_swing) else same).append(told)
        evidence.append(swing.as_evidence(f"{one} against {two}: how far the curves of attention distance move apart"))
    word = "does not clearly differ" if same else "differs"
    says = f"the course of attention distance {word} for {', for '.join(same or other)}"
    return Part(not same, says, tuple(evidence))


def _by_family(curves: dict[Model, Curve]) -> Part:
    """Curves of one kind are more alike than curves of two."""
    within: list[float] = []
    between: list[float] = []
    for one, other in combinations(curves, 2):
        if one.teaching != other.teaching:
            apart = [a.value - b.value for a, b in zip(curves[one], curves[other], strict=True)]
            gap = fmean(abs(value - fmean(apart)) for value in apart)  # of the courses; the level is taken out
            (within if one.kind == other.kind else between).append(gap)
    if not within:
        return missing("whether it is the family (no kind of teaching has two methods here)", core=False)
    holds = fmean(within) < fmean(between)
    word = "more alike" if holds else "no more alike"
    return Part(
        holds,
        f"curves of the same kind of teaching are {word} than those of different kinds "
        f"(mean gap {fmean(within):.3f} against {fmean(between):.3f})",
        (
            Measured.of(fmean(within)).as_evidence("gap between curves of the same kind"),
            Measured.of(fmean(between)).as_evidence("gap between curves of different kinds"),
        ),
    )


def _mixed(frame: pl.DataFrame, models: list[Model], t: Thresholds) -> Part:
    """An early layer has local and global heads side by side."""
    behaved, evidence = [], []
    for model in models:
        layers = [numbers(frame, model, [layer]) for layer in model.first(t.early)]
        ranges = [(min(heads, key=_value), max(heads, key=_value)) for heads in layers]
        nearest, farthest = max(ranges, key=lambda pair: pair[1].value - pair[0].value)
        uniform = t.uniform_distance
        mixed = [n.high <= t.local_head * uniform and f.low >= t.global_head * uniform for n, f in ranges]
        behaved.append((model, any(mixed)))
        evidence += [
            nearest.as_evidence(f"{model.title}: distance of the nearest-looking early head"),
            farthest.as_evidence(f"{model.title}: distance of the farthest-looking head of that layer"),
        ]
    without = [model for model, mixes in behaved if not mixes]
    holds = followed(behaved, t.follow)
    if holds:
        says = "early layers mix local and global heads" + (f" (not in {titles(without)})" if without else "")
    else:
        says = f"early layers of {titles(without)} do not mix local and global heads"
    return Part(holds, says, tuple(evidence))


def _value(number: Measured) -> float:
    return number.value


def _rule(t: Thresholds) -> str:
    uniform = t.uniform_distance
    return (
        "For every two kinds of teaching the difference between their patch-free distance curves changes over depth "
        f"by at least {t.order_swing} (clear intervals); where a kind has two methods, curves within kinds are more "
        f"alike than between kinds; and in every teaching some layer of the first third has a head that looks no "
        f"farther than {t.local_head * uniform:.2f} and one that looks at least {t.global_head * uniform:.2f} far "
        f"(uniform attention: {uniform})."
    )


F3 = Claim(
    key="F3",
    text="Local and global information is processed in a different order depending on the teaching; early layers mix "
    "local and global heads.",
    rule=_rule,
    figure="attention_distance",
    measures=("attention_distance",),
    parts=_parts,
)
