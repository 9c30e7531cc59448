"""Where everything that was computed lies: states of passes by shard, outcomes of analyses, a log.

STORE/states/KEY/00012.safetensors    what shard 12 of a pass left; KEY is the digest of everything that decides it
STORE/outcomes/DIGEST.safetensors     what `reduce` made of complete passes
STORE/log.jsonl                       what was computed when

Files are written under a temporary name and renamed, carry checksums, and say what they are: one that is cut, changed
or lies in another's place is noticed when it is read, told, and made anew.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from vitscope.core.analysis import Outcome
from vitscope.core.digest import digest_of
from vitscope.core.errors import VitscopeError
from vitscope.core.files import (
    LOCK,
    MARK,
    WRITING,
    Damaged,
    TensorFile,
    make_folder,
    only_run,
    write_tensors,
    write_text,
)
from vitscope.core.reading import SMALL, read_json, reason, user_path
from vitscope.core.results import UNREADABLE

FORMAT = 2  # of the layout below and what is in it: another number is another store
SHARED = ("world", "figures")  # folders that may lie in a store's folder before it is one


class Store:
    """A folder of computed things; several processes may write to it, each its own files."""

    def __init__(self, root: Path | str, title: str = "") -> None:
        """title: of the study that lives here; a folder holds one study."""
        self.root = user_path(root)
        self.notes: list[str] = []  # what was found damaged while opening it
        self._claim(title)

    def _claim(self, title: str) -> None:
        make_folder(self.root)
        mark = self.root / MARK
        if mark.exists():
            try:
                other, version = _read_mark(mark)
            except (
                ValueError,
                LookupError,
                TypeError,
                VitscopeError,
            ):  # everything else in a store says itself what it is
                if not (self.root / "states").is_dir():
                    raise VitscopeError(f"{mark} is damaged: choose another folder with --out") from None
                self.notes.append(f"a file of the store was damaged and made anew ({MARK})")
            else:
                if version != FORMAT:
                    raise VitscopeError(f"{self.root} was written by another version: choose another folder with --out")
                if title and other and other != title:
                    raise VitscopeError(
                        f"{self.root} holds another study ('{other}'): choose another folder with --out"
                    )
                if not title or other:
                    return
        elif any(
            path.name not in (*SHARED, LOCK) and not path.name.startswith(WRITING) for path in self.root.iterdir()
        ):
            raise VitscopeError(f"{self.root} is not empty and holds no results: choose another folder with --out")
        write_text(mark, json.dumps({"title": title, "format": FORMAT, "sum": digest_of([title, FORMAT])}))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Held while a run works here."""
        with only_run(self.root):
            yield

    # -- states of passes --------------------------------------------------------------------------------------

    def state_path(self, key: str, shard: int) -> Path:
        return self.root / "states" / key / f"{shard:05}.safetensors"

    def shards_of(self, key: str) -> set[int]:
        """The shards that are there; whether they are sound is seen when they are read."""
        try:
            names = os.listdir(self.root / "states" / key)
        except (FileNotFoundError, NotADirectoryError):
            return set()
        return {int(name[:5]) for name in names if re.fullmatch(r"[0-9]{5}\.safetensors", name)}

    def write_state(
        self, key: str, shard: int, state: Mapping[str, Tensor], *, skipped: Mapping[str, str], about: Mapping[str, Any]
    ) -> None:
        path = self.state_path(key, shard)
        make_folder(path.parent)
        words = {"key": key, "shard": shard, "skipped": dict(skipped), "about": dict(about)}
        write_tensors(path, state, words)

    def read_state(self, key: str, shard: int) -> TensorFile:
        """A state, read tensor by tensor as it is asked for; `Damaged` if it is not what it should be."""
        path = self.state_path(key, shard)
        found = TensorFile(path)
        if (found.about.get("key"), found.about.get("shard")) != (key, shard):
            raise Damaged(path, "it lies in the place of another")
        return found

    # -- outcomes of analyses ----------------------------------------------------------------------------------

    def outcome_path(self, digest: str) -> Path:
        return self.root / "outcomes" / f"{digest}.safetensors"

    def has_outcome(self, digest: str) -> bool:
        return self.outcome_path(digest).is_file()

    def write_outcome(self, digest: str, outcome: Outcome) -> None:
        path = self.outcome_path(digest)
        make_folder(path.parent)
        table = pl.concat(outcome.tables) if outcome.tables else None
        frames = {"table": table, "pairs": outcome.pairs}
        tensors = {f"map/{name}": value for name, value in outcome.maps.items()}
        tensors |= {f"frame/{name}": _packed(frame) for name, frame in frames.items() if frame is not None}
        write_tensors(path, tensors, {"key": digest, "notes": outcome.notes, "facts": outcome.facts})

    def read_outcome(self, digest: str) -> Outcome:
        path = self.outcome_path(digest)
        found = TensorFile(path)
        if found.about.get("key") != digest:
            raise Damaged(path, "it lies in the place of another")
        try:
            maps = {name[4:]: found[name] for name in found if name.startswith("map/")}
            frames = {name[6:]: _unpacked(found[name]) for name in found if name.startswith("frame/")}
            tables = [frames["table"]] if "table" in frames else []
            return Outcome(tables, maps, found.about["notes"], found.about["facts"], frames.get("pairs"))
        except UNREADABLE as error:
            raise Damaged(path, reason(error)) from None

    # -- log ---------------------------------------------------------------------------------------------------

    def log(self, event: str, **details: Any) -> None:
        """One line per event in log.jsonl: what ran, on what, how many images."""
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        line = {"time": now, "event": event, "pid": os.getpid(), **details}
        try:
            with (self.root / "log.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, default=str) + os.linesep)
        except OSError as error:
            raise VitscopeError(
                f"could not write to {self.root}: {error.strerror}: make room and run the same command again; "
                "earlier files stay"
            ) from error

    def events(self) -> list[dict[str, Any]]:
        """The log; a line that a killed process left half-written is passed over."""
        path = self.root / "log.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        found = []
        for line in lines:
            with suppress(ValueError):
                found.append(json.loads(line))
        return found


def _read_mark(mark: Path) -> tuple[str, int]:
    known = read_json(mark, most=SMALL)
    title, version = str(known["title"]), int(known["format"])
    if known["sum"] != digest_of([title, version]):
        raise ValueError("its checksum is another")
    return title, version


def _packed(frame: pl.DataFrame) -> Tensor:
    buffer = io.BytesIO()
    frame.write_ipc(buffer, compression="zstd")
    return torch.from_numpy(np.frombuffer(buffer.getvalue(), np.uint8).copy())


def _unpacked(data: Tensor) -> pl.DataFrame:
    return pl.read_ipc(io.BytesIO(data.numpy().tobytes()))
