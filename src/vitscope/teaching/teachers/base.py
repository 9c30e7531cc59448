"""What all teachers have in common."""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import torch
from torch import Tensor, nn

from vitscope.teaching.schedule import Progress
from vitscope.teaching.vit import ViT

Logs = dict[str, Tensor]
Module = TypeVar("Module", bound=nn.Module)


@dataclass
class Lesson:
    """One batch of training data.

    images: uint8 or float in [0, 1], (B, 3, H, W), un-normalised; labels: int64 (B,), where there are any;
    captions: what can be said about each image, one or several strings, where there are any.
    """

    images: Tensor
    labels: Tensor | None = None
    captions: list[tuple[str, ...]] | None = None

    def part(self, which: slice) -> Lesson:
        return Lesson(
            self.images[which],
            None if self.labels is None else self.labels[which],
            None if self.captions is None else self.captions[which],
        )

    def to(self, device: torch.device) -> Lesson:
        return Lesson(
            self.images.to(device, non_blocking=True),
            None if self.labels is None else self.labels.to(device, non_blocking=True),
            self.captions,
        )


class Teacher(nn.Module):
    """A way of teaching: holds the network(s), turns a lesson into a loss.

    `encoder` is the network that the teaching is for: what a model card ships.
    """

    key: ClassVar[str]  # of vitscope.core.teachings
    needs: ClassVar[str | None] = None  # "labels" or "captions"
    smallest_batch: ClassVar[int] = 1
    progress = Progress(step=0, warmth=1.0, cooling=0.0)  # of this step; the loop says it before it asks for the loss

    @property
    @abstractmethod
    def encoder(self) -> ViT:
        """The taught network."""

    @abstractmethod
    def loss(self, lesson: Lesson) -> tuple[Tensor, Logs]:
        """The scalar to minimise and detached scalars worth watching."""

    def after_step(self, progress: Progress) -> None:
        """Called after each step of the optimiser: momentum networks, centres, bounds."""

    def seen(self, share: float) -> float:
        """The share of patches that a network sees now: `share` of them until it is half cooled, then all."""
        return 1.0 if self.progress.cooling >= 0.5 else share

    def edges(self) -> list[nn.Module]:
        """Layers whose matrices are not hidden: classifiers and embeddings, which AdamW teaches instead of Muon."""
        return []

    def forward(self, lesson: Lesson) -> tuple[Tensor, Logs]:
        return self.loss(lesson)


# -- momentum networks: a copy that follows as an exponential moving average and never sees a gradient ------------


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
