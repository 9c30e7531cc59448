"""F4: attention finds the foreground early, and loses it late under explicit supervision."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from vitscope.findings.claim import Claim, Part, followed, missing
from vitscope.findings.measured import Measured, best_of, mean_of
from vitscope.findings.tables import (
    UNTAUGHT,
    Model,
    Study,
    deep_enough,
    mean_by_teaching,
    measured_throughout,
    no_model_of,
    numbers,
    of_kind,
    of_teaching,
    titles,
)
from vitscope.findings.thresholds import Thresholds

SELF_SUPERVISED = ("contrastive", "reconstruction")


def _parts(study: Study, t: Thresholds) -> Iterator[Part]:
    frame = _one_source(study.rows("saliency_best_head"))
    models = deep_enough(measured_throughout(frame), t.least_depth)
    if not models:
        yield missing("no IoU of attention with object masks (saliency_best_head needs images with masks)")
        return
    taught, chance = [model for model in models if model.taught], of_teaching(models, UNTAUGHT)
    if not taught:
        yield missing("no taught model")
        return
    if chance:
        yield _early(frame, taught, chance, t)
    else:
        yield missing("no untrained or random network to tell what IoU chance gives")
    explicit = of_kind(taught, "explicit")
    other = [model for model in taught if model.kind in SELF_SUPERVISED]
    if explicit:
        yield _decline(frame, explicit, t)
    else:
        yield missing(no_model_of("explicit"))
    if not other:
        yield missing("no self-supervised model (DINO, MoCo-v3, MAE, BEiT)")
    elif explicit:
        yield _keep(frame, explicit, other, t)


def _one_source(frame: pl.DataFrame) -> pl.DataFrame:
    """What CLS looks at; for models without CLS, what spatial tokens look at on average."""
    with_cls = frame.filter(pl.col("variant") == "cls")["model"].unique()
    source = pl.when(pl.col("model").is_in(with_cls.to_list())).then(pl.lit("cls")).otherwise(pl.lit("spatial"))
    return frame.filter(pl.col("variant") == source)


def _early(frame: pl.DataFrame, taught: list[Model], chance: list[Model], t: Thresholds) -> Part:
    floors = [numbers(frame, model, model.first(t.early_to_mid)) for model in chance]
    floor = max((best for scores in floors for best in scores), key=lambda score: score.value)
    evidence, behaved, best_ones = [floor.as_evidence("untaught: best-head IoU, early to mid layers")], [], []
    for model in taught:
        scores = numbers(frame, model, model.first(t.early_to_mid))
        layer = best_of(scores)
        best = scores[layer]
        behaved.append((model, best.clearly_above(floor) and best.value >= t.above_chance * floor.value))
        best_ones.append(best.value)
        evidence.append(best.as_evidence(f"{model.title}: best-head IoU at layer {layer + 1}"))
    without = [model for model, finds in behaved if not finds]
    holds = followed(behaved, t.follow)
    if holds:
        says = f"best-head IoU reaches {min(best_ones):.2f} or more in early-to-mid layers (chance: {floor:.2f})"
    else:
        says = f"{titles(without)}: best-head IoU not well above chance ({floor:.2f}) by early-to-mid layers"
    return Part(holds, says, tuple(evidence))


def _lost(frame: pl.DataFrame, model: Model) -> Measured:
    """Share of the peak that is gone in the last quarter of the layers, on average."""
    scores = numbers(frame, model)
    peak = scores[best_of(scores)]
    late = mean_of([scores[layer - 1] for layer in model.late])
    lost, scale = peak - late, max(peak.value, 1e-9)
    return Measured(lost.value / scale, lost.low / scale, lost.high / scale)


def _decline(frame: pl.DataFrame, explicit: list[Model], t: Thresholds) -> Part:
    lost = {model: _lost(frame, model) for model in explicit}
    behaved = [(model, share.value >= t.decline and share.low > 0) for model, share in lost.items()]
    holds = followed(behaved, t.follow)
    shares = ", ".join(f"{model.title} {share:.0%}" for model, share in lost.items())
    says = (
        f"explicit models {'lose it' if holds else 'do not all clearly lose it'} in late layers ({shares} of the peak)"
    )
    evidence = tuple(s.as_evidence(f"{m.title}: share of peak IoU lost in late layers") for m, s in lost.items())
    return Part(holds, says, evidence)


def _keep(frame: pl.DataFrame, explicit: list[Model], other: list[Model], t: Thresholds) -> Part:
    """The self-supervised lose far less than the explicit ones do."""
    lost = {model: _lost(frame, model) for model in other}
    theirs = mean_by_teaching(list(lost.items()))
    reference = mean_by_teaching([(model, _lost(frame, model)) for model in explicit])
    holds = theirs.value <= t.far_less * reference.value and reference.clearly_above(theirs)
    word = "far less" if holds else "not far less"
    evidence = tuple(s.as_evidence(f"{m.title}: share of peak IoU lost in late layers") for m, s in lost.items())
    return Part(holds, f"self-supervised models lose {word} ({theirs:.0%} against {reference:.0%})", evidence)


def _rule(t: Thresholds) -> str:
    return (
        f"In the first two thirds of the layers the best head's IoU of every teaching is clearly above that of "
        f"untaught networks and at least {t.above_chance} times as high; explicit models then lose, clearly, at least "
        f"{t.decline:.0%} of their peak (mean of the last quarter); self-supervised ones at most half of that."
    )


F4 = Claim(
    key="F4",
    text="All models tell salient foreground from background by early-to-mid layers; with explicit supervision this "
    "declines later, with self-supervision it does not, or far less.",
    rule=_rule,
    figure="saliency_best_head",
    measures=("saliency_best_head",),
    parts=_parts,
)
