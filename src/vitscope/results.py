"""Results: one tidy table, named maps, and where they came from.

One row is one number: model, teaching, dataset, layer and head (1-based; null where there is none), measure, variant
(what the measure was applied to, such as `cls`), protocol, value, ci_low, ci_high, n, provenance (digest).
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from vitscope.bootstrap import mean_interval
from vitscope.errors import VitscopeError

SCHEMA: dict[str, Any] = {
    "model": pl.String,
    "teaching": pl.String,
    "dataset": pl.String,
    "layer": pl.Int32,
    "head": pl.Int32,
    "measure": pl.String,
    "variant": pl.String,
    "protocol": pl.String,
    "value": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "n": pl.Int64,
    "provenance": pl.String,
}


@dataclass(frozen=True)
class Label:
    """What all rows of one model on one dataset share."""

    model: str
    teaching: str
    dataset: str
    provenance: str


def tidy(
    label: Label,
    measure: str,
    value: Tensor,
    *,
    axes: Sequence[str] = ("layer", "head"),
    low: Tensor | None = None,
    high: Tensor | None = None,
    n: int = 0,
    variant: str = "",
    protocol: str = "corrected",
) -> pl.DataFrame:
    """Rows of an array of numbers. value: one axis per name in `axes` ("layer", "head"); indices become 1-based."""
    assert value.ndim == len(axes), f"{measure}: {value.ndim} axes, {len(axes)} names"
    where = torch.cartesian_prod(*(torch.arange(1, size + 1) for size in value.shape)).reshape(-1, max(value.ndim, 1))
    columns: dict[str, Any] = {axis: where[:, i].numpy() for i, axis in enumerate(axes)}
    count = value.numel()
    empty = torch.full_like(value, torch.nan, dtype=torch.float64)
    columns |= {
        "model": [label.model] * count,
        "teaching": [label.teaching] * count,
        "dataset": [label.dataset] * count,
        "measure": [measure] * count,
        "variant": [variant] * count,
        "protocol": [protocol] * count,
        "value": value.double().flatten().numpy(),
        "ci_low": (empty if low is None else low.double()).flatten().numpy(),
        "ci_high": (empty if high is None else high.double()).flatten().numpy(),
        "n": [n] * count,
        "provenance": [label.provenance] * count,
    }
    for absent in {"layer", "head"} - set(axes):
        columns[absent] = [None] * count
    return pl.DataFrame({name: columns[name] for name in SCHEMA}, schema=SCHEMA)


def tidy_mean(label: Label, measure: str, values: Tensor, **options: Any) -> pl.DataFrame:
    """Rows of means over pictures with bootstrap intervals. values: (n, ...), one row per picture."""
    low, high = mean_interval(values)
    return tidy(label, measure, values.double().mean(0), low=low, high=high, n=len(values), **options)


@dataclass
class Results:
    """What a command or a study hands back; `save` and `load` are exact."""

    table: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SCHEMA))
    maps: dict[str, Tensor] = field(default_factory=dict)  # "model/name" -> array
    provenance: list[dict[str, Any]] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)  # picture -> why it was left out
    notes: list[str] = field(default_factory=list)  # what a reader must know, such as "no CLS"

    def extend(self, tables: Iterable[pl.DataFrame]) -> None:
        self.table = pl.concat([self.table, *tables])

    def join(self, other: Results) -> None:
        self.table = pl.concat([self.table, other.table])
        self.maps |= other.maps
        self.provenance += other.provenance
        self.skipped |= other.skipped
        self.notes += [note for note in other.notes if note not in self.notes]

    def save(self, folder: Path) -> None:
        """Write results.parquet, results.csv, maps.safetensors and provenance.json; each atomically."""
        make_folder(folder)
        write_atomically(folder / "results.parquet", lambda path: self.table.write_parquet(path))
        write_atomically(folder / "results.csv", lambda path: self.table.write_csv(path))
        maps = {name: value.contiguous() for name, value in self.maps.items()}
        write_atomically(folder / "maps.safetensors", lambda path: save_file(maps, path))
        about = {"provenance": self.provenance, "skipped": self.skipped, "notes": self.notes}
        text = json.dumps(about, indent=1, default=str)
        write_atomically(folder / "provenance.json", lambda path: path.write_text(text))

    @classmethod
    def load(cls, folder: Path) -> Results:
        try:
            about = json.loads((folder / "provenance.json").read_text())
            table = pl.read_parquet(folder / "results.parquet")
            maps = load_file(folder / "maps.safetensors")
        except FileNotFoundError as error:
            raise VitscopeError(
                f"{folder} holds no vitscope results: {Path(error.filename).name} is missing"
            ) from error
        return cls(table, maps, about["provenance"], about["skipped"], about["notes"])


def make_folder(folder: Path) -> None:
    """Make sure results can be written there, before long work starts."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise VitscopeError(f"cannot write to {folder}: {error.strerror}: choose another --out") from error


def write_atomically(path: Path, write: Callable[[Path], Any]) -> None:
    """Write under a temporary name in the same folder, then rename: a file is there completely or not at all."""
    make = tempfile.mkdtemp(prefix=".writing-", dir=path.parent)
    try:
        temporary = Path(make) / path.name
        write(temporary)
        os.replace(temporary, path)
    except OSError as error:
        free = shutil.disk_usage(path.parent).free
        raise VitscopeError(
            f"could not write {path}: {error.strerror or error} ({free >> 20} MiB free); earlier files stay"
        ) from error
    finally:
        shutil.rmtree(make, ignore_errors=True)
