"""Pooled features as such: kept in the store, with an index that says where, and read back in blocks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from vitscope.core.analysis import Analysis, Found, Outcome, Stream
from vitscope.core.digest import digest_of
from vitscope.core.errors import BadData
from vitscope.core.files import TensorFile, write_atomically, write_text
from vitscope.core.reading import path_inside, read_json, user_path
from vitscope.features.pooling import pooled
from vitscope.features.stored import PooledFeatures

if TYPE_CHECKING:
    from vitscope.data.dataset import ImageSet
    from vitscope.models.shape import ModelShape

INDEX, IMAGES = "features.json", "images.parquet"
LARGEST_INDEX = 1 << 26  # bytes


class Extraction(Analysis):
    """Features of all layers of every image, in the order of the list."""

    name = "extract"
    title = "extraction of features"
    domain = "what"
    kind = "images"

    poolings: tuple[Literal["cls", "mean", "max", "tokens"], ...] = ("cls", "mean")
    dtype: Literal["float16", "float32"] = "float16"

    @property
    def keeps_states(self) -> bool:
        return True

    def passes(self, dataset: ImageSet, shape: ModelShape) -> Sequence[Stream]:
        return [Stream(dataset.samples, (pooled(dataset.samples, self.poolings, self.dtype),))]

    def reduce(self, dataset: ImageSet, found: Found) -> Outcome:
        notes = []
        if "cls" in self.poolings and not found.shape.layout.has_cls:
            notes.append("{model} has no CLS token: there are no cls features")
        return Outcome(notes=notes, facts={"rows": len(found.features())})


def write_index(folder: Path, dataset: ImageSet, models: dict[str, dict[str, Any]]) -> None:
    """Say where the features lie. models: title -> files (relative to the folder, in order), depth, and so on."""
    samples = dataset.samples
    table = pl.DataFrame(
        {
            "index": range(len(samples)),
            "id": samples.ids,
            "label": list(samples.labels),
            "class": [samples.classes[k] if k is not None and samples.classes else None for k in samples.labels],
        },
        schema={"index": pl.Int64, "id": pl.String, "label": pl.Int64, "class": pl.String},
    )
    write_atomically(folder / IMAGES, lambda path: table.write_parquet(path))
    index = {"dataset": dataset.title, "models": models}
    write_text(folder / INDEX, json.dumps({**index, "checksum": digest_of(index)}, indent=1))


def stored_bytes(folder: Path) -> dict[str, int]:
    """What the features of each model take on disk."""
    models = _read_index(folder)
    return {title: sum((folder / name).stat().st_size for name in about["files"]) for title, about in models.items()}


def _read_index(folder: Path) -> dict[str, dict[str, Any]]:
    if not (folder / INDEX).exists():
        raise BadData(f"{folder} holds no features: `vitscope extract` writes them")
    try:
        index = read_json(folder / INDEX, most=LARGEST_INDEX)
        if index.pop("checksum") != digest_of(index):
            raise ValueError("its checksum is another")
        models: dict[str, dict[str, Any]] = index["models"]
        return models
    except (OSError, ValueError, KeyError, TypeError, AttributeError, BadData) as error:
        raise BadData(f"{folder / INDEX} is damaged ({type(error).__name__}): extract the features again") from None


def load_features(folder: Path | str, model: str | None = None) -> PooledFeatures:
    """The features that `vitscope extract` wrote: `load_features("runs/mine").layer("cls", 11).whole()`, (n, D).

    `positions` says which line of images.parquet each row is. model: its title, if there are several.
    """
    folder = user_path(folder)
    known = _read_index(folder)
    title = model or next(iter(known), "")
    if title not in known or (model is None and len(known) > 1):
        raise BadData(f"{folder} holds features of {', '.join(known) or 'no model'}: say of which model")
    about = known[title]
    return PooledFeatures.of(
        [TensorFile(path_inside(folder, name, source=INDEX)) for name in about["files"]], about["depth"]
    )
