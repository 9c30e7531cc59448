"""A Vision Transformer under examination: the network, its token layout, preprocessing and provenance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from vitscope.core.device import autocast
from vitscope.core.digest import digest_of_tensors
from vitscope.core.observer import Observer
from vitscope.data.preprocessing import Preprocessing
from vitscope.models.shape import ModelShape, layout_of, shape_of
from vitscope.models.trace import attention_module, check_observable, trace


@dataclass
class Backbone:
    """What every measure works on. Made by `vitscope.models.load`."""

    name: str
    module: nn.Module
    preprocessing: Preprocessing
    teaching: str = "other"
    title: str = ""
    origin: str = ""  # where the weights came from, for people
    provenance: dict[str, Any] = field(default_factory=dict)
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    notes: tuple[str, ...] = ()  # what a reader of its results must know
    images_traced: int = 0  # so far: what proves that nothing was computed twice

    def __post_init__(self) -> None:
        check_observable(self.module, self.name)
        self.title = self.title or self.name
        self.module.eval().requires_grad_(False)
        self.module.to(self.device)
        self.layout = layout_of(self.module, self.name, self.preprocessing.size)

    @cached_property
    def weights_digest(self) -> str:
        """Digest of the parameters as they are in memory."""
        return digest_of_tensors(self.module.state_dict())

    @cached_property
    def shape(self) -> ModelShape:
        return shape_of(self.module, self.name, self.preprocessing.size)

    @property
    def depth(self) -> int:
        return len(self.module.blocks)  # type: ignore[arg-type]

    @property
    def heads(self) -> int:
        return int(attention_module(self.module.blocks[0]).num_heads)  # type: ignore[arg-type,index]

    @property
    def width(self) -> int:
        return int(self.module.embed_dim)  # type: ignore[arg-type]

    @property
    def patch(self) -> tuple[int, int]:
        """(height, width) in pixels."""
        (height, width), (h, w) = self.preprocessing.size, self.layout.grid
        return height // h, width // w

    def trace(self, images: Tensor, observers: Sequence[Observer] = ()) -> Tensor:
        """One observed forward pass.

        images: (B, 3, h, w), uint8 or float in [0, 1], at this model's input size and not yet normalised.
        Returns the final tokens (B, T, D).
        """
        if tuple(images.shape[-2:]) != self.preprocessing.size:
            raise ValueError(f"'{self.name}' takes {self.preprocessing.size} images, not {tuple(images.shape[-2:])}")
        x = self.preprocessing.normalise(images.to(self.device, non_blocking=True))
        self.images_traced += len(images)
        with autocast(self.device):
            return trace(self.module, x, observers, layout=self.layout, name=self.name)
