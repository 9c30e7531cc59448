"""What all teachers have in common."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn

from vitscope.teaching.schedule import Progress

Logs = dict[str, Tensor]


@dataclass
class Lesson:
    """One batch of training data.

    images: uint8 or float in [0, 1], (B, 3, H, W), un-normalised; labels: int64 (B,), where there are any;
    captions: what can be said about each image, one or several strings, where there are any.
    """

    images: Tensor
    labels: Tensor | None = None
    captions: list[tuple[str, ...]] | None = None


class Teacher(nn.Module):
    """A way of teaching: holds the network(s), turns a lesson into a loss.

    `encoder` is the network that the teaching is for: what a model card ships.
    """

    key: ClassVar[str]  # of vitscope.teachings
    needs: ClassVar[str | None] = None  # "labels" or "captions"
    smallest_batch: ClassVar[int] = 1

    @property
    @abstractmethod
    def encoder(self) -> VisionTransformer:
        """The taught network."""

    @abstractmethod
    def loss(self, lesson: Lesson) -> tuple[Tensor, Logs]:
        """The scalar to minimise and detached scalars worth watching."""

    def after_step(self, progress: Progress) -> None:
        """Called after each step of the optimiser: momentum networks, centres, bounds."""

    def edges(self) -> list[nn.Module]:
        """Layers whose matrices are not hidden: classifiers and embeddings, which AdamW teaches instead of Muon."""
        return []

    def forward(self, lesson: Lesson) -> tuple[Tensor, Logs]:
        return self.loss(lesson)
