"""What to take for each task, in a sentence; the table, the headlines and the marks of figures and page all follow it.

`decision.py` has the statistics. Models are compared on the units that all of them were asked (see `tasks/units.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vitscope.core.results import Results
from vitscope.pipeline.best_layers import BestLayers, Column, best_layers
from vitscope.pipeline.decision import Array, Decision, Difference, decide
from vitscope.tasks.units import PREFIX
from vitscope.tasks.whole_images import PIXELS

UNTRAINED = "none"  # the teaching of networks that learned nothing
FEW = 30  # units: fewer are said to be few


@dataclass(frozen=True)
class Advice:
    """About one column of the table of best layers. decision: None if nothing could be compared."""

    column: Column
    sentence: str
    remark: str = ""  # on the layer that the sentence names
    decision: Decision | None = None
    chance: float | None = None  # the score of no network
    untrained: float | None = None  # the score of the best untrained network
    pixels: float | None = None  # the score of the pixels alone

    @property
    def kind(self) -> str:
        """take, tied, undecided, nothing; or unknown."""
        return self.decision.kind if self.decision else "unknown"

    @property
    def named(self) -> tuple[str, ...]:
        """The models that the sentence is about: one to take, or several of which none is clearly better."""
        if self.decision is None or self.kind == "nothing":
            return ()
        return (self.decision.leader, *(one.name for one in self.decision.others))


def advise(results: Results) -> tuple[BestLayers, list[Advice]]:
    """The table of best layers, its ties marked as the advice has them; and the advice on each of its columns."""
    table = best_layers(results.table)
    found, cells = [], dict(table.cells)
    for position in range(len(table.columns)):
        one = advise_on(results, table, position)
        found.append(one)
        for name in one.named if len(one.named) > 1 else ():
            cells[name, position] = replace(cells[name, position], tied=True)
    return replace(table, cells=cells), found


def advise_on(results: Results, table: BestLayers, position: int) -> Advice:
    column = table.columns[position]
    teaching = dict(table.models)
    asked = [name for name, _ in table.models if (name, position) in table.cells]
    untrained = [name for name in asked if teaching[name] == UNTRAINED]
    taught = [name for name in asked if teaching[name] != UNTRAINED]
    scores, floors = unit_scores(results, column, asked)
    if not taught:
        return Advice(column, _nothing_taught(column, table, position, untrained))
    if set(scores) != set(asked) or len(next(iter(scores.values()))) < 2:
        why = "no scores of single " + _many(column) + " are kept" if set(scores) != set(asked) else "there is only one"
        return Advice(column, f"Nothing can be said about differences: {why}.")
    decision = decide(scores, floors, {name: _same_shape(results, name, untrained) for name in taught})
    level = {name: float(values.mean()) for name, values in floors.items()}
    best = max((float(scores[name].mean(0).max()) for name in untrained), default=None)
    baselines = (level.get(chance_words(column)), best, level.get(PIXELS))
    if decision is None:
        return Advice(column, "There is nothing to compare this model with.", "", None, *baselines)
    depth = {name: values.shape[1] for name, values in scores.items()}
    beside = ({} if best is None else {"untrained": best}) | level
    said = sentence(column, decision, depth, beside) + _knew_labels(results, column, {n: teaching[n] for n in taught})
    return Advice(column, said, remark(column, decision), decision, *baselines)


def chance_words(column: Column) -> str:
    return column.task.headline.chance or "chance"


def unit_scores(results: Results, column: Column, models: Sequence[str]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Scores (n, L) of each model that has them, on the units that all of these were asked; and what needs no network,
    (n,) each: where models see images at several sizes, the mean over models."""
    paper = ".paper" if column.protocol == "paper" else ""

    def part(model: str, which: str) -> Array | None:
        found = results.maps.get(f"{model}/{PREFIX}{column.task.key}{which}{paper}@{column.dataset}")
        return None if found is None else found.numpy()

    scores = {model: found for model in models if (found := part(model, "")) is not None}
    if not scores:
        return {}, {}
    ids = {model: part(model, ".ids") for model in scores}
    common = sorted(set.intersection(*(set(some.tolist()) for some in ids.values() if some is not None)))
    rows = {m: np.searchsorted(i, common, sorter=i.argsort()) for m, i in ids.items() if i is not None}
    places = {m: i.argsort()[rows[m]] for m, i in ids.items() if i is not None}
    chosen = {model: values[places[model]].astype(np.float64) for model, values in scores.items()}
    floors: dict[str, Array] = {}
    for which, name in ((".floor", chance_words(column)), (".pixels", PIXELS)):
        if known := [one[places[model]] for model in scores if (one := part(model, which)) is not None]:
            floors[name] = np.stack(known).mean(0, dtype=np.float64)
    return chosen, floors


def _same_shape(results: Results, model: str, untrained: Sequence[str]) -> list[str]:
    """The untrained networks of the model's architecture, or all if there is none of them."""
    shapes = {about.get("title"): about.get("architecture") for about in results.provenance}
    same = [name for name in untrained if _stem(shapes.get(name)) == _stem(shapes.get(model))]
    return same or list(untrained)


def _stem(architecture: object) -> str:
    """A timm name without the tag of its weights."""
    return str(architecture).partition(".")[0]


def _knew_labels(results: Results, column: Column, models: Mapping[str, str]) -> str:
    """Where classes are asked for, who was taught with labels or captions, and of what. models: title -> teaching."""
    if column.task.kind != "labelled":
        return ""
    known = {about.get("title"): about.get("taught_on") or {} for about in results.provenance}
    told: dict[str, list[str]] = {}
    for name, teaching in models.items():
        about = known.get(name, {})
        if words := "labels" if about.get("labels") else "captions" if about and teaching == "clip" else "":
            told.setdefault(f"taught the {words} of {about['dataset']}", []).append(name)
    said = [f"{listing(names)} {'were' if len(names) > 1 else 'was'} {what}" for what, names in told.items()]
    return f" Mind that {listing(said)}." if said else ""


# -- words ----------------------------------------------------------------------------------------------------


def sentence(column: Column, decision: Decision, depth: Mapping[str, int], baselines: Mapping[str, float]) -> str:
    """What the decision says, with its numbers. baselines: what was not taught, and its score."""
    leader, show = decision.leader, column.task.show
    unit = "\u00a0%" if column.task.percent else ""
    where = f"layer {decision.layer} of {depth[leader]}"
    beside = ", ".join(f"{name} {show(value)}" for name, value in baselines.items())
    reached = f"{show(decision.score)}{unit}" + (f" ({beside})" if beside else "")
    few = f" Only {decision.n} {_many(column)} were asked." if decision.n < FEW else ""
    if decision.n < decision.fewest:
        few += f" Fewer than {decision.fewest} cannot decide anything here, even if they all agree."
    names = listing([leader, *(one.name for one in decision.others)])
    if decision.kind == "take":
        text = f"Take {leader} at {where}: {reached}."
        if decision.next is not None:
            text += f" Ahead of {decision.next.name} by {_difference(column, decision.next)}."
        return text + few
    widest = max(decision.others, key=lambda one: one.high - one.low)
    if decision.kind == "tied":
        several = "; the widest of their differences is" if len(decision.others) > 1 else ": the difference is"
        return f"{names} are tied at about {reached}{several} {_difference(column, widest)}.{few}"
    more = f": about {decision.more:,} more {_many(column)} would" if decision.more else ""
    if decision.kind == "undecided":
        return (
            f"Too little data to decide between {names}{more}. {leader} at {where} has {reached}, ahead of "
            f"{widest.name} by {_difference(column, widest)}.{few}"
        )
    what = listing([one.name for one in decision.others])
    nearest = min(decision.others, key=lambda one: one.low)
    told = (
        f"the best, {leader} at {where}, has {reached}; its lead over {nearest.name} is {_difference(column, nearest)}"
    )
    return f"Nothing to recommend: no model is clearly better than {what}; {told}.{few}" + (
        f" If that lead is real, about {decision.more:,} more {_many(column)} would show it." if decision.more else ""
    )


def remark(column: Column, decision: Decision) -> str:
    """How far the layer is decided, and what choosing it did to the score."""
    more = max(decision.flattered, 0.0)
    flattered = f"{100 * more:.1f} points" if column.task.percent else f"{more:.3f}"
    name = decision.leader
    text = f"Choosing the layer of {name} on the {_many(column)} that score it would flatter it by {flattered}. "
    others = spans([layer for layer in decision.as_good if layer != decision.layer])
    if not others:
        return text + f"Layer {decision.layer} is clearly its best."
    return (
        text
        + f"Of its other layers, {listing(others)} {'are' if len(decision.as_good) > 2 else 'is'} not clearly worse."
    )


def _nothing_taught(column: Column, table: BestLayers, position: int, untrained: Sequence[str]) -> str:
    if not untrained:
        return "No model could be scored."
    best = max(table.cells[name, position].value for name in untrained)
    unit = "\u00a0%" if column.task.percent else ""
    return f"Nothing to recommend: no model of this study was taught. The best reaches {column.task.show(best)}{unit}."


def _difference(column: Column, one: Difference) -> str:
    """Scores lie between 0 and 1: what cannot be is not part of the interval, however few units there are."""
    low, high = max(one.low, -1.0), min(one.high, 1.0)
    if column.task.percent:
        return f"{100 * one.value:.1f} points ({100 * low:.1f} to {100 * high:.1f})".replace("-", "\u2212")
    return f"{one.value:.3f} ({low:.3f} to {high:.3f})".replace("-", "\u2212")


def _many(column: Column) -> str:
    unit = column.task.headline.unit
    return f"{unit[:-1]}ies" if unit.endswith("y") else f"{unit}s"


def spans(numbers: Sequence[int]) -> list[str]:
    """
    >>> spans([1, 2, 3, 5, 7, 8])
    ['1 to 3', '5', '7', '8']
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [
        text
        for run in runs
        for text in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else [str(number) for number in run])
    ]


def listing(names: Sequence[str]) -> str:
    """
    >>> listing(["FS"]), listing(["FS", "CLIP", "DINO"])
    ('FS', 'FS, CLIP and DINO')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""
