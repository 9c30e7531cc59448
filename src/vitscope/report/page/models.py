"""Who is on the page: every model with its depth and its look, and the legend that isolates them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from vitscope.core.results import Results
from vitscope.core.teachings import TEACHINGS, Teaching, teaching
from vitscope.report.looks import ModelStyle, model_styles


@dataclass(frozen=True)
class PageModel:
    """A model as the page shows it. heads, grid: None where no attention was studied."""

    title: str
    teaching: Teaching
    depth: int
    heads: int | None
    grid: tuple[int, int] | None
    style: ModelStyle

    def as_dict(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "shape": self.style.shape,
            "depth": self.depth,
            "heads": self.heads,
            "grid": self.grid,
            "dash": self.style.dash,
            "filled": self.style.filled,
        }


@dataclass(frozen=True)
class Chip:
    """A button of the legend. members: positions of the models it isolates; small: one of several below another."""

    title: str
    members: tuple[int, ...]
    small: bool = False


def models_of(results: Results) -> list[PageModel]:
    """The models in the order of the teachings, and within one teaching as they were studied."""
    order = list(TEACHINGS)
    rows = results.table.group_by("model", maintain_order=True).agg(
        pl.col("teaching").first(), pl.col("layer").max(), pl.col("head").max()
    )
    found = sorted(rows.iter_rows(named=True), key=lambda row: order.index(teaching(row["teaching"]).key))
    styles = model_styles([(row["model"], row["teaching"]) for row in found])
    return [
        PageModel(
            title=row["model"],
            teaching=teaching(row["teaching"]),
            depth=row["layer"] or 1,
            heads=row["head"],
            grid=_grid(results, row["model"]),
            style=styles[row["model"]],
        )
        for row in found
    ]


def legend(models: Sequence[PageModel]) -> list[Chip]:
    """Teachings and series with their models below them; a model of which nothing is known stands for itself."""
    groups: dict[tuple[str, str], list[int]] = {}
    for position, model in enumerate(models):
        unknown = model.teaching.key == "other"
        name = model.style.series or (model.title if unknown else model.teaching.title)
        groups.setdefault((model.teaching.key, name), []).append(position)
    chips = []
    for (_, name), members in groups.items():
        chips.append(Chip(models[members[0]].title if len(members) == 1 else name, tuple(members)))
        if len(members) > 1:
            chips += [Chip(models[i].style.step or models[i].title, (i,), small=True) for i in members]
    return chips


def model_colours(models: Sequence[PageModel]) -> str:
    """A class per model: no element needs a style of its own."""
    return "\n".join(
        f".m-{i} {{ --teaching: light-dark({model.style.colour}, {model.style.dark}); }}"
        for i, model in enumerate(models)
    )


def _grid(results: Results, title: str) -> tuple[int, int] | None:
    aligned = results.maps.get(f"{title}/aligned.corrected")  # (L, H, 2h-1, 2w-1)
    return None if aligned is None else ((aligned.shape[2] + 1) // 2, (aligned.shape[3] + 1) // 2)
