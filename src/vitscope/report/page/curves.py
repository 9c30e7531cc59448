"""Numbers over depth: what a chart of curves is, and its series read off the tidy table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from vitscope.report.page.models import PageModel
from vitscope.report.page.words import rounded

NO_VARIANTS: Mapping[str, str] = {}


@dataclass(frozen=True)
class Measure:
    """One measure of a chart, in words. say: which extreme is worth a sentence, at the last layer or anywhere."""

    title: str
    axis: str
    see: str  # what to see, one sentence
    say: str = "last"  # last | peak | lowest | none
    floor: float | None = 0.0  # the axis starts here; None: at the smallest value
    line: float | None = None  # a reference worth a line, such as 1 for "as much as the other"
    line_title: str = ""
    log: bool = False
    mean: bool = True  # of heads: a line through their mean; not where that is the same by definition


@dataclass(frozen=True)
class CurveChart:
    """A chart of one or several measures over depth. variants: names for people, in the order they are offered."""

    key: str
    title: str
    measures: Mapping[str, Measure]
    roles: tuple[str, ...]  # whose coverage counts
    variants: Mapping[str, str] = field(default_factory=lambda: NO_VARIANTS)
    chance: Mapping[str, str] = field(default_factory=lambda: NO_VARIANTS)  # measure -> what chance gives, as a measure
    band: str = "band: 95 % interval"
    floors: tuple[tuple[str, str], ...] = ()  # measures without layers that no network is needed for, and their names


def curve_data(chart: CurveChart, table: pl.DataFrame, models: Sequence[PageModel]) -> dict[str, Any] | None:
    """Everything the script needs to draw the chart; None if the study has none of its measures."""
    rows = table.filter(pl.col("measure").is_in(list(chart.measures)) & pl.col("layer").is_not_null())
    if rows.is_empty():
        return None
    present = [measure for measure in chart.measures if (rows["measure"] == measure).any()]
    return {
        "key": chart.key,
        "title": chart.title,
        "band": chart.band,
        "measures": {measure: _about(chart.measures[measure]) | _floor(chart, table) for measure in present},
        "variants": _ordered(chart, rows),
        "series": [one for measure in present for one in _series(rows, measure, models)],
        "chance": [
            one | {"measure": measure}
            for measure, chance in chart.chance.items()
            if measure in present
            for one in _series(table, chance, models)
        ],
    }


def _floor(chart: CurveChart, table: pl.DataFrame) -> dict[str, Any]:
    """The line of what no network is needed for, if it is one for the whole chart: the highest; others are named."""
    known = {}
    for measure, title in chart.floors:
        rows = table.filter(pl.col("measure") == measure)
        if rows["dataset"].n_unique() == 1:
            known[title] = float(rows["value"].mean())  # type: ignore[arg-type]
    if not known:
        return {}
    (first, value), *others = sorted(known.items(), key=lambda one: -one[1])
    return {"line": rounded(value), "lineTitle": "; ".join([first, *(f"{title} {at:.2f}" for title, at in others)])}


def _about(measure: Measure) -> dict[str, Any]:
    return {
        "title": measure.title,
        "axis": measure.axis,
        "see": measure.see,
        "say": measure.say,
        "floor": measure.floor,
        "line": measure.line,
        "lineTitle": measure.line_title,
        "log": measure.log,
        "mean": measure.mean,
    }


def _ordered(chart: CurveChart, rows: pl.DataFrame) -> dict[str, str]:
    """The variants that there are: known ones first, in their order, the rest under their own names."""
    there = rows["variant"].unique().sort().to_list()
    known = {variant: title for variant, title in chart.variants.items() if variant in there}
    return known | {variant: variant for variant in there if variant not in known}


def _series(table: pl.DataFrame, measure: str, models: Sequence[PageModel]) -> list[dict[str, Any]]:
    """One series per model, variant, dataset and protocol."""
    rows = table.filter((pl.col("measure") == measure) & pl.col("layer").is_not_null())
    position = {model.title: i for i, model in enumerate(models)}
    keys = ["variant", "dataset", "protocol", "model"]
    series = []
    for names, part in rows.group_by(keys, maintain_order=True):
        variant, dataset, protocol, model = names
        one = _heads(part) if part["head"].null_count() == 0 else _layers(part.filter(pl.col("head").is_null()))
        series.append(
            {"measure": measure, "variant": variant, "dataset": dataset, "protocol": protocol}
            | {"model": position[str(model)], "n": max(part["n"].to_list(), default=0)}
            | one
        )
    return sorted(series, key=lambda one: (one["protocol"] != "corrected", one["model"]))


def _layers(rows: pl.DataFrame) -> dict[str, Any]:
    rows = rows.sort("layer")
    return {
        "layer": rows["layer"].to_list(),
        "value": [rounded(v) for v in rows["value"]],
        "low": [rounded(v) for v in rows["ci_low"]],
        "high": [rounded(v) for v in rows["ci_high"]],
    }


def _heads(rows: pl.DataFrame) -> dict[str, Any]:
    """The mean over heads, and each head: head number, value and interval at each layer."""
    layers = rows.sort("layer", "head").group_by("layer", maintain_order=True)
    layer, value, heads = [], [], []
    for (number,), part in layers:
        layer.append(number)
        value.append(rounded(float(part["value"].mean())))  # type: ignore[arg-type]
        columns = part.select("head", "value", "ci_low", "ci_high").rows()
        heads.append([[head, *(rounded(v, 4) for v in numbers)] for head, *numbers in columns])
    return {"layer": layer, "value": value, "heads": heads}
