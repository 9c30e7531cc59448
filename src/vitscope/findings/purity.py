"""F7: how cluster purity changes over depth.

Seen on real networks (300 images of CIFAR-10 at 224 pixels): CLS purity of supervised B/16 rises with depth, from 0.27
to 0.72, and that of its patch tokens earlier (half-way at layer 9 against 10). That of DINOv2 S/14 rises to 0.36
at layer 11 of 12 and falls to 0.23 at the last: on such pictures the claim does not hold for it.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from vitscope.findings.claim import Claim, Part, followed, missing
from vitscope.findings.measured import Measured, best_of
from vitscope.findings.tables import Model, Study, deep_enough, measured_throughout, numbers, of_teaching, titles
from vitscope.findings.thresholds import Thresholds


def _parts(study: Study, t: Thresholds) -> Iterator[Part]:
    cls = study.rows("purity", "cls")
    models = [model for model in deep_enough(measured_throughout(cls), t.least_depth) if model.taught]
    rising = [model for model in models if model.teaching != "beit"]
    if not rising:
        yield missing("no purity of CLS clusters (labelled images) of a taught model other than BEiT")
    else:
        yield _improves(cls, rising, t)
    if beit := of_teaching(models, "beit"):
        yield _falls_back(cls, beit, t)
    else:
        yield missing("no BEiT model", core=False)
    spatial = study.rows("purity", "spatial")
    both = [model for model in of_teaching(models, "fs") if model in measured_throughout(spatial)]
    if both:
        yield _spatial_first(cls, spatial, both, t)
    else:
        yield missing("no FS model with purity of both CLS and spatial tokens", core=False)


def _improves(cls: pl.DataFrame, models: list[Model], t: Thresholds) -> Part:
    """Purity goes up with depth, and the last layer is clearly above the first."""
    behaved, evidence = [], []
    for model in models:
        scores = numbers(cls, model)
        trend = rank_trend([score.value for score in scores])
        behaved.append((model, trend >= t.rising and scores[-1].clearly_above(scores[0])))
        evidence.append(Measured.of(trend).as_evidence(f"{model.title}: rank correlation of CLS purity with depth"))
        evidence.append((scores[-1] - scores[0]).as_evidence(f"{model.title}: CLS purity, last minus first layer"))
    without = [model for model, improves in behaved if not improves]
    holds = followed(behaved, t.follow)
    if holds:
        says = f"CLS purity improves with depth in {titles(model for model, improves in behaved if improves)}"
    else:
        says = f"CLS purity does not clearly improve with depth in {titles(without)}"
    return Part(holds, says, tuple(evidence))


def _falls_back(cls: pl.DataFrame, models: list[Model], t: Thresholds) -> Part:
    """BEiT is best before its last quarter and clearly worse at the end."""
    behaved, evidence, told = [], [], []
    for model in models:
        scores = numbers(cls, model)
        best = best_of(scores)
        behaved.append((model, best + 1 not in model.late and scores[best].clearly_above(scores[-1])))
        lost = scores[-1] - scores[best]
        evidence.append(lost.as_evidence(f"{model.title}: CLS purity, last layer minus layer {best + 1}"))
        told.append(f"best at layer {best + 1} of {model.depth}, {lost:+.2f} at the last")
    holds = followed(behaved, t.follow)
    word = "falls back" if holds else "does not clearly fall back"
    return Part(holds, f"BEiT's CLS purity {word} in the last layers ({'; '.join(told)})", tuple(evidence))


def _spatial_first(cls: pl.DataFrame, spatial: pl.DataFrame, models: list[Model], t: Thresholds) -> Part:
    behaved, evidence, told = [], [], []
    for model in models:
        when = {
            name: half_way(numbers(frame, model), t.half_way) for name, frame in (("cls", cls), ("spatial", spatial))
        }
        behaved.append((model, when["spatial"] < when["cls"]))
        told.append(f"half-way at layer {when['spatial']} against {when['cls']}")
        for name, layer in when.items():
            evidence.append(
                Measured.of(layer).as_evidence(f"{model.title}: layer at which {name} purity is half-way up")
            )
    holds = followed(behaved, t.follow)
    word = "earlier" if holds else "no earlier"
    return Part(holds, f"FS spatial purity rises {word} than FS CLS purity ({', '.join(told)})", tuple(evidence))


def rank_trend(values: list[float]) -> float:
    """Rank correlation of values with their order; 0 for values that are all the same.

    >>> round(rank_trend([0.1, 0.4, 0.3, 0.9]), 6)  # 1 - 6 * (1 + 1) / (4 * 15)
    0.8
    """
    from scipy.stats import spearmanr

    return float(spearmanr(range(len(values)), values).statistic) if len(set(values)) > 1 else 0.0


def half_way(scores: list[Measured], share: float) -> int:
    """The first layer (1-based) that has made `share` of the way from the first layer's score to the best.

    >>> half_way([Measured.of(v) for v in (0.1, 0.2, 0.5, 0.9)], 0.5)
    3
    """
    first, best = scores[0].value, max(score.value for score in scores)
    goal = first + share * (best - first)
    return next(i for i, score in enumerate(scores, start=1) if score.value >= goal)


def _rule(t: Thresholds) -> str:
    return (
        f"CLS purity of every taught model but BEiT correlates with depth (rank correlation {t.rising} or more) and is "
        "clearly higher at the last layer than at the first; BEiT's is best before the last quarter of the layers and "
        f"clearly lower at the last; FS spatial purity makes {t.half_way:.0%} of its way up at an earlier layer than "
        "FS CLS purity."
    )


F7 = Claim(
    key="F7",
    text="Cluster purity of CLS features improves with depth except for BEiT, whose last layers act as a decoder; FS "
    "spatial purity rises earlier than FS CLS purity.",
    rule=_rule,
    figure="purity",
    measures=("purity",),
    parts=_parts,
)
