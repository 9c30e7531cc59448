"""Arrays as they travel to the page: safetensors, which a browser reads without a library."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from safetensors.torch import save
from torch import Tensor

from vitscope.models.kept import Kept

MEDIA = "application/octet-stream"
LARGEST_HALF = 60_000.0  # below float16's largest number


def packed(arrays: Mapping[str, Tensor]) -> bytes:
    return save({name: array.contiguous() for name, array in arrays.items()})


def packed_trace(kept: Kept) -> bytes:
    """attention float16 (L, H, T, T), means of heads (L, T, T); tokens float16 (L, T, D), times scale (L,).

    Some networks have single activations beyond what half precision holds: the scale is 1 everywhere else.
    """
    scale = (kept.tokens.abs().amax((1, 2)) / LARGEST_HALF).clamp_min(1.0)  # (L,)
    return packed(
        {
            "attention": kept.attention.half(),
            "means": kept.attention.mean(1).half(),
            "tokens": (kept.tokens / scale[:, None, None]).half(),
            "scale": scale,
        }
    )


def packed_size(depth: int, heads: int, tokens: int, width: int) -> int:
    """Bytes of a packed trace, known before it is made."""
    return 2 * depth * ((heads + 1) * tokens * tokens + tokens * width)


def unit(tokens: Tensor) -> Tensor:
    """Tokens (..., D) scaled to length 1, float32; a zero token stays zero."""
    return torch.nn.functional.normalize(tokens.float(), dim=-1)
