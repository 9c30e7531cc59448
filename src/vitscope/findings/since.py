"""N1 to N4: what the field has said since the paper about late layers, each a difference between kinds of teaching.

Not judged on real networks: none at hand was taught by reconstruction, which each of these claims is about. What the
others show in late layers (64 COCO photos; supervised B/16, DINOv2 S/14, untrained at most): attention on the sink 70,
48 and 1.4 times that on the median token; dependence of attention on the query 0.08, 0.16 and 0.001; attention of CLS
on itself 0.001, 0.11 and 0.005; share of position in patch tokens 0.03, 0.07 and 0.002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from vitscope.findings.claim import Claim, Part, missing
from vitscope.findings.measured import Measured, mean_of
from vitscope.findings.tables import (
    KINDS,
    Model,
    Study,
    deep_enough,
    mean_by_teaching,
    measured_throughout,
    no_model_of,
    numbers,
    of_kind,
)
from vitscope.findings.thresholds import Thresholds


@dataclass(frozen=True)
class LateDifference:
    """A measure that is higher, in the last quarter of the layers, under one kind of teaching than under others.

    margin: by how much; ratio: margins are factors, not differences. what: the measure in words. One of the others
    must be there; all that are there count.
    """

    measure: str
    what: str
    higher: str
    lower: tuple[str, ...]
    margin: Callable[[Thresholds], float]
    ratio: bool = False

    def parts(self, study: Study, t: Thresholds) -> Iterable[Part]:
        return _parts(self, study, t)

    def rule(self, t: Thresholds) -> str:
        others = " and ".join(KINDS[kind] for kind in self.lower)
        by = f"{self.margin(t):g} times that" if self.ratio else f"higher by {self.margin(t):g} than that"
        return (
            f"In the last quarter of the layers (mean over heads, models and teachings), {self.what} under "
            f"{KINDS[self.higher]} is {by} under {others}, clearly outside the intervals."
        )


def _parts(claim: LateDifference, study: Study, t: Thresholds) -> Iterator[Part]:
    frame = study.rows(claim.measure, "")
    models = deep_enough((model for model in measured_throughout(frame) if model.taught), t.least_depth)
    late = {model: mean_of(numbers(frame, model, model.late)) for model in models}
    if not models:
        yield missing(f"no {claim.what} ({claim.measure}) of a taught model with {t.least_depth} layers or more")
        return
    evidence = tuple(value.as_evidence(f"{model.title}: {claim.what}, late layers") for model, value in late.items())
    above = _of(late, claim.higher)
    if above is None:
        yield missing(no_model_of(claim.higher))
        return
    there = [kind for kind in claim.lower if _of(late, kind) is not None]
    if not there:
        yield missing("; ".join(no_model_of(kind) for kind in claim.lower))
        return
    for number, kind in enumerate(there):
        below = _of(late, kind)
        assert below is not None
        says = f"{claim.what} is {above:.3g} under {KINDS[claim.higher]} and {below:.3g} under {KINDS[kind]}"
        yield Part(_higher(claim, above, below, t), says, evidence if number == 0 else ())
    for kind in claim.lower:
        if kind not in there:
            yield missing(no_model_of(kind), core=False)


def _of(late: dict[Model, Measured], kind: str) -> Measured | None:
    mine = [(model, late[model]) for model in of_kind(late, kind)]
    return mean_by_teaching(mine) if mine else None


def _higher(claim: LateDifference, above: Measured, below: Measured, t: Thresholds) -> bool:
    if not claim.ratio:
        return above.clearly_above(below, claim.margin(t))
    return above.value >= claim.margin(t) * below.value and above.clearly_above(below)


def _claim(key: str, text: str, late: LateDifference) -> Claim:
    return Claim(key=key, text=text, rule=late.rule, figure=late.measure, measures=(late.measure,), parts=late.parts)


N1 = _claim(
    "N1",
    "Late attention of explicitly supervised models is made of sinks: a token that all others look at, more than in "
    "reconstruction models.",
    LateDifference(
        "sink_ratio", "attention on the sink over the median token", "explicit", ("reconstruction",),
        lambda t: t.sink_factor, ratio=True,
    ),
)  # fmt: skip
N2 = _claim(
    "N2",
    "Reconstruction models keep position longest: more of their late patch tokens is where a patch is.",
    LateDifference(
        "position_share", "share of position", "reconstruction", ("explicit", "contrastive"),
        lambda t: t.position_margin,
    ),
)  # fmt: skip
N3 = _claim(
    "N3",
    "Contrastive attention collapses: in late layers it depends less on the query than that of reconstruction models.",
    LateDifference(
        "attention_nmi", "dependence of attention on the query", "reconstruction", ("contrastive",),
        lambda t: t.nmi_margin,
    ),
)  # fmt: skip
N4 = _claim(
    "N4",
    "CLS of reconstruction models looks at itself: in late layers it keeps more of its attention than under other "
    "teachings.",
    LateDifference(
        "cls_self", "attention of CLS on itself", "reconstruction", ("explicit", "contrastive"),
        lambda t: t.cls_self_margin,
    ),
)  # fmt: skip
