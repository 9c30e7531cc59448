"""Speed and memory of the attention study against the bare fused forward pass."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import torch

from benchmarks.timing import Row, architecture, interleaved
from vitscope.attention.analysis import AllAttention
from vitscope.core.analysis import BATCH
from vitscope.data.batches import Batch
from vitscope.models import Backbone, load_model


def images(backbone: Backbone, count: int, first: int = 0) -> Batch:
    generator = torch.Generator().manual_seed(first)
    size = (count, 3, *backbone.preprocessing.size)
    images = torch.randint(0, 256, size, generator=generator, dtype=torch.uint8)
    return Batch(images, torch.arange(first, first + count), [str(i) for i in range(count)], None, None)


def attention_rows(quick: bool) -> Iterator[Row]:
    """ViT-B/16 at 224: all attention statistics together, and a trace that nobody watches."""
    backbone = load_model(architecture(quick))
    batch = images(backbone, BATCH)
    study = AllAttention.of(backbone.shape)
    seen = iter(range(0, 1 << 30, len(batch)))

    def bare() -> None:
        with torch.no_grad():
            backbone.module.forward_features(backbone.preprocessing.normalise(batch.images))  # type: ignore[operator]

    def studied() -> None:
        batch.indices = torch.arange(len(batch)) + next(seen)
        study.begin(batch)
        backbone.trace(batch.images, [study])
        study.end()

    candidates = {"bare": bare, "unwatched": lambda: backbone.trace(batch.images), "studied": studied}
    threads = torch.get_num_threads()
    for count, clock, unit in ((threads, time.perf_counter, "wall"), (1, time.process_time, "CPU")):
        torch.set_num_threads(count)
        best = interleaved(candidates, rounds=1 if quick else 4, clock=clock)
        note = f"{unit} time, {count} thread(s), bare {best['bare'] / len(batch):.3f} s per image"
        yield Row("trace without observers / bare forward", best["unwatched"] / best["bare"], 1.02, note=note)
        yield Row("all attention statistics / bare forward", best["studied"] / best["bare"], 1.15, note=note)
    torch.set_num_threads(threads)


MEMORY = """
import torch
from benchmarks.attention import images
from benchmarks.timing import peak_memory_mb
from vitscope.attention.analysis import AllAttention
from vitscope.models import load_model
from vitscope.core.analysis import BATCH
backbone = load_model("random:{arch}", size={size})
study = AllAttention.of(backbone.shape) if {watched} else None
step = BATCH
for first in range(0, {count}, step):
    batch = images(backbone, min(step, {count} - first), first)
    if study: study.begin(batch)
    backbone.trace(batch.images, [study] if study else [])
    if study: study.end()
if study: study.kinds()
print(peak_memory_mb())
"""


def measured_peak(arch: str, size: int, count: int, *, watched: bool = True) -> float:
    """Peak memory in MB of a fresh process that studies `count` images."""
    code = MEMORY.format(arch=arch, size=size, count=count, watched=watched)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(run.stdout)


def memory_rows(quick: bool) -> Iterator[Row]:
    """Flat in the number of images; bounded for many tokens. Small networks keep the many-images case short."""
    most = 200 if quick else 1000
    few, many = (measured_peak("vit_tiny_patch16_224", 64, count) for count in (100, most))
    yield Row(f"memory, {most:,} images / 100 images", many / few, 1.1, note=f"{few:.0f} MB, {many:.0f} MB")
    if quick:
        return
    bare = measured_peak("vit_base_patch16_224", 224, 16, watched=False)
    base = measured_peak("vit_base_patch16_224", 224, 16)
    yield Row("memory of the study above a bare forward", base - bare, 500, unit="MB", note="ViT-B/16")
    yield Row("memory, ViT-B/8 (785 tokens)", measured_peak("vit_base_patch8_224", 224, 2), 4096, unit="MB")
    yield Row("memory, ViT-B/16 at 448 px", measured_peak("vit_base_patch16_224", 448, 2), 4096, unit="MB")


def rows(quick: bool = False) -> Iterator[Row]:
    yield from attention_rows(quick)
    yield from memory_rows(quick)
