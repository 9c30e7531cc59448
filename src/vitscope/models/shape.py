"""The shape of a network: everything about it that can be known without its weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from vitscope.core.errors import UnsupportedModel
from vitscope.core.observer import Observer
from vitscope.models.layout import TokenLayout
from vitscope.models.trace import attention_module, check_observable, pools_by_attention, trace

SIGNALS = ("norms", "branches", "writes")  # what a network may show beside attention and tokens


@dataclass(frozen=True)
class ModelShape:
    """signals: those that it shows; not all variants have all. "pool" is one where a query of its own sums up."""

    layout: TokenLayout
    depth: int
    heads: int
    width: int
    patch: tuple[int, int]  # (height, width) in pixels
    parameters: int
    signals: tuple[str, ...] = SIGNALS


def shape_of(module: nn.Module, name: str, size: tuple[int, int]) -> ModelShape:
    """Read a network's shape off the module (on any device, the one without memory too); size: of its input."""
    check_observable(module, name)
    layout = layout_of(module, name, size)
    blocks: Any = module.blocks
    return ModelShape(
        layout=layout,
        depth=len(blocks),
        heads=int(attention_module(blocks[0]).num_heads),  # type: ignore[arg-type]
        width=int(module.embed_dim),  # type: ignore[arg-type]
        patch=(size[0] // layout.grid[0], size[1] // layout.grid[1]),
        parameters=sum(p.numel() for p in module.parameters()),
        signals=visible_signals(module, layout, size),
    )


def layout_of(module: nn.Module, name: str, size: tuple[int, int]) -> TokenLayout:
    """Read the token layout off a timm module; never off its name."""
    embed = getattr(module, "patch_embed", None)
    patch = getattr(embed, "patch_size", None)
    if patch is None:
        embed = getattr(module, "embeds", None)  # NaFlex
        patch = getattr(embed, "patch_size", None)
    if patch is None:
        raise UnsupportedModel(f"'{name}' has no patch embedding: it is not a plain Vision Transformer")
    if hasattr(embed, "backbone"):
        raise UnsupportedModel(
            f"'{name}' is a hybrid: its tokens are features of a convolutional network, not patches of the image, so "
            "that what a token sees is not known; choose a plain Vision Transformer"
        )
    patch = (patch, patch) if isinstance(patch, int) else tuple(patch)
    prefix = int(getattr(module, "num_prefix_tokens", 0))
    cls = getattr(module, "cls_token", None)
    if cls is None:
        cls = getattr(embed, "cls_token", None)
    grid = (size[0] // patch[0], size[1] // patch[1])
    return TokenLayout(grid=grid, prefix=prefix, has_cls=cls is not None and prefix > 0)


def visible_signals(module: nn.Module, layout: TokenLayout, size: tuple[int, int]) -> tuple[str, ...]:
    """Which of "norms", "branches" and "writes" a model shows, found by asking: for all, else for each."""
    parameter = next(module.parameters(), torch.empty(0))
    blank = torch.zeros(1, 3, *size, device=parameter.device)

    def shows(*wants: str) -> bool:
        try:
            trace(module, blank, [_Blind(frozenset(wants))], layout=layout)
        except UnsupportedModel:
            return False
        return True

    shown = SIGNALS if shows(*SIGNALS) else tuple(signal for signal in SIGNALS if shows(signal))
    return (*shown, "pool") if pools_by_attention(module) else shown


class _Blind(Observer):
    """An observer that wants signals and looks at none."""

    def __init__(self, wants: frozenset[str]) -> None:
        self.wants = wants
