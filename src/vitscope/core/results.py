"""Results: one tidy table, named maps, and where they came from.

One row is one number: model, teaching, dataset, layer and head (1-based; null where there is none), other_model and
other_layer (for a relation between two), measure, variant (what the measure was applied to, such as `cls`), protocol,
value, ci_low, ci_high, n, provenance (digest).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from vitscope.core.bootstrap import streamed_mean
from vitscope.core.digest import digest_of
from vitscope.core.errors import BadData, VitscopeError
from vitscope.core.files import Damaged, TensorFile, make_folder, write_atomically, write_tensors, write_text
from vitscope.core.reading import STRANGE, read_json, reason, user_path

SCHEMA: dict[str, Any] = {
    "model": pl.String,
    "teaching": pl.String,
    "dataset": pl.String,
    "layer": pl.Int32,
    "head": pl.Int32,
    "other_model": pl.String,
    "other_layer": pl.Int32,
    "measure": pl.String,
    "variant": pl.String,
    "protocol": pl.String,
    "value": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "n": pl.Int64,
    "provenance": pl.String,
}

LARGEST_ABOUT = 1 << 30  # bytes of provenance.json
KINDS: dict[str, type] = dict.fromkeys(("checksums", "skipped", "settings"), dict)
KINDS |= dict.fromkeys(("provenance", "notes", "failures", "coverage"), list) | {"title": str}
# What a damaged table raises; polars panics outside of Python's hierarchy.
UNREADABLE: tuple[type[BaseException], ...] = (*STRANGE, pl.exceptions.PolarsError, pl.exceptions.PanicException)


@dataclass(frozen=True)
class Label:
    """What all rows of one model on one dataset share."""

    model: str
    teaching: str
    dataset: str
    provenance: str


NOBODY = Label("", "", "", "")  # of rows whose owner is filled in later: the same weights may have several names


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
    first_layer: int = 1,
) -> pl.DataFrame:
    """Rows of an array of numbers. value: one axis per name in `axes` ("layer", "head"); indices become 1-based."""
    assert value.ndim == len(axes), f"{measure}: {value.ndim} axes, {len(axes)} names"
    columns: dict[str, Any] = {
        axis: where.flatten() + (first_layer if axis == "layer" else 1)
        for axis, where in zip(axes, np.indices(value.shape), strict=True)
    }
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
    for absent in {"layer", "head", "other_model", "other_layer"} - set(axes):
        columns[absent] = [None] * count
    return pl.DataFrame({name: columns[name] for name in SCHEMA}, schema=SCHEMA)


def tidy_mean(label: Label, measure: str, values: Tensor | Iterable[Tensor], **options: Any) -> pl.DataFrame:
    """Rows of means over images with intervals. values: (n, ...), one row per image, or blocks of such rows."""
    mean, (low, high), n = streamed_mean([values] if isinstance(values, Tensor) else values)
    return tidy(label, measure, mean, low=low, high=high, n=n, **options)


@dataclass(frozen=True)
class Coverage:
    """How much of one model on one dataset was done: shown wherever its numbers are."""

    model: str
    dataset: str
    kind: str  # images, masks, labelled, retrieval, video, keypoints
    seen: int
    planned: int
    skipped: dict[str, str] = field(default_factory=dict)  # image -> reason

    @property
    def complete(self) -> bool:
        return self.seen == self.planned


@dataclass
class Results:
    """What an evaluation hands back; `save` and `load` are exact."""

    table: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SCHEMA))
    maps: dict[str, Tensor] = field(default_factory=dict)  # "model/name" -> array
    provenance: list[dict[str, Any]] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)  # image -> why it was left out
    notes: list[str] = field(default_factory=list)  # what a reader must know, such as "no CLS"
    title: str = ""
    coverage: list[Coverage] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)  # what was asked for, as it was run
    failures: list[str] = field(default_factory=list)  # what could not be done, in sentences
    pairs: pl.DataFrame = field(default_factory=pl.DataFrame)  # similarity of every pair of sites, where it was asked
    datasets: list[Any] = field(default_factory=list, repr=False)  # to show images of; not saved

    def __getitem__(self, measure: str) -> pl.DataFrame:
        """The rows of one measure."""
        rows = self.table.filter(pl.col("measure") == measure)
        if rows.is_empty():
            there = ", ".join(sorted(self.table["measure"].unique())) or "nothing"
            raise VitscopeError(f"there is no measure '{measure}' in these results: there is {there}")
        return rows

    def extend(self, tables: Iterable[pl.DataFrame]) -> None:
        self.table = pl.concat([self.table, *tables])

    def join(self, other: Results) -> None:
        self.table = pl.concat([self.table, other.table])
        self.maps |= other.maps
        self.provenance += other.provenance
        self.skipped |= other.skipped
        self.notes += [note for note in other.notes if note not in self.notes]

    def save(self, folder: Path | str) -> None:
        """Write results.parquet, results.csv, maps.safetensors and provenance.json, each atomically.

        provenance.json is last and has the checksums of the others: what is damaged later is noticed.
        """
        folder = Path(folder)
        make_folder(folder)
        write_atomically(folder / "results.parquet", lambda path: self.table.write_parquet(path))
        write_atomically(folder / "results.csv", lambda path: plain_cells(self.table).write_csv(path))
        write_tensors(folder / "maps.safetensors", self.maps)
        if len(self.pairs):
            write_atomically(folder / "pairs.parquet", lambda path: self.pairs.write_parquet(path))
        about = {
            "title": self.title,
            "coverage": [asdict(part) for part in self.coverage],
            "settings": self.settings,
            "notes": self.notes,
            "failures": self.failures,
            "skipped": self.skipped,
            "provenance": self.provenance,
            "checksums": {name: _checksum(folder / name) for name in ("results.parquet", "pairs.parquet")},
        }
        about["checksum"] = digest_of(json.loads(json.dumps(about, default=str)))
        write_text(folder / "provenance.json", json.dumps(about, indent=1, default=str))

    @classmethod
    def load(cls, folder: Path | str) -> Results:
        """Read what `save` wrote; a file that is missing, damaged or changed is told."""
        folder = user_path(folder)
        if not folder.exists():
            raise VitscopeError(f"{folder} does not exist: check the path")
        about_path = folder / "provenance.json"
        if not about_path.exists():
            raise VitscopeError(f"{folder} holds no vitscope results: provenance.json is missing")
        try:
            about = read_json(about_path, most=LARGEST_ABOUT)
        except BadData as error:
            raise Damaged(about_path, str(error).removeprefix(f"{about_path} ")) from error
        try:
            if about.pop("checksum") != digest_of(about):
                raise ValueError("its checksum is another")
            for key, kind in KINDS.items():
                if not isinstance(about[key], kind):
                    raise TypeError(f"{key} is not what it should be")
            for name in ("results.parquet", "pairs.parquet"):
                if (checksum := about["checksums"][name]) is not None and _checksum(folder / name) != checksum:
                    raise Damaged(folder / name, "it is missing, or its checksum is another")
            table = pl.read_parquet(folder / "results.parquet")
            if dict(table.schema) != {name: kind() for name, kind in SCHEMA.items()}:
                raise TypeError("results.parquet has other columns")
            pairs = pl.read_parquet(folder / "pairs.parquet") if about["checksums"]["pairs.parquet"] else pl.DataFrame()
            return cls(
                table=table,
                maps=dict(TensorFile(folder / "maps.safetensors")),
                provenance=about["provenance"],
                skipped=about["skipped"],
                notes=about["notes"],
                title=about["title"],
                coverage=[Coverage(**part) for part in about["coverage"]],
                settings=about["settings"],
                failures=about["failures"],
                pairs=pairs,
            )
        except OSError as error:
            raise VitscopeError(f"cannot read the results in {folder}: {error.strerror or error}") from error
        except UNREADABLE as error:
            raise Damaged(about_path, reason(error)) from error


def _checksum(path: Path) -> int | None:
    """None if there is no such file."""
    return zlib.crc32(path.read_bytes()) if path.is_file() else None


def plain_cells(table: pl.DataFrame) -> pl.DataFrame:
    """For CSV: a text that a spreadsheet would take for a formula stands behind an apostrophe.

    >>> plain_cells(pl.DataFrame({"model": ["=1+1", "zoo/dino"], "value": [-1.0, 2.0]}))["model"].to_list()
    ["'=1+1", 'zoo/dino']
    """
    risky = pl.col(pl.String).str.contains(r"^[=+\-@\t\r]")
    return table.with_columns(pl.when(risky).then("'" + pl.col(pl.String)).otherwise(pl.col(pl.String)).name.keep())
