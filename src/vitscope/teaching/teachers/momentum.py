"""Momentum networks: a copy that follows as an exponential moving average and never sees a gradient."""

from __future__ import annotations

import copy
from typing import TypeVar

import torch
from torch import nn

Module = TypeVar("Module", bound=nn.Module)


def follower(module: Module) -> Module:
    """A copy without gradients."""
    return copy.deepcopy(module).requires_grad_(False)


@torch.no_grad()
def follow(target: nn.Module, source: nn.Module, momentum: float) -> None:
    """target <- momentum * target + (1 - momentum) * source, parameters; buffers are copied."""
    followers, leaders = [p.data for p in target.parameters()], [p.data for p in source.parameters()]
    torch._foreach_lerp_(followers, leaders, 1 - momentum)
    for mine, its in zip(target.buffers(), source.buffers(), strict=True):
        mine.copy_(its)
