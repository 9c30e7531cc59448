"""What a plan will cost, before it runs: operations from the shape of each network, speed from a short pass of its own.

Time is measured, not assumed: a few images through each network that has work to do, untrained and in memory alone.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from vitscope.core.analysis import BATCH, Drive, Stream
from vitscope.core.device import choose_device
from vitscope.features.pooling import DTYPES
from vitscope.models.registry import build
from vitscope.models.spec import LoadedSpec, Spec
from vitscope.pipeline.plan import Plan, WatchedPass
from vitscope.pipeline.store import Store

WATCHING = 1.35  # decoding and statistics on top of the forward pass
DENSE_TILES = 8  # forward passes per frame of a video: DAVIS's
PROCESS = 700 << 20  # bytes of Python with its libraries
PER_HEAD = 17_000_000 / 144  # bytes of sums per head and shard of attention, at 196 patches: the canvases of its groups


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
    speed = {m: images_per_second(plan.models[m], plan.device) for m in {j.model for j in jobs if j.kind == "map"}}
    rows, memory = [], 0.0
    for m, spec in enumerate(plan.models):
        for d, dataset in enumerate(plan.datasets):
            tasks = [task for task in plan.tasks if (task.model, task.dataset) == (m, d)]
            mine = [j for j in jobs if j.kind == "map" and (j.model, plan.passes[j.place].dataset) == (m, d)]
            if not tasks:
                continue
            forwards = sum(j.images * _forwards(plan.passes[j.place]) for j in mine)
            seconds = WATCHING * forwards / speed[m] if mine else 0.0
            disk = sum(_bytes(plan.passes[p], spec) for p in {j.place for j in mine})
            names = tuple(dict.fromkeys(task.analysis.name for task in tasks))
            images = sum(j.images for j in mine) or dataset.count
            rows.append(Cost(spec.title, dataset.title, names, images, len(mine), seconds, disk))
        if any(j.model == m for j in jobs):
            memory = max(memory, _memory(spec))
    return Costs(tuple(rows), len(jobs), memory)


def _forwards(one: WatchedPass) -> int:
    """Forward passes per image: videos are seen in tiles."""
    return (
        DENSE_TILES if isinstance(one.what, Drive) and one.analysis is not None and one.analysis.name == "video" else 1
    )


def _bytes(one: WatchedPass, spec: Spec) -> float:
    """What the states of a pass take on disk."""
    shape, total = spec.shape, 0.0
    if not isinstance(one.what, Stream):
        return 4e6 * len(one.what.shards)
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
        else:
            total += count * shape.depth * 300 + shards * 1e5
    return total


def _memory(spec: Spec) -> float:
    """Parameters, and the activations and attention of a batch."""
    shape = spec.shape
    attention = 3 * 4 * shape.heads * shape.layout.tokens**2 * BATCH
    tokens = 4 * 4 * shape.layout.tokens * shape.width * shape.depth * BATCH
    return PROCESS + 4 * shape.parameters + attention + tokens


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
