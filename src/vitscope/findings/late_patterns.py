"""F1: what late attention looks like under each kind of teaching.

Repetition is told three ways: over all late maps of an image, over the heads of a layer, and over images. Maps that
find the object repeat within an image too; only maps that ignore it repeat across images.

Seen on real networks (64 COCO photos): all 36 late heads of supervised B/16 are sparse-repeating, the same few tokens
in most heads (correlation 0.66 in a layer, 0.61 over late layers), but other tokens in every image (0.01 across
images); 16 of 18 late heads of DINOv2 S/14 are object-centred (0.51, 0.43 and 0.07).
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from vitscope.findings.claim import Claim, Part, followed, missing
from vitscope.findings.measured import Measured, mean_of
from vitscope.findings.outcome import Evidence
from vitscope.findings.tables import (
    KINDS,
    Model,
    Study,
    curve,
    deep_enough,
    mean_by_teaching,
    measured_throughout,
    models_of,
    no_model_of,
    numbers,
    of_kind,
    titles,
)
from vitscope.findings.tasks import task_rows
from vitscope.findings.thresholds import Thresholds

REPEATS = {
    "repetition": "correlation of late maps of one image",
    "repetition_in_layer": "correlation of the heads of a late layer",
    "repetition_across_images": "correlation of a late head's maps of two images",
}
LOOKS = {"explicit": "sparse-repeating", "contrastive": "object-centred", "reconstruction": "diverse"}


def _parts(study: Study, t: Thresholds) -> Iterator[Part]:
    models = deep_enough(models_of(study.rows("late_kind")), t.least_depth)
    if not models:
        yield missing(f"no late attention maps (late_kind) of a model with {t.least_depth} or more layers")
        return
    absent = [kind for kind in LOOKS if not of_kind(models, kind)]
    for kind in LOOKS:
        if kind in absent:  # one other kind is enough to compare explicit supervision with
            yield missing(no_model_of(kind), core=kind == "explicit" or len(absent) > 1)
        else:
            yield _look(study, of_kind(models, kind), kind, t)
    if "explicit" in absent:
        return
    for other, measure in (("contrastive", "compactness"), ("reconstruction", "repetition")):
        if other not in absent:
            yield _contrast(study, other, measure, t)
    yield _still_improving(study, t)


def _repeated(study: Study, model: Model) -> Iterator[Evidence]:
    """How late maps repeat, three ways."""
    for measure, what in REPEATS.items():
        if found := numbers(study.rows(measure), model, model.late):
            yield mean_of(found).as_evidence(f"{model.title}: {what}")


def _look(study: Study, models: list[Model], kind: str, t: Thresholds) -> Part:
    """Most late heads of these models look the way that their kind of teaching is said to make them look."""
    looks = study.rows("late_kind")
    behaved, shares, evidence = [], [], []
    for model in models:
        mine = looks.filter(pl.col("model") == model.title).group_by("variant").agg(pl.col("value").mean())
        share = dict(mine.rows())
        expected = share.get(LOOKS[kind], 0.0)
        behaved.append((model, expected >= t.late_share and expected == max(share.values())))
        shares.append(f"{expected:.0%} of {model.title}'s late heads")
        evidence.append(Measured.of(expected).as_evidence(f"{model.title}: share of late heads {LOOKS[kind]}"))
        evidence += _repeated(study, model)
    return Part(followed(behaved, t.follow), f"{', '.join(shares)} are {LOOKS[kind]} ({KINDS[kind]})", tuple(evidence))


def _contrast(study: Study, other: str, measure: str, t: Thresholds) -> Part:
    """Blobs hang together more than sparse patterns do; diverse maps repeat less."""
    frame = study.rows(measure)
    models = models_of(frame)
    pairs = {
        kind: [(model, mean_of(numbers(frame, model, model.late))) for model in of_kind(models, kind)]
        for kind in ("explicit", other)
    }
    if not all(pairs.values()):
        return missing(f"no {measure} of both explicit and {other} models", core=False)
    explicit, theirs = (mean_by_teaching(values) for values in pairs.values())
    if measure == "compactness":
        holds, word = theirs.clearly_above(explicit, t.compact_margin), "hang together more than"
    else:
        holds, word = explicit.clearly_above(theirs, t.repeat_margin), "repeat less than"
    says = f"late maps of {other} models {'' if holds else 'do not clearly '}{word} those of explicit ones "
    evidence = [explicit.as_evidence(f"explicit: late {measure}"), theirs.as_evidence(f"{other}: late {measure}")]
    return Part(holds, says + f"({measure} {theirs:.2f} against {explicit:.2f})", tuple(evidence))


def _still_improving(study: Study, t: Thresholds) -> Part:
    """... while features of explicit models keep improving where attention has become sparse."""
    frame, task = task_rows(study, ("knn", "probe", "retrieval"))
    models = deep_enough(of_kind(measured_throughout(frame), "explicit"), t.least_depth)
    if not models:
        return missing(
            "whether features keep improving there (no k-NN, probe or retrieval of explicit models)", core=False
        )
    behaved, evidence = [], []
    for model in models:
        scores = curve(frame, model)
        before, late = scores[model.late[0] - 1], max((scores[i] for i in model.late), key=lambda s: s.value)
        behaved.append((model, late.clearly_above(before)))
        evidence.append((late - before).as_evidence(f"{model.title}: {task} gained in the last quarter of the layers"))
    improving = followed(behaved, t.follow)
    which = [model for model, improves in behaved if improves == improving]
    says = f"{task} of {titles(which)} {'keeps' if improving else 'does not clearly keep'} improving in late layers"
    return Part(improving, says, tuple(evidence))


def _rule(t: Thresholds) -> str:
    return (
        f"The most frequent look of the heads in the last quarter of the layers, with at least {t.late_share:.0%} of "
        "them: sparse-repeating for explicit, object-centred for contrastive, diverse for reconstruction models; "
        f"contrastive maps are more compact by {t.compact_margin}, reconstruction maps repeat less by "
        f"{t.repeat_margin} (clear intervals); and explicit models' best late layer is clearly better at k-NN (or "
        "probe, retrieval) than the layer before. Every teaching must do so in two thirds of its models."
    )


F1 = Claim(
    key="F1",
    text="In late layers, attention under explicit supervision falls into sparse repeating patterns while features "
    "keep improving; contrastive models show object-centred blobs, reconstruction models diverse maps.",
    rule=_rule,
    figure="late_kind",
    measures=("late_kind", "compactness", "repetition", "retrieval_map"),
    parts=_parts,
)
