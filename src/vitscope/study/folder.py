"""The folder of a study: one run at a time, finished jobs by digest, a log of what was computed."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from vitscope.errors import VitscopeError
from vitscope.results import make_folder, write_atomically

MARK = "study.json"


class StudyFolder:
    """Where a study keeps its jobs and results."""

    def __init__(self, root: Path, title: str) -> None:
        self.root, self.title = root, title
        make_folder(root)
        mark = root / MARK
        if mark.exists():
            try:
                other = json.loads(mark.read_text())["title"]
            except (ValueError, KeyError, TypeError) as error:
                raise VitscopeError(f"{mark} is damaged: choose another folder with --out") from error
            if other != title:
                raise VitscopeError(f"{root} holds another study ('{other}'): choose another folder with --out")
        elif any(path.name not in (".lock", "world") for path in root.iterdir()):
            raise VitscopeError(f"{root} is not empty and holds no study: choose another folder with --out")
        else:
            write_atomically(mark, lambda path: path.write_text(json.dumps({"title": title})))
        (root / "jobs").mkdir(exist_ok=True)

    def job(self, digest: str) -> Path:
        return self.root / "jobs" / digest

    def is_done(self, digest: str) -> bool:
        """A job is done when its last file is there; it is written after all others."""
        return (self.job(digest) / "done.json").is_file()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Held while a run works here. The lock is the system's: it ends with the process, however that ends."""
        with (self.root / ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise VitscopeError(f"another run is working in {self.root}: wait for it, or choose --out") from error
            yield

    def log(self, event: str, **details: Any) -> None:
        """One line per event in log.jsonl: what ran, on what, how many pictures."""
        line = {"time": datetime.now(timezone.utc).isoformat(timespec="seconds"), "event": event, **details}
        with (self.root / "log.jsonl").open("a") as file:
            file.write(json.dumps(line, default=str) + os.linesep)

    def events(self) -> list[dict[str, Any]]:
        path = self.root / "log.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines() if line] if path.exists() else []
