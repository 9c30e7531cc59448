"""What a plan will cost, before it runs: operations from the shape of each network, speed from a short product."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from vitscope.device import choose_device
from vitscope.models.identity import shape_of_model
from vitscope.study.folder import StudyFolder
from vitscope.study.plan import Job, Plan

OVERHEAD = 1.4  # decoding, statistics and scores on top of the forward passes
MEASURED_FOR = 0.2  # seconds
BATCH = 32  # pictures traced at a time
PER_HEAD = 3000  # bytes of results per layer and head


@dataclass(frozen=True)
class Estimate:
    """Of one job. Seconds are a guess within a factor of two or so."""

    job: Job
    done: bool
    seconds: float
    memory: int  # bytes: parameters and the activations of a batch
    disk: int  # bytes


def estimate(plan: Plan, folder: StudyFolder | None) -> list[Estimate]:
    """Cost of every job; a job that is done costs nothing."""
    rate = operations_per_second(plan.study.device)
    shapes = {job.title: shape_of_model(job.identity, job.model.name) for job in plan.jobs}
    found = []
    for job in plan.jobs:
        shape = shapes[job.title]
        done = folder is not None and folder.is_done(job.digest)
        operations = 2 * shape.parameters * shape.tokens * job.count
        attention = 3 * 4 * shape.heads * shape.tokens**2 * BATCH
        found.append(
            Estimate(
                job,
                done,
                seconds=0.0 if done else OVERHEAD * operations / rate,
                memory=4 * shape.parameters + attention,
                disk=PER_HEAD * shape.depth * shape.heads,
            )
        )
    return found


def operations_per_second(device: str) -> float:
    """How fast this machine multiplies matrices of a ViT's size."""
    where = choose_device(device)
    a, b = torch.randn(1024, 768, device=where), torch.randn(768, 768, device=where)
    (a @ b).sum().item()
    start, rounds = time.perf_counter(), 0
    while time.perf_counter() - start < MEASURED_FOR:
        (a @ b).sum().item()
        rounds += 1
    return 2 * 1024 * 768 * 768 * rounds / (time.perf_counter() - start)
