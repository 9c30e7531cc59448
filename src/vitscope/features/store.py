"""Pooled features of every layer on disk: written shard by shard, read without loading it.

    STORE/store.json                    what the features are: weights, preprocessing, pictures, poolings, number format
    STORE/<digest>-00000.safetensors    one shard: "cls/0" ... "mean/11", (rows, D) each, and the pictures' positions
    STORE/manifest.parquet              one line per row: picture, path, label, shard; written last

Every file is written under another name and renamed, so that it is there completely or not at all. Shards carry the
digest of what went in, so that shards of other weights or pictures are never taken for these.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from vitscope.digest import digest_of
from vitscope.errors import BadData, VitscopeError
from vitscope.results import write_atomically

DTYPES = {"float16": torch.float16, "float32": torch.float32}
LARGEST_JSON = 1 << 20  # bytes: store.json is a page of text
MANIFEST, ABOUT = "manifest.parquet", "store.json"


@dataclass(frozen=True)
class StoreContents:
    """What a store holds; its digest is the identity of every number in it."""

    model: str
    title: str
    teaching: str
    weights: str  # digest
    preprocessing: str  # digest
    samples: str  # digest of the list, in order
    samples_origin: str
    count: int  # pictures of the list, usable or not
    poolings: tuple[str, ...]
    layers: int
    width: int
    dtype: str
    shard: int  # pictures of the list per shard
    settings: dict[str, Any]  # what else could change a number: versions, compute format, batch size, statistics

    @cached_property
    def digest(self) -> str:
        told_to_people = ("model", "title", "teaching", "samples_origin")
        return digest_of({key: value for key, value in asdict(self).items() if key not in told_to_people})

    @property
    def shards(self) -> int:
        return -(-self.count // self.shard)

    def shard_name(self, number: int) -> str:
        return f"{self.digest}-{number:05}.safetensors"

    def difference(self, other: StoreContents) -> str:
        """What tells two stores apart, in words."""
        words = {
            "weights": "other weights",
            "preprocessing": "another preprocessing",
            "samples": "other pictures",
            "poolings": "other poolings",
            "dtype": "another number format",
        }
        found = [text for key, text in words.items() if getattr(self, key) != getattr(other, key)]
        return " and ".join(found) or "other settings"


def write_contents(folder: Path, contents: StoreContents) -> None:
    text = json.dumps({"digest": contents.digest, **asdict(contents)}, indent=1)
    write_atomically(folder / ABOUT, lambda path: path.write_text(text))


def read_contents(folder: Path) -> StoreContents:
    """What the store in a folder holds; an error if there is none."""
    path = folder / ABOUT
    try:
        if path.stat().st_size > LARGEST_JSON:
            raise ValueError("it is too large")
        values = json.loads(path.read_text(encoding="utf-8"))
        digest = values.pop("digest")
        contents = StoreContents(**values | {"poolings": tuple(values["poolings"])})
    except FileNotFoundError:
        raise BadData(f"{folder} is not a feature store: it has no {ABOUT}") from None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadData(f"{path} is damaged ({error}): extract the features again") from None
    if digest != contents.digest:
        raise BadData(f"{path} was changed by hand: extract the features again")
    return contents


def write_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, str] | None = None) -> None:
    """Write a safetensors file atomically; a full disk is told as such."""
    data = save({name: value.contiguous() for name, value in tensors.items()}, dict(about or {}))
    write_atomically(path, lambda to: to.write_bytes(data))


@dataclass(frozen=True)
class Shard:
    """What is known of a shard; its features are mapped into memory, and only the rows asked for are read."""

    path: Path
    indices: Tensor  # (rows,): positions in the sample list
    skipped: dict[str, str]

    @classmethod
    def open(cls, path: Path) -> Shard:
        try:
            with safe_open(path, framework="pt") as file:
                about = file.metadata() or {}
                return cls(path, file.get_tensor("indices"), json.loads(about.get("skipped", "{}")))
        except FileNotFoundError:
            raise BadData(f"the shard {path} is missing: run the extraction again to complete the store") from None
        except (SafetensorError, OSError, ValueError) as error:
            raise BadData(
                f"the shard {path} is cut short or damaged ({error}): run the extraction again to repair it"
            ) from None

    def read(self, names: Sequence[str], rows: slice) -> list[Tensor]:
        with safe_open(self.path, framework="pt") as file:
            return [file.get_slice(name)[rows] for name in names]


class FeatureStore:
    """A complete store, opened for reading. Rows are in the order of the sample list, unusable pictures left out."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder).expanduser()
        self.contents = read_contents(self.folder)
        missing = [n for n in range(self.contents.shards) if not self._path(n).is_file()]
        if missing or not (self.folder / MANIFEST).is_file():
            done = self.contents.shards - len(missing)
            raise BadData(
                f"{self.folder} is incomplete, {done} of {self.contents.shards} shards are there: "
                "run the extraction again to finish it"
            )
        self.shards = [Shard.open(self._path(n)) for n in range(self.contents.shards)]

    def _path(self, number: int) -> Path:
        return self.folder / self.contents.shard_name(number)

    def __len__(self) -> int:
        return sum(len(shard.indices) for shard in self.shards)

    @cached_property
    def indices(self) -> Tensor:
        """Positions in the sample list, (n,)."""
        return torch.cat([shard.indices for shard in self.shards])

    @cached_property
    def manifest(self) -> pl.DataFrame:
        """One line per row: row, index, id, path, label, class, shard."""
        return pl.read_parquet(self.folder / MANIFEST)

    @property
    def labels(self) -> Tensor | None:
        """(n,) int64, or None if some picture has no label."""
        labels = self.manifest["label"]
        return None if labels.null_count() or not len(labels) else torch.from_numpy(labels.to_numpy().copy())

    @property
    def skipped(self) -> dict[str, str]:
        return {name: reason for shard in self.shards for name, reason in shard.skipped.items()}

    def blocks(self, pooling: str, layers: Sequence[int], rows: int = 4096) -> Iterator[tuple[int, Tensor]]:
        """The first row's number and features (m, layers, D) float32, block by block; only these are read."""
        if pooling not in self.contents.poolings:
            raise VitscopeError(f"{self.folder} holds {', '.join(self.contents.poolings)} features, not {pooling}")
        if bad := [layer for layer in layers if not 0 <= layer < self.contents.layers]:
            raise VitscopeError(f"{self.folder} has {self.contents.layers} layers: there is no layer {bad[0] + 1}")
        names = [f"{pooling}/{layer}" for layer in layers]
        first = 0
        for shard in self.shards:
            for start in range(0, len(shard.indices), rows):
                part = torch.stack(shard.read(names, slice(start, start + rows)), dim=1).float()
                yield first + start, part
            first += len(shard.indices)

    def features(self, pooling: str, layer: int) -> Tensor:
        """All features of one layer, (n, D) float32."""
        return torch.cat([block[:, 0] for _, block in self.blocks(pooling, [layer])])
