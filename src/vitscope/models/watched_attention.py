"""Attention that shows its probabilities: what the fused kernel computes, a few images at a time.

At a batch of 32 the probabilities of a block of ViT-B/16 take 60 MB. Made all at once, they leave the cache before
anybody has looked at them, and everyone who does fetches them again. Here a few images' are made, looked at and
multiplied with the values before the next ones': that costs hardly more than the fused kernel, which does the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from vitscope.core.errors import UnsupportedModel

CACHE = 8 << 20  # bytes of probabilities made at a time on a CPU
EVEN = 4  # images at a time are a multiple of this where it can be: aligned maps are folded by so many

Sweep = Callable[[int, Tensor, Tensor | None], None]  # layer, probs and scores of the next images
Show = Callable[[int, Tensor], None]  # layer, probs of the batch


def images_at_a_time(images: int, heads: int, tokens: int, device: torch.device) -> int:
    """How many images' attention is made at a time: as fits the cache of a CPU, all of them elsewhere.

    It follows from the network alone, so that every engine gets the same bytes.

    >>> images_at_a_time(32, 12, 197, torch.device("cpu"))
    4
    """
    if device.type != "cpu":
        return max(images, 1)
    fit = CACHE // (4 * heads * tokens * tokens)
    return max(fit - fit % EVEN if fit > EVEN else fit, 1)


def parts_of(probs: Tensor) -> Iterator[slice]:
    """The images of probs (B, H, T, T) that belong together in the cache."""
    images, heads, tokens, _ = probs.shape
    step = images_at_a_time(images, heads, tokens, probs.device)
    return (slice(start, min(start + step, images)) for start in range(0, images, step))


class WatchedAttention(TorchFunctionMode):
    """While it is on, `scaled_dot_product_attention` shows what it computes.

    layer: of the block that runs, or None outside of all blocks: attention is left alone there. reuse: whether all
    layers may share the memory of their probabilities, because nobody keeps it.
    """

    def __init__(self, sweep: Sweep, show: Show, *, reuse: bool) -> None:
        super().__init__()
        self.sweep, self.show, self.reuse = sweep, show, reuse
        self.layer: int | None = None
        self._room: Tensor | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.scaled_dot_product_attention and self.layer is not None:
            return self._attend(self.layer, *args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))

    def _attend(
        self,
        layer: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """query, key, value: (B, H, T, d) -> (B, H, T, d)."""
        if dropout_p or is_causal or enable_gqa or query.ndim != 4:
            raise UnsupportedModel(f"block {layer + 1} drops, masks or groups its attention: it cannot be observed")
        scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
        batch, heads, tokens, width = query.shape
        probs = self._empty((batch, heads, tokens, key.shape[-2]), query.device)
        mixed = value.new_empty(batch, tokens, heads, width).transpose(1, 2)  # as the projection wants it
        for images in parts_of(probs):
            scores = ((query[images] * scale) @ key[images].mT).float()
            if attn_mask is None:
                scores -= scores.amax(-1, keepdim=True)
            elif attn_mask.dtype == torch.bool:
                scores.masked_fill_(~_of(attn_mask, images, batch), -torch.inf)
            else:
                scores += _of(attn_mask, images, batch)
            part = probs[images]
            torch.softmax(scores, -1, out=part)
            self.sweep(layer, part.detach(), scores.detach() if attn_mask is None else None)
            mixed[images] = part.to(value.dtype) @ value[images]
        self.show(layer, probs.detach())
        return mixed

    def _empty(self, shape: tuple[int, ...], device: torch.device) -> Tensor:
        if self._room is None or self._room.shape != shape or not self.reuse:
            self._room = torch.empty(shape, device=device)
        return self._room


def _of(mask: Tensor, images: slice, batch: int) -> Tensor:
    """The part of a mask that belongs to some images, if it has one for each."""
    return mask[images] if mask.ndim == 4 and len(mask) == batch > 1 else mask
