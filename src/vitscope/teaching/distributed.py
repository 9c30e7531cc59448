"""Several processes under torchrun: what they are, and the few things that they tell each other.

Without torchrun every function here does nothing and costs nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


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


def anybody(flag: bool) -> bool:
    """Whether the flag is set in any process: all of them must decide alike, or they wait for each other for ever."""
    return flag if world() == 1 else bool(mean_over_processes(torch.tensor(float(flag), device=_talking())) > 0)


def _talking() -> torch.device:
    """Where tensors must be for processes to exchange them."""
    return torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else torch.device("cpu")


def mean_over_processes(value: Tensor) -> Tensor:
    """The mean of a detached tensor over all processes."""
    if world() == 1:
        return value
    value = value.detach().clone()
    dist.all_reduce(value)
    return value / world()


class _Sum(torch.autograd.Function):
    """Sum over processes; everybody's loss depends on everybody's value, so gradients are summed too."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        value = value.clone()
        dist.all_reduce(value)
        return value

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        gradient = gradient.clone()
        dist.all_reduce(gradient)
        return gradient


def summed(value: Tensor) -> Tensor:
    """The sum over all processes; gradients flow to all of them."""
    return value if world() == 1 else _Sum.apply(value)


def joined(rows: Tensor) -> Tensor:
    """(B, ...) of every process -> (world * B, ...), in the order of ranks; gradients flow to all of them."""
    if world() == 1:
        return rows
    canvas = rows.new_zeros(world(), *rows.shape)
    canvas[rank()] = rows
    return summed(canvas).flatten(0, 1)


class JoinedBatchNorm(nn.BatchNorm1d):
    """Batch normalisation of (B, D) with the statistics of the batch of all processes, on any device."""

    def forward(self, rows: Tensor) -> Tensor:
        if not self.training or world() == 1:
            return super().forward(rows)
        moments = torch.stack([rows.float().mean(0), rows.float().square().mean(0)])
        mean, square = summed(moments) / world()
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
