"""The feature study in a few lines of a terminal."""

from __future__ import annotations

from math import isnan

import polars as pl
from rich import box
from rich.table import Table
from rich.text import Text

from vitscope.core.results import Results
from vitscope.core.teachings import teaching
from vitscope.report.attention_figures import models_of


def summarise_features(results: Results) -> list[Table]:
    """One line per model, and one per pair of models (the ten most alike, if there are more)."""
    seen = {about["title"]: about["seen"] for about in results.provenance if "seen" in about and "title" in about}
    return [_models(results.table, seen), *_pairs(results.table)]


def _models(table: pl.DataFrame, seen: dict[str, int]) -> Table:
    """seen: images that each model was shown."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="Features", title_justify="left")
    for column in (
        "model",
        "images",
        "best purity (layer)",
        "effective rank, last layer",
        "|skip|/|branch|, attention",
    ):
        shown.add_column(column, overflow="fold")
    for title, key in models_of(table):
        mine = table.filter(pl.col("model") == title)
        rank = _rows(mine, "effective_rank").sort("layer")
        ratio = _rows(mine, "skip_over_branch").filter(pl.col("variant") == "attention/all").sort("layer")
        shown.add_row(
            Text(title, style=teaching(key).colour),
            str(seen.get(title, "")),
            _best_purity(mine),
            ", ".join(
                f"{v} {x:.1f}"
                for v, x in rank.group_by("variant", maintain_order=True).last().select("variant", "value").rows()
            ),
            f"{ratio['value'][0]:.1f} to {ratio['value'][-1]:.1f}" if len(ratio) else "",
        )
    return shown


def _rows(table: pl.DataFrame, measure: str) -> pl.DataFrame:
    return table.filter(pl.col("measure") == measure)


def _best_purity(mine: pl.DataFrame) -> str:
    purity = _rows(mine, "purity")
    if purity.is_empty():
        return "(no labels, no masks)"
    best = purity.sort("value", descending=True).group_by("variant", maintain_order=True).first()
    return ", ".join(
        f"{variant} {value:.2f} ({layer})" for variant, value, layer in best.select("variant", "value", "layer").rows()
    )


def _pairs(table: pl.DataFrame, most: int = 10) -> list[Table]:
    rows = _rows(table, "cka").filter(pl.col("variant").is_in(["cls", "spatial"]))
    if rows.is_empty():
        return []
    keys = ["model", "other_model", "variant", "protocol", "dataset"]
    null = _rows(table, "cka_null").select(*keys, null="value")
    rows = rows.join(null, on=keys).rename({"variant": "tokens", "other_model": "other"})
    pairs = rows.group_by("model", "other", maintain_order=True).agg(pl.col("value").max().alias("top"))
    pairs = pairs.sort("top", descending=True).head(most)
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="CKA of the last layers", title_justify="left")
    for column in ("model", "model ", "CLS", "spatial tokens"):
        shown.add_column(column, overflow="fold")
    for model, other, _ in pairs.rows():
        cells = []
        for tokens in ("cls", "spatial"):
            found = rows.filter((pl.col("model") == model) & (pl.col("other") == other) & (pl.col("tokens") == tokens))
            cells.append(_score(found.row(0, named=True)) if len(found) else "(no CLS)")
        shown.add_row(model, other, *cells)
    return [shown]


def _score(row: dict[str, float]) -> str:
    if isnan(row["value"]):
        return "none: features are the same for all images"
    return f"{row['value']:.3f} ({row['ci_low']:.3f} to {row['ci_high']:.3f}), null 0 ± {2 * row['null']:.3f}"
