"""A Vision Transformer under examination: the network, its token layout, preprocessing and provenance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from vitscope.device import autocast
from vitscope.digest import digest_of_tensors
from vitscope.errors import UnsupportedModel
from vitscope.models.layout import TokenLayout
from vitscope.models.preprocessing import Preprocessing
from vitscope.models.trace import Observer, attention_module, check_observable, trace


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
    weights_digest: str = ""
    notes: tuple[str, ...] = ()  # what a reader of its results must know
    pictures_traced: int = 0  # forward passes so far: what proves that nothing was computed twice

    def __post_init__(self) -> None:
        check_observable(self.module, self.name)
        self.title = self.title or self.name
        self.module.eval().requires_grad_(False)
        if not self.weights_digest:
            self.weights_digest = digest_of_tensors(self.module.state_dict())
        self.module.to(self.device)
        self.layout = layout_of(self.module, self.name, self.preprocessing.size)
        self.depth = len(self.module.blocks)  # type: ignore[arg-type]
        self.heads = int(attention_module(self.module.blocks[0]).num_heads)  # type: ignore[arg-type,index]
        self.width = int(self.module.embed_dim)  # type: ignore[arg-type]
        height, width = self.preprocessing.size
        self.patch = (height // self.layout.grid[0], width // self.layout.grid[1])

    def trace(self, images: Tensor, observers: Sequence[Observer] = ()) -> Tensor:
        """One observed forward pass.

        images: (B, 3, h, w), uint8 or float in [0, 1], at this model's input size and not yet normalised.
        Returns the final tokens (B, T, D).
        """
        if tuple(images.shape[-2:]) != self.preprocessing.size:
            raise ValueError(f"'{self.name}' takes {self.preprocessing.size} pictures, not {tuple(images.shape[-2:])}")
        x = self.preprocessing.normalise(images.to(self.device, non_blocking=True))
        self.pictures_traced += len(images)
        with autocast(self.device):
            return trace(self.module, x, observers, layout=self.layout, name=self.name)


def layout_of(module: nn.Module, name: str, size: tuple[int, int]) -> TokenLayout:
    """Read the token layout off a timm module; never off its name."""
    embed = getattr(module, "patch_embed", None)
    patch = getattr(embed, "patch_size", None)
    if patch is None:
        embed = getattr(module, "embeds", None)  # NaFlex
        patch = getattr(embed, "patch_size", None)
    if patch is None:
        raise UnsupportedModel(f"'{name}' has no patch embedding: it is not a plain Vision Transformer")
    patch = (patch, patch) if isinstance(patch, int) else tuple(patch)
    prefix = int(getattr(module, "num_prefix_tokens", 0))
    cls = getattr(module, "cls_token", None)
    if cls is None:
        cls = getattr(embed, "cls_token", None)
    grid = (size[0] // patch[0], size[1] // patch[1])
    return TokenLayout(grid=grid, prefix=prefix, has_cls=cls is not None and prefix > 0)
