"""Writing a feature store: one writer at a time, whole shards or none."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import torch
from torch import Tensor

from vitscope.data.samples import SampleList
from vitscope.errors import BadData, VitscopeError
from vitscope.features.pooling import PooledStatistic
from vitscope.features.store import (
    ABOUT,
    MANIFEST,
    Shard,
    StoreContents,
    read_contents,
    write_contents,
    write_tensors,
)
from vitscope.results import write_atomically
from vitscope.statistic import Statistic


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Nobody else extracts into this folder; what a killed process left half-written is cleared away.

    The lock goes with the process, however it ends. Where the system has no such locks, nothing is locked.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise VitscopeError(
                f"another process is extracting into {folder}: wait for it, or choose another"
            ) from None
        for leftover in folder.glob(".writing-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        yield


def claim(folder: Path, contents: StoreContents) -> None:
    """Make the folder this store, or make sure that it already is."""
    if not (folder / ABOUT).exists():
        write_contents(folder, contents)
        return
    there = read_contents(folder)
    if there.digest != contents.digest:
        raise VitscopeError(
            f"{folder} holds features of {there.difference(contents)} ({there.title}, {there.count} pictures of "
            f"{there.samples_origin}): choose another folder"
        )


def state_path(folder: Path, contents: StoreContents, statistic: Statistic, number: int) -> Path:
    return folder / f"{contents.digest}-{number:05}.{statistic.name}.safetensors"


def finished(folder: Path, contents: StoreContents, number: int, watching: Sequence[Statistic]) -> Shard | None:
    """The shard, if it and the states beside it are whole; a damaged one counts as not done."""
    path = folder / contents.shard_name(number)
    if not path.is_file():
        return None
    try:
        shard = Shard.open(path)
        for statistic in watching:
            Shard.open(state_path(folder, contents, statistic, number))
    except BadData:
        return None
    return shard


def write_shard(path: Path, pooled: PooledStatistic, layers: int, skipped: dict[str, str]) -> None:
    tensors: dict[str, Tensor] = {"indices": pooled.indices}
    for pooling, features in pooled.result().items() if pooled.count else ():
        tensors |= {f"{pooling}/{layer}": features[:, layer] for layer in range(layers)}
    write_tensors(path, tensors, {"skipped": json.dumps(skipped)})


def write_manifest(folder: Path, contents: StoreContents, samples: SampleList) -> None:
    shards = [Shard.open(folder / contents.shard_name(number)).indices for number in range(contents.shards)]
    chosen = [samples[index] for index in torch.cat(shards).tolist()]
    table = pl.DataFrame(
        {
            "row": range(len(chosen)),
            "index": torch.cat(shards).numpy(),
            "id": [sample.id for sample in chosen],
            "path": [str(sample.path) for sample in chosen],
            "label": [sample.label for sample in chosen],
            "class": [samples.classes[s.label] if s.label is not None and samples.classes else None for s in chosen],
            "shard": [number for number, indices in enumerate(shards) for _ in indices],
        },
        schema={"row": pl.Int64, "index": pl.Int64, "id": pl.String, "path": pl.String, "label": pl.Int64,
                "class": pl.String, "shard": pl.Int32},
    )  # fmt: skip
    write_atomically(folder / MANIFEST, lambda path: table.write_parquet(path))
