"""F9: local tasks are best served before the last layer, and by more kinds of models.

Seen on real networks (DAVIS car-shadow): J&F of DINOv2 S/14 is best at layer 10 of 12 (0.89), of supervised B/16 at
layer 2 (0.88); both last layers are clearly worse (0.82, 0.70). One clip of one object says little about where.
"""

from __future__ import annotations

from collections.abc import Iterator

from vitscope.findings.claim import Claim, Part, missing
from vitscope.findings.measured import Measured
from vitscope.findings.tables import Model, Study, deep_enough, no_model_of
from vitscope.findings.tasks import GLOBAL, LOCAL, Scores, all_scores
from vitscope.findings.thresholds import Thresholds


def _parts(study: Study, t: Thresholds) -> Iterator[Part]:
    columns = all_scores(study, LOCAL)
    if not columns:
        yield missing("no video segmentation or keypoint scores")
        return
    yield _before_the_last(columns, t)
    yield _reconstruction_competes(columns, all_scores(study, GLOBAL), t)


def _before_the_last(columns: list[Scores], t: Thresholds) -> Part:
    """Of the models and tasks where it is clear, most are better before the last layer than at it."""
    before = last = undecided = 0
    evidence = []
    for scores in columns:
        for model in deep_enough(scores.taught, t.least_depth):
            gain = _gain_before_the_last(scores, model, t)
            evidence.append(
                gain.as_evidence(
                    f"{model.title}: {scores.title}, best mid-to-late layer (best of all: "
                    f"{scores.best_layer(model)} of {model.depth}) minus the last"
                )
            )
            before, last = before + (gain.low > 0), last + (gain.high < 0)
            undecided += gain.low <= 0 <= gain.high
    told = f"{before} clearly before the last layer, {last} clearly at it, {undecided} undecided"
    if not evidence:
        return missing(f"no taught model with {t.least_depth} or more layers")
    if not before + last:
        return Part(None, f"no best layer is clear enough: {told}; more pairs or videos would tell", tuple(evidence))
    holds = before >= t.follow * (before + last) - 1e-9
    word = "is mid-to-late, not the last" if holds else "is not generally before the last"
    return Part(holds, f"the best layer for local tasks {word} ({told})", tuple(evidence))


def _gain_before_the_last(scores: Scores, model: Model, t: Thresholds) -> Measured:
    mine = scores.curves[model]
    middle = [mine[layer] for layer in mine if layer > len(model.first(t.early)) and layer < model.depth]
    return max(middle, key=lambda score: score.value) - mine[model.depth]


def _reconstruction_competes(columns: list[Scores], wholes: list[Scores], t: Thresholds) -> Part:
    here = [scores for scores in columns if scores.of_kind("reconstruction") and len(_kinds(scores)) > 1]
    if not here:
        return missing(f"{no_model_of('reconstruction')} beside models of another kind")
    local = {scores.title: _ratio(scores) for scores in here}
    holds = all(ratio >= t.competitive for ratio in local.values())
    told = ", ".join(f"{ratio:.0%} at {title}" for title, ratio in local.items())
    evidence = [
        Measured.of(ratio).as_evidence(f"{title}: best reconstruction score over the best of all")
        for title, ratio in local.items()
    ]
    elsewhere = [_ratio(scores) for scores in wholes if scores.of_kind("reconstruction") and len(_kinds(scores)) > 1]
    if elsewhere:
        holds = holds and min(local.values()) > min(elsewhere)
        told += f"; global tasks: {min(elsewhere):.0%}"
        evidence.append(Measured.of(min(elsewhere)).as_evidence("the same at the global task that suits them least"))
    word = "become competitive" if holds else "do not become competitive"
    return Part(holds, f"reconstruction models {word} (of the best score: {told})", tuple(evidence))


def _kinds(scores: Scores) -> set[str]:
    return {model.kind for model in scores.taught}


def _ratio(scores: Scores) -> float:
    """Best score of a reconstruction model over the best of all."""
    ours, best = scores.winner(scores.of_kind("reconstruction")), scores.winner(scores.taught)
    return scores.best(ours).value / max(scores.best(best).value, 1e-9)


def _rule(t: Thresholds) -> str:
    return (
        "Video segmentation and keypoints: of the models and tasks where the last layer differs clearly from the best "
        f"of the layers after the first third, two thirds are better before the last; and on every dataset the best "
        f"reconstruction model reaches {t.competitive:.0%} of the best score, more than in global tasks."
    )


F9 = Claim(
    key="F9",
    text="Local tasks (video segmentation, keypoints): the best layer is mid-to-late, not the last; MAE and BEiT "
    "become competitive.",
    rule=_rule,
    figure="pck@0.1",
    measures=("video_j&f", "pck@0.1"),
    parts=_parts,
)
