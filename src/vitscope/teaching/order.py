"""The order in which images are seen: a function of the seed and the position, so that nothing must be remembered."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import torch
from torch import Tensor

from vitscope.teaching.distributed import rank, world


def step_seed(seed: int, step: int, process: int) -> int:
    """One seed per run, step and process (splitmix64 of a packed number)."""
    z = (seed * 0x9E3779B97F4A7C15 + step * 0xD1B54A32D192ED03 + process * 0x8CB92BA72F3D8DD7) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return (z ^ (z >> 31)) % 2**63


@lru_cache(maxsize=2)
def epoch_order(images: int, seed: int, epoch: int) -> Tensor:
    """A permutation of the images, another one in each epoch."""
    generator = torch.Generator().manual_seed(step_seed(seed, epoch, -1))
    return torch.randperm(images, generator=generator)


def batch_at(step: int, images: int, batch: int, seed: int) -> Tensor:
    """int64 (batch,): the images of a step; epochs follow each other without a gap."""
    positions = torch.arange(step * batch, (step + 1) * batch)
    parts = [
        epoch_order(images, seed, int(epoch))[positions[positions // images == epoch] % images]
        for epoch in (positions // images).unique()
    ]
    return torch.cat(parts)


def batches_from(step: int, images: int, batch: int, seed: int) -> Iterator[list[int]]:
    """This process's share of each batch, from `step` on, without end."""
    while True:
        share = batch // world()
        yield batch_at(step, images, batch, seed)[rank() * share : (rank() + 1) * share].tolist()
        step += 1
