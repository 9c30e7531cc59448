"""F10: no model and no layer is best for everything.

Seen on real networks: supervised B/16 is best at k-NN, at its last layer, and DINOv2 S/14 at following an object
through a video, at layer 10 of 12.
"""

from __future__ import annotations

from collections.abc import Iterator

from vitscope.findings.claim import Claim, Part, missing
from vitscope.findings.measured import Measured
from vitscope.findings.tables import Model, Study, titles
from vitscope.findings.tasks import GLOBAL, LOCAL, Scores, all_scores
from vitscope.findings.thresholds import Thresholds
from vitscope.pipeline.best_layers import tasks


def _parts(study: Study, t: Thresholds) -> Iterator[Part]:
    columns = [scores for scores in all_scores(study, [task.key for task in tasks()]) if len(scores.taught) > 1]
    done = {scores.task.key for scores in columns}
    if not (done & set(GLOBAL)) or not (done & set(LOCAL)):
        what = (
            "it takes a global task (k-NN, retrieval) and a local one (video, keypoints), with two taught models each"
        )
        yield missing(f"{what} (here: {_names(columns) or 'none'})")
        return
    models = [model for model in columns[0].taught if all(model in scores.curves for scores in columns)]
    if len(models) < 2:
        yield missing(f"it takes two models with scores in all of {_names(columns)}")
        return
    yield _no_model(columns, models)
    yield _no_layer(columns, models)


def _names(columns: list[Scores]) -> str:
    return ", ".join(scores.title for scores in columns)


def _no_model(columns: list[Scores], models: list[Model]) -> Part:
    """Whichever model one takes, some task has a clearly better one."""
    unbeaten = []
    for model in models:
        rivals = ((scores.best(scores.winner(scores.taught)), scores.best(model)) for scores in columns)
        if not any(best.clearly_above(mine) for best, mine in rivals):
            unbeaten.append(model)
    winners = [scores.winner(scores.taught) for scores in columns]
    told = ", ".join(f"{winner.title} at {scores.title}" for winner, scores in zip(winners, columns, strict=True))
    evidence = tuple(
        scores.best(winner).as_evidence(f"{scores.title}: {winner.title}, layer {scores.best_layer(winner)}")
        for winner, scores in zip(winners, columns, strict=True)
    )
    if unbeaten:
        return Part(False, f"{titles(unbeaten)} is clearly beaten at no task (best: {told})", evidence)
    return Part(True, f"every model is clearly beaten at some task (best: {told})", evidence)


def _no_layer(columns: list[Scores], models: list[Model]) -> Part:
    """Whichever depth one takes, some model has a clearly better layer for some task."""
    deepest = max(model.depth for model in models)
    serving = []
    for step in range(1, deepest + 1):
        layers = {model: max(1, round(step / deepest * model.depth)) for model in models}
        if all(_serves(scores, model, layer) for scores in columns for model, layer in layers.items()):
            serving.append(step)
    own = [model for model in models if any(_serves_all(columns, model, i) for i in range(1, model.depth + 1))]
    evidence = Measured.of(len(own)).as_evidence(
        f"models (of {len(models)}) with one layer that is not clearly worse than their best at any task"
    )
    if serving:
        says = f"layer {serving[-1]} of {deepest} is, for every model and task, not clearly worse than the best layer"
        return Part(False, says, (evidence,))
    return Part(True, "no depth serves every model at every task", (evidence,))


def _serves(scores: Scores, model: Model, layer: int) -> bool:
    score = scores.curves[model].get(layer)
    return score is not None and not scores.best(model).clearly_above(score)


def _serves_all(columns: list[Scores], model: Model, layer: int) -> bool:
    return all(_serves(scores, model, layer) for scores in columns)


def _rule(t: Thresholds) -> str:
    return (
        "Over global and local tasks together: for every model there is a task at which another is clearly better "
        "(best layers compared), and for every depth there is a model and a task with a clearly better layer."
    )


F10 = Claim(
    key="F10",
    text="There is no single best model or layer for all tasks.",
    rule=_rule,
    figure="knn_top1",
    measures=("retrieval_map", "video_j&f", "pck@0.1"),
    parts=_parts,
)
