"""F8: who is best at telling images apart as wholes, and at which layer.

Every k-NN dataset is judged by itself and named with the number of labelled images that vote.

Seen on real networks (CIFAR-10 at 224 pixels, 300 labelled images, 300 asked about): supervised B/16 wins, at its
last layer (88 %, 84-91); DINOv2 S/14 reaches 49 % (43-54) at layer 9 of 12, 56 % of that: no longer competitive, with
a smaller network, a tuned one, and pictures of 32 pixels. The claim is about equal sizes and photographs.
"""

from __future__ import annotations

from collections.abc import Iterator

from vitscope.findings.claim import Claim, Part, followed, missing
from vitscope.findings.measured import Measured
from vitscope.findings.parts import part_scores
from vitscope.findings.tables import KINDS, Study, deep_enough, no_model_of, titles
from vitscope.findings.tasks import GLOBAL, Scores, all_scores
from vitscope.findings.thresholds import Thresholds


def _parts(study: Study, t: Thresholds) -> Iterator[Part]:
    columns = all_scores(study, GLOBAL)
    if not columns:
        yield missing("no k-NN or retrieval scores")
        return
    for scores in columns:
        if not scores.of_kind("explicit"):
            yield missing(f"{scores.title}: {no_model_of('explicit')}")
        elif not (scores.of_kind("contrastive") or scores.of_kind("reconstruction")):
            yield missing(f"{scores.title}: no self-supervised model (DINO, MoCo-v3, MAE, BEiT)")
        else:
            yield _explicit_wins(scores)
            yield _at_the_end(scores, t)
            yield _contrastive_competes(scores, t)
    yield _part_level(study)


def _explicit_wins(scores: Scores) -> Part:
    """The best explicit model is clearly better than the best of the self-supervised ones."""
    ours = scores.winner(scores.of_kind("explicit"))
    theirs = scores.winner(scores.of_kind("contrastive") + scores.of_kind("reconstruction"))
    best, rival = scores.best(ours), scores.best(theirs)
    holds = best.clearly_above(rival)
    told = f"{ours.title} {scores.show(best)}, {theirs.title} {scores.show(rival)}"
    evidence = tuple(
        scores.best(model).as_evidence(f"{model.title}: {scores.title} at layer {scores.best_layer(model)}")
        for model in scores.curves
    )
    word = "wins" if holds else "does not clearly win"
    return Part(holds, f"explicit supervision {word} at {scores.title} ({told})", evidence)


def _at_the_end(scores: Scores, t: Thresholds) -> Part:
    """Explicit models are at their best in the last quarter of the layers."""
    models = deep_enough(scores.of_kind("explicit"), t.least_depth)
    if not models:
        return missing(f"{scores.title}: no explicit model with {t.least_depth} or more layers")
    behaved = [(model, scores.best_layer(model) in model.late) for model in models]
    holds = followed(behaved, t.follow)
    where = ", ".join(f"{model.title} {scores.best_layer(model)} of {model.depth}" for model in models)
    return Part(holds, f"at {'the last' if holds else 'other than the last'} layers ({where})")


def _contrastive_competes(scores: Scores, t: Thresholds) -> Part:
    contrastive = scores.of_kind("contrastive")
    if not contrastive:
        return missing(f"{scores.title}: {no_model_of('contrastive')}", core=False)
    best = scores.best(scores.winner(scores.of_kind("explicit"))).value
    ratio = scores.best(scores.winner(contrastive)).value / max(best, 1e-9)
    holds = ratio >= t.competitive
    word = "competitive" if holds else "not competitive"
    evidence = Measured.of(ratio).as_evidence(f"{scores.title}: best contrastive over best explicit score")
    return Part(holds, f"contrastive models are {word} there ({ratio:.0%} of the best explicit score)", (evidence,))


def _part_level(study: Study) -> Part:
    """'Can be superior' takes one example; a study without one does not refute it."""
    for scores in part_scores(study):
        contrastive, explicit = scores.of_kind("contrastive"), scores.of_kind("explicit")
        if contrastive and explicit:
            ours, theirs = scores.winner(contrastive), scores.winner(explicit)
            if scores.best(ours).clearly_above(scores.best(theirs)):
                told = (
                    f"{ours.title} {scores.show(scores.best(ours))}, {theirs.title} {scores.show(scores.best(theirs))}"
                )
                return Part(True, f"{titles([ours])} is superior at {scores.title} ({told})", core=False)
    return missing("a part-level task at which a contrastive model is clearly superior was not seen here", core=False)


def _rule(t: Thresholds) -> str:
    return (
        "In k-NN and in retrieval, on every dataset, the best explicit model is clearly above the best self-supervised "
        f"one, explicit models are best in the last quarter of their layers, and the best contrastive model reaches "
        f"{t.competitive:.0%} of the best explicit score. That contrastive models can be superior at part level "
        "(clusters of parts, keypoints) is added where it is seen."
    )


F8 = Claim(
    key="F8",
    text=f"Global tasks (k-NN, retrieval): {KINDS['explicit']} wins, at the last layers; contrastive features are "
    "competitive, and can be superior for part-level tasks.",
    rule=_rule,
    figure="knn_top1",
    measures=("knn_top1", "retrieval_map", "pck@0.1"),
    parts=_parts,
)
