"""Several processes under torchrun: what they are, and the few things that they tell each other.

Without torchrun every function here does nothing and costs nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.nn.functional import all_gather as gather_with_gradient
from torch.distributed.nn.functional import all_reduce as reduce_with_gradient


def world() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    return dist.get_rank() if world() > 1 else 0


@contextmanager
def process_group(device: torch.device) -> Iterator[torch.device]:
    """Joins the group that torchrun announces in the environment; gives the device of this process."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or world() > 1:
        yield device
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield device
    finally:
        dist.destroy_process_group()


def barrier() -> None:
    if world() > 1:
        dist.barrier()


def mean_over_processes(value: Tensor) -> Tensor:
    """The mean of a detached tensor over all processes."""
    if world() == 1:
        return value
    value = value.detach().clone()
    dist.all_reduce(value)
    return value / world()


def joined(rows: Tensor) -> Tensor:
    """(B, ...) of every process -> (world * B, ...), in the order of ranks; gradients flow to all of them."""
    return rows if world() == 1 else torch.cat(gather_with_gradient(rows))


class JoinedBatchNorm(nn.BatchNorm1d):
    """Batch normalisation of (B, D) with the statistics of the batch of all processes, on any device."""

    def forward(self, rows: Tensor) -> Tensor:
        if not self.training or world() == 1:
            return super().forward(rows)
        moments = torch.stack([rows.float().mean(0), rows.float().square().mean(0)])
        mean, square = reduce_with_gradient(moments) / world()
        variance = square - mean.square()
        with torch.no_grad():
            assert self.running_mean is not None
            assert self.running_var is not None
            assert self.momentum is not None
            count = len(rows) * world()
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(variance * count / max(1, count - 1), self.momentum)
        rows = (rows - mean) * torch.rsqrt(variance + self.eps)
        return rows if self.weight is None else rows * self.weight + self.bias
