"""Reading a study's tidy table: the rows of a measure on one dataset under one protocol, model by model."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from vitscope.attention.patterns import late_from
from vitscope.core.results import Results
from vitscope.core.teachings import STUDIED, TEACHINGS, teaching
from vitscope.findings.measured import Measured, mean_of

CORRECTED, PAPER = "corrected", "paper"
KINDS = {
    "explicit": "explicit supervision",
    "contrastive": "contrastive self-supervision",
    "reconstruction": "reconstruction self-supervision",
}
UNTAUGHT = "none"


@dataclass(frozen=True)
class Model:
    """A model as the findings see it; depth is its number of layers in the rows it was read from."""

    title: str
    teaching: str
    depth: int

    @property
    def kind(self) -> str:
        """The family that findings speak of. They are about the study's six methods, and no other is taken for one."""
        return teaching(self.teaching).kind if self.teaching in (*STUDIED, UNTAUGHT) else "other"

    @property
    def taught(self) -> bool:
        return self.teaching != UNTAUGHT

    @property
    def late(self) -> range:
        """The layers of the last quarter, 1-based."""
        return range(late_from(self.depth) + 1, self.depth + 1)

    def first(self, share: float) -> range:
        """The first layers that make up `share` of the depth, 1-based: the first third of 12 are 1-4."""
        return range(1, math.ceil(share * self.depth - 1e-9) + 1)


@dataclass(frozen=True)
class Study:
    """A study's results, read under one protocol."""

    results: Results
    protocol: str = CORRECTED

    def rows(self, measure: str, variant: str | None = None) -> pl.DataFrame:
        return rows(self.results, measure, variant, self.protocol)

    def has(self, *measures: str) -> bool:
        """Whether this protocol has rows of its own for any of these measures."""
        here = (pl.col("protocol") == self.protocol) & pl.col("measure").is_in(measures)
        return not self.results.table.filter(here).is_empty()


def rows(results: Results, measure: str, variant: str | None = None, protocol: str = CORRECTED) -> pl.DataFrame:
    """Rows of a measure on the dataset that most models were measured on.

    A measure that both protocols define alike is stored once, as `corrected`: that is what `paper` reads then.
    variant: None for all of them but those of a pooling head, which is no head of a layer. Rows without a value are
    left out.
    """
    mine = results.table.filter((pl.col("measure") == measure) & pl.col("value").is_finite())
    theirs = pl.col("variant") == variant if variant is not None else ~pl.col("variant").str.starts_with("pool")
    mine = mine.filter(theirs)
    own = mine.filter(pl.col("protocol") == protocol)
    mine = mine.filter(pl.col("protocol") == CORRECTED) if own.is_empty() else own
    if mine.is_empty():
        return mine
    by_dataset = mine.group_by("dataset", maintain_order=True).agg(
        pl.col("model").n_unique().alias("models"), pl.col("n").max().alias("images")
    )
    chosen = by_dataset.sort("models", "images", descending=True, maintain_order=True)["dataset"][0]
    return mine.filter(pl.col("dataset") == chosen)


def models_of(frame: pl.DataFrame) -> list[Model]:
    """The models in these rows, in their order."""
    grouped = frame.group_by("model", "teaching", maintain_order=True).agg(pl.col("layer").max())
    return [Model(title, key, depth or 0) for title, key, depth in grouped.rows()]


def measured_throughout(frame: pl.DataFrame) -> list[Model]:
    """The models that have a value at every layer; constant features, for one, can leave a layer without."""
    layers = dict(frame.group_by("model").agg(pl.col("layer").n_unique()).rows())
    return [model for model in models_of(frame) if layers[model.title] == model.depth > 0]


def deep_enough(models: Iterable[Model], least: int) -> list[Model]:
    return [model for model in models if model.depth >= least]


def of_kind(models: Iterable[Model], kind: str) -> list[Model]:
    return [model for model in models if model.kind == kind]


def of_teaching(models: Iterable[Model], key: str) -> list[Model]:
    return [model for model in models if model.teaching == key]


def numbers(frame: pl.DataFrame, model: Model, layers: Iterable[int] | None = None) -> list[Measured]:
    """A model's numbers in these rows, in order of layers and heads; of some layers if given."""
    mine = frame.filter(pl.col("model") == model.title)
    if layers is not None:
        mine = mine.filter(pl.col("layer").is_in(list(layers)))
    columns = mine.sort("layer", "head").select("value", "ci_low", "ci_high").rows()
    return [Measured.of(*row) for row in columns]


def curve(frame: pl.DataFrame, model: Model) -> dict[int, Measured]:
    """A number per layer (1-based), the mean over heads where there are heads."""
    mine = frame.filter(pl.col("model") == model.title)
    layers = sorted(mine["layer"].drop_nulls().unique())
    return {layer: mean_of(numbers(mine, model, [layer])) for layer in layers}


def mean_by_teaching(values: list[tuple[Model, Measured]]) -> Measured:
    """The mean over teachings of the mean over each one's models: a teaching with many sizes counts once."""
    keys = list(dict.fromkeys(model.teaching for model, _ in values))
    return mean_of([mean_of([value for model, value in values if model.teaching == key]) for key in keys])


def titles(models: Iterable[Model]) -> str:
    """Names in a sentence.

    >>> titles([Model("A", "fs", 12), Model("B", "fs", 12), Model("C", "fs", 12)])
    'A, B and C'
    """
    names = [model.title for model in models]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def no_model_of(kind: str) -> str:
    """What is missing, in words.

    >>> no_model_of("contrastive")
    'no model taught by contrastive self-supervision (DINO, MoCo-v3)'
    """
    methods = ", ".join(TEACHINGS[key].title for key in STUDIED if TEACHINGS[key].kind == kind)
    return f"no model taught by {KINDS[kind]} ({methods})"
