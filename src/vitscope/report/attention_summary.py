"""The attention study in a few lines of a terminal."""

from __future__ import annotations

import polars as pl
from rich import box
from rich.table import Table
from rich.text import Text

from vitscope.attention.kinds import KINDS
from vitscope.core.results import Results
from vitscope.core.teachings import teaching
from vitscope.report.attention_figures import models_of


def summarise(results: Results) -> Table:
    """One line per model: how many images, distance over depth, heads by kind, the best head on objects."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="Attention", title_justify="left")
    for column in ("model", "images", "distance: first, middle, last layer", "heads by kind", "best head on objects"):
        table.add_column(column)
    for title, key in models_of(results.table):
        mine = results.table.filter(pl.col("model") == title)
        distance = mine.filter((pl.col("measure") == "attention_distance") & (pl.col("variant") == "grid"))
        mean = distance.group_by("layer").agg(pl.col("value").mean()).sort("layer")["value"].to_list()
        ends = ", ".join(f"{mean[i]:.3f}" for i in (0, len(mean) // 2, -1))
        kinds = mine.filter(pl.col("measure") == "head_kind").group_by("variant").agg(pl.col("value").sum())
        counts = {variant: int(value) for variant, value in kinds.rows()}
        by_kind = ", ".join(f"{counts[k]} {k}" for k in KINDS if counts.get(k))
        table.add_row(Text(title, style=teaching(key).colour), str(distance["n"][0]), ends, by_kind, _best(mine))
    return table


def _best(mine: pl.DataFrame) -> str:
    scores = mine.filter((pl.col("measure") == "saliency_iou") & (pl.col("protocol") == "corrected"))
    if scores.is_empty():
        return "(no masks)"
    best = scores.sort("value", descending=True).row(0, named=True)
    return f"layer {best['layer']}, head {best['head']} ({best['variant']}): IoU {best['value']:.3f}"
