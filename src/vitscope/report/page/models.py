"""Who is on the page: every model with its depth and the fixed look of its teaching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from vitscope.core.results import Results
from vitscope.core.teachings import TEACHINGS, Teaching, teaching

DASHES = ("", "7 3", "2 2.5", "9 3 2 3")  # models of one teaching share its colour and marker, and differ in line


@dataclass(frozen=True)
class PageModel:
    """A model as the page shows it. heads, grid: None where no attention was studied."""

    title: str
    teaching: Teaching
    depth: int
    heads: int | None
    grid: tuple[int, int] | None
    dash: str
    filled: bool

    def as_dict(self) -> dict[str, Any]:
        how = self.teaching
        return {
            "title": self.title,
            "teaching": how.key,
            "shape": how.shape,
            "depth": self.depth,
            "heads": self.heads,
            "grid": self.grid,
            "dash": self.dash,
            "filled": self.filled,
        }


def models_of(results: Results) -> list[PageModel]:
    """The models in the order of the teachings, and within one teaching as they were studied."""
    order = list(TEACHINGS)
    rows = results.table.group_by("model", maintain_order=True).agg(
        pl.col("teaching").first(), pl.col("layer").max(), pl.col("head").max()
    )
    found = sorted(rows.iter_rows(named=True), key=lambda row: order.index(teaching(row["teaching"]).key))
    turns: dict[str, int] = {}
    models = []
    for row in found:
        how = teaching(row["teaching"])
        turn = turns.setdefault(how.key, 0)
        turns[how.key] += 1
        models.append(
            PageModel(
                title=row["model"],
                teaching=how,
                depth=row["layer"] or 1,
                heads=row["head"],
                grid=_grid(results, row["model"]),
                dash=DASHES[turn % len(DASHES)],
                filled=turn // len(DASHES) % 2 == 0,
            )
        )
    return models


def _grid(results: Results, title: str) -> tuple[int, int] | None:
    aligned = results.maps.get(f"{title}/aligned.corrected")  # (L, H, 2h-1, 2w-1)
    return None if aligned is None else ((aligned.shape[2] + 1) // 2, (aligned.shape[3] + 1) // 2)
