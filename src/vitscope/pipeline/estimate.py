"""What a plan will cost, before it runs: operations from the shape of each network, speed from a short pass.

Speed is measured, not assumed: a few images through the middle one of the networks that have work to do, untrained and
in memory alone; the others, and what is computed beside the networks, go by their multiply-adds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from vitscope.core.analysis import BATCH, Drive, Stream
from vitscope.core.device import choose_device
from vitscope.data.dataset import EXAMPLES
from vitscope.features.pooling import DTYPES
from vitscope.models.registry import build
from vitscope.models.shape import ModelShape
from vitscope.models.spec import LoadedSpec, Spec
from vitscope.pipeline.plan import Plan, WatchedPass
from vitscope.pipeline.store import Store

WATCHING = 1.35  # decoding and statistics on top of the forward pass
PROCESS = 700 << 20  # bytes of Python with its libraries
PER_HEAD = 17_000_000 / 144  # bytes of sums per head and shard of attention, at 196 patches: the canvases of its groups


def _patches(shape: ModelShape, each: int | None) -> int:
    return shape.layout.spatial if each is None else min(each, shape.layout.spatial)


# What some statistics keep of each image, in bytes, by their settings.
PER_IMAGE: dict[str, Callable[[ModelShape, dict[str, Any]], float]] = {
    "tokens": lambda s, how: s.depth * (s.layout.tokens * DTYPES[how["dtype"]].itemsize + 28),
    "patch_sample": lambda s, how: _patches(s, how["each"]) * s.depth * s.width * 4,
    "example_tokens": lambda s, _: s.layout.spatial * (s.depth * s.width * 2 + 3 * s.patch[0] * s.patch[1]),
    "labelled_patches": lambda s, how: _patches(s, how["each"]) * (s.depth * s.width * 2 + 4 * how["classes"] + 16),
    "discovery": lambda s, _: 16 * s.depth,
}


@dataclass(frozen=True)
class Cost:
    """Of one model on one dataset. Seconds are a guess within a factor of two or so."""

    model: str
    dataset: str
    analyses: tuple[str, ...]
    images: int
    jobs: int
    seconds: float
    disk: float


@dataclass(frozen=True)
class Costs:
    rows: tuple[Cost, ...]
    jobs: int
    memory: float

    @property
    def seconds(self) -> float:
        return sum(row.seconds for row in self.rows)

    @property
    def disk(self) -> float:
        return sum(row.disk for row in self.rows) + (20 << 20)  # the page and its figures


def estimate(plan: Plan, store: Store | None) -> Costs:
    """Cost of everything that is not done; what is done costs nothing."""
    jobs = plan.jobs(store)
    busy = sorted({job.model for job in jobs})
    speed = operations_per_second([plan.models[m] for m in busy], plan.device) if busy else 1.0
    rows, memory = [], 0.0
    for m, spec in enumerate(plan.models):
        for d, dataset in enumerate(plan.datasets):
            tasks = [n for n, task in enumerate(plan.tasks) if (task.model, task.dataset) == (m, d)]
            mine = [j for j in jobs if j.kind == "map" and (j.model, plan.passes[j.place].dataset) == (m, d)]
            if not tasks:
                continue
            forwards = sum(j.images * _tiles(plan.passes[j.place]) for j in mine)
            beside = [plan.tasks[j.place] for j in jobs if j.kind == "reduce" and j.place in tasks]
            work = sum(task.analysis.operations(dataset, spec.shape) for task in beside)
            seconds = (WATCHING * forwards * operations(spec) + work) / speed
            disk = sum(_bytes(plan.passes[p], spec) for p in {j.place for j in mine})
            names = tuple(dict.fromkeys(plan.tasks[n].analysis.name for n in tasks))
            images = sum(j.images for j in mine) or dataset.count
            rows.append(Cost(spec.title, dataset.title, names, images, len(mine) + len(beside), seconds, disk))
        if m in busy:
            memory = max(memory, _memory(spec))
    return Costs(tuple(rows), len(jobs), memory)


def _tiles(one: WatchedPass) -> int:
    """Forward passes per image: videos, and regions on request, are seen in tiles."""
    return one.what.tiles if isinstance(one.what, Drive) else 1


def _bytes(one: WatchedPass, spec: Spec) -> float:
    """What the states of a pass take on disk."""
    shape, total = spec.shape, 0.0
    if not isinstance(one.what, Stream):
        return max(one.what.disk, 1e4 * len(one.what.shards))
    count, shards = len(one.what.samples), len(one.what.shards)
    for watch in one.watch.values():
        assert watch is not None
        settings = dict(watch.settings)
        if watch.statistic.name == "pooled":
            vectors = sum(shape.layout.tokens if p == "tokens" else 1 for p in settings["poolings"])
            total += count * vectors * shape.depth * shape.width * DTYPES[settings["dtype"]].itemsize
        elif watch.statistic.name == "attention":
            grid = (shape.layout.spatial / 196) * shape.depth * shape.heads
            total += shards * PER_HEAD * grid + count * 14 * 4 * shape.depth * shape.heads
        elif watch.statistic.name == "regions":
            regions = sum(len(sample.annotations) for sample in one.what.samples)
            total += regions * shape.depth * shape.width * 4
        elif watch.statistic.name in PER_IMAGE:
            images = min(count, settings.get("images", EXAMPLES if watch.statistic.name == "example_tokens" else count))
            total += images * PER_IMAGE[watch.statistic.name](shape, settings)
        else:
            total += count * shape.depth * 300 + shards * 1e5
    return total


def _memory(spec: Spec) -> float:
    """Parameters, and the activations and attention of a batch."""
    shape = spec.shape
    attention = 3 * 4 * shape.heads * shape.layout.tokens**2 * BATCH
    tokens = 4 * 4 * shape.layout.tokens * shape.width * shape.depth * BATCH
    return PROCESS + 4 * shape.parameters + attention + tokens


def operations(spec: Spec) -> float:
    """Multiply-adds of a forward pass of one image: every weight at every token, and tokens with each other."""
    shape, tokens = spec.shape, spec.shape.layout.tokens
    return float(shape.parameters) * tokens + 2.0 * shape.depth * tokens**2 * shape.width


def operations_per_second(specs: Sequence[Spec], device: str) -> float:
    """Multiply-adds per second of the middle one of some networks, untrained, on this machine."""
    middle = sorted(specs, key=operations)[len(specs) // 2]
    return operations(middle) * images_per_second(middle, device)


def images_per_second(spec: Spec, device: str, *, at_once: int = 4, seconds: float = 0.5) -> float:
    """How fast a network of this shape runs here, untrained."""
    where = choose_device(device)
    if isinstance(spec, LoadedSpec):
        module = spec.load().module
    else:
        module, _ = build(spec.architecture, spec.options, spec.size)
    module = module.eval().to(where)
    x = torch.zeros(at_once, 3, *spec.preprocessing.size, device=where)
    with torch.no_grad():
        module.forward_features(x).sum().item()  # type: ignore[operator]
        start, rounds = time.perf_counter(), 0
        while time.perf_counter() - start < seconds or not rounds:
            module.forward_features(x).sum().item()  # type: ignore[operator]
            rounds += 1
    return at_once * rounds / (time.perf_counter() - start)
