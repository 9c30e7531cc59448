"""Small studies and what watches them: shared by the tests of the pipeline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from PIL import Image

from tests.conftest import make_photos
from vitscope.pipeline.store import Store
from vitscope.pipeline.study import Study, parse_study

Found = TypeVar("Found")
NAMES = {
    "A": "random:vit_tiny_patch16_224",
    "B": "random:vit_tiny_patch16_224.augreg_in21k",
    "C": "random:deit_tiny_patch16_224",  # its mean colour is another than A's
}
WRITTEN = ("results.parquet", "maps.safetensors")
RUN = (
    "import json, sys; from pathlib import Path; from vitscope.pipeline.study import parse_study;"
    "from vitscope.api import run_study; import torch; torch.set_num_threads(1);"
    "run_study(parse_study(json.loads(sys.argv[1]), Path('.')))"
)


def models(titles: Sequence[str] = ("A", "B"), size: int = 32) -> list[dict[str, Any]]:
    return [{"name": NAMES[title], "title": title, "size": size} for title in titles]


def describe(out: Path, data: dict[str, Any], titles: Sequence[str] = ("A", "B"), **settings: Any) -> Study:
    """A study of tiny networks. data: kind -> folder, or its settings."""
    entries = {kind: {"path": str(value)} if isinstance(value, Path) else value for kind, value in data.items()}
    values = {"title": "test", "models": models(titles), "data": entries, "out": str(out)} | settings
    return parse_study(values, out)


def masked_photos(root: Path, count: int = 12) -> Path:
    """images/ and masks/ with files of the same names."""
    make_photos(root / "images", count=count, classes=1)
    for photo in sorted((root / "images").rglob("*.png")):
        where = root / "masks" / photo.relative_to(root / "images")
        where.parent.mkdir(parents=True, exist_ok=True)
        mask = np.zeros((48, 60), np.uint8)
        mask[10:40, 15:45] = 255
        Image.fromarray(mask).save(where)
    return root


def traced(out: Path) -> list[tuple[str, str, int]]:
    """(model, dataset, images) of every shard that went through a network."""
    return [(e["model"], e["dataset"], e["images"]) for e in Store(out).events() if e["event"] == "traced"]


def written(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in WRITTEN}


def flip(path: Path, place: float = 0.7) -> None:
    """Change one byte. place: share of the file before it."""
    data = bytearray(path.read_bytes())
    data[int(place * len(data))] ^= 0x10
    path.write_bytes(bytes(data))


# -- studies in processes of their own -------------------------------------------------------------------------


def start(study: Study, code: str = RUN) -> subprocess.Popen[bytes]:
    values = json.dumps(study.model_dump(mode="json"))
    return subprocess.Popen(
        [sys.executable, "-c", code, values], env=os.environ | {"OMP_NUM_THREADS": "1"}, stderr=subprocess.PIPE
    )


def children(pid: int) -> list[int]:
    """Workers started by `pid` that are still there."""
    found = subprocess.run(
        ["ps", "-ww", "-o", "pid=", "-o", "args=", "--ppid", str(pid)], capture_output=True, text=True
    )
    return [int(line.split()[0]) for line in found.stdout.splitlines() if "spawn_main" in line]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def gone(pids: Sequence[int]) -> bool:
    return not any(alive(pid) for pid in pids)


def until(condition: Callable[[], Found], seconds: float = 120.0) -> Found:
    """Wait for something true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.01)
    raise AssertionError("it did not happen in time")


def logged(out: Path, event: str) -> int:
    """How often something was logged."""
    return sum(e["event"] == event for e in Store(out).events()) if (out / "log.jsonl").exists() else 0
