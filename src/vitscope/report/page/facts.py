"""What can be said of models that no task was asked of: a few sentences each, for the first screen."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from vitscope.report.page.models import PageModel
from vitscope.report.page.words import number

MANY = 6  # models that are told one by one; of a series, its last checkpoint
OVER_DEPTH = {  # measure -> the variants that will do, and the sentence
    "attention_distance": (
        ("grid",),
        "Heads look furthest at layer {highest} ({most} of the image's edge) and nearest at layer {lowest} ({least}).",
    ),
    "patch_patch_cosine": (
        ("",),
        "Patches are most alike at layer {highest} (cosine {most}) and least at layer {lowest} ({least}).",
    ),
    "rankme": (
        ("cls", "spatial"),
        "Features use most directions at layer {highest} (RankMe {most}) and fewest at layer {lowest} ({least}).",
    ),
}


def facts(table: pl.DataFrame, models: Sequence[PageModel]) -> list[tuple[int, str]]:
    """(position of the model, what is told of it) of models that were taught; nothing if there are too many."""
    last = {model.style.series: position for position, model in enumerate(models) if model.style.series}
    chosen = [
        position
        for position, model in enumerate(models)
        if model.teaching.key != "none" and last.get(model.style.series, position) == position
    ]
    if len(chosen) > MANY:
        return []
    told = {position: _of(table.filter(pl.col("model") == models[position].title)) for position in chosen}
    return [(position, " ".join(sentences)) for position, sentences in told.items() if sentences]


def _of(rows: pl.DataFrame) -> list[str]:
    rows = rows.filter(pl.col("layer").is_not_null() & (pl.col("protocol") == "corrected"))
    told = [*_cue(rows)]
    for measure, (variants, sentence) in OVER_DEPTH.items():
        if len(layers := _layers(rows, measure, variants)) > 1:
            highest, lowest = (max(layers, key=layers.__getitem__), min(layers, key=layers.__getitem__))
            said = {"most": number(layers[highest]), "least": number(layers[lowest])}
            told.append(sentence.format(highest=highest, lowest=lowest, **said))
    if outliers := _layers(rows, "norm_outliers", ("",)):
        worst = max(outliers, key=outliers.__getitem__)
        some = f"At layer {worst}, {100 * outliers[worst]:.1f} % of patch tokens are outliers by their norm."
        told.append(some if outliers[worst] > 0 else "No token grows out of proportion.")
    return told


def _cue(rows: pl.DataFrame) -> list[str]:
    """Of images with the shape of one class and the texture of another: which decides, at the last layer."""
    mine = rows.filter(pl.col("measure") == "shape_share").sort("variant", pl.col("layer"), descending=[False, True])
    if mine.is_empty():
        return []
    row = mine.row(0, named=True)  # CLS, if there is one
    share, low, high = (f"{100 * row[name]:.0f}" for name in ("value", "ci_low", "ci_high"))
    return [f"At its last layer, shape rather than texture decides {share} % of decided images ({low} to {high} %)."]


def _layers(rows: pl.DataFrame, measure: str, variants: Sequence[str]) -> dict[int, float]:
    """layer -> value, the mean over heads where there are any; of the first variant that there is."""
    mine = rows.filter(pl.col("measure") == measure)
    for variant in variants:
        if len(here := mine.filter(pl.col("variant") == variant)):
            return dict(here.group_by("layer").agg(pl.col("value").mean()).sort("layer").rows())
    return {}
