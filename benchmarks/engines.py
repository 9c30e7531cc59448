"""One model on one dataset, divided: two workers against one, as processes of this machine and as Ray actors.

Each way is a process of its own with a store of its own, timed from its first import to its saved results. One worker
has one core, two workers have two. All must write the same bytes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.timing import Row

IMAGES = 1536  # twenty-four shards: they divide evenly
RUN = """
import json, os, sys, time
start, way, photos, store, arch = time.perf_counter(), *sys.argv[1:5]
os.sched_setaffinity(0, {0} if way == "one" else {0, 1})
import torch
torch.set_num_threads(1)
import vitscope
from vitscope import Attention, Features, Local, Ray
engine = {"one": Local(), "two": Local(2), "ray": Ray(2)}[way]
analyses = [Attention(), Features()]
vitscope.evaluate(arch, on=vitscope.images(photos), analyses=analyses, store=store, engine=engine).save(store)
print(json.dumps(time.perf_counter() - start))
"""


def rows(quick: bool = False) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="vitscope-engines-") as name:
        root = Path(name)
        photos = make_photos(root / "photos", 192 if quick else IMAGES)
        arch = "random:vit_tiny_patch16_224" if quick else "random:vit_small_patch16_224"
        seconds = {way: run(way, photos, root / way, arch) for way in ways()}
        note = ", ".join(f"{way} {spent:.0f} s" for way, spent in seconds.items())
        yield Row(
            "one model, one dataset: two processes over one",
            seconds["one"] / seconds["two"],
            1.8,
            better="larger",
            note=note,
        )
        if "ray" in seconds:
            ratio = seconds["one"] / seconds["ray"]
            yield Row("one model, one dataset: two Ray actors over one process", ratio, 1.7, better="larger")
        files = [
            (root / way / "results.parquet").read_bytes() + (root / way / "maps.safetensors").read_bytes()
            for way in seconds
        ]
        yield Row(
            "engines whose results are the same bytes",
            sum(file == files[0] for file in files),
            len(files),
            "of " + str(len(files)),
            better="larger",
        )


def ways() -> list[str]:
    try:
        import ray  # noqa: F401
    except ImportError:
        return ["one", "two"]
    return ["one", "two", "ray"]


def make_photos(folder: Path, count: int) -> Path:
    """Photographs of 640 x 480, as far as a decoder can tell."""
    import numpy as np
    from PIL import Image

    folder.mkdir(parents=True)
    generator = np.random.default_rng(0)
    for number in range(count):
        coarse = Image.fromarray(generator.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        coarse.resize((640, 480), Image.Resampling.BICUBIC).save(folder / f"{number:05}.jpg", quality=90)
    return folder


def run(way: str, photos: Path, store: Path, arch: str) -> float:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", RUN, way, str(photos), str(store), arch]
    time.sleep(1)
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return float(json.loads(done.stdout.splitlines()[-1]))
