"""Gram matrices of features: inner products between images, exact enough to be centred."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import torch
from torch import Tensor

from vitscope.core.device import accumulation_dtype
from vitscope.features.hsic import u_centre
from vitscope.models.layout import TokenLayout

CONSTANT = 1e-10  # variance over squared size below which features count as the same for all images
CANCELLATION = 0.02  # variance over squared size below which the plain product would lose digits
CHUNK = 1 << 18  # numbers that are subtracted and multiplied at a time on a CPU: what stays in its cache
_thread = threading.local()


def token_kinds(layout: TokenLayout) -> tuple[str, ...]:
    """Which sets of tokens a model has Grams of: CLS, the spatial tokens (flattened), all tokens (flattened)."""
    return ("cls", "spatial", "all") if layout.has_cls else ("spatial", "all")


def gram(x: Tensor) -> Tensor:
    """Inner products of m images, summed over tokens: (m, t, D) -> (m, m), exact enough to be centred in float64.

    The product is taken in float32 in one go. Where images vary little against the size of their features, that
    would lose the digits that matter: there the differences x_i - x_0 are multiplied (features that are equal then give
    exact zeros), and the offset is put back in float64.
    """
    flat = x.flatten(1).float()
    plain = flat @ flat.T
    varied = 1 - plain.mean() / plain.diagonal().mean() > CANCELLATION
    if x.device.type != "cpu":  # to ask would be to wait for the device: both are computed there
        return torch.where(varied, plain.to(accumulation_dtype(x.device)), offset_gram(x))
    return plain if varied else offset_gram(x)


def offset_gram(x: Tensor) -> Tensor:
    """The same, by way of the differences: in the number format of sums."""
    flat = x.flatten(1).float()
    offset = (flat @ flat[0]).to(accumulation_dtype(x.device))
    return difference_gram(x) + offset.unsqueeze(1) + offset - offset[0]


def difference_gram(x: Tensor) -> Tensor:
    """Inner products of x_i - x_0, summed over tokens: (m, t, D) -> (m, m) in the number format of sums."""
    m, tokens, width = x.shape
    step = max(1, CHUNK // (m * width)) if x.device.type == "cpu" else max(tokens, 1)
    total = torch.zeros(m, m, dtype=accumulation_dtype(x.device), device=x.device)
    room = _room(m * min(step, tokens) * width, x.device)
    for start in range(0, tokens, step):
        part = x[:, start : start + step].flatten(1).float()
        difference = room[: part.numel()].view(part.shape)
        torch.sub(part, part[0], out=difference)
        total += difference @ difference.T
    return total


def _room(size: int, device: torch.device) -> Tensor:
    """Memory for differences, kept between calls: allocating it anew for each layer costs more than filling it."""
    rooms: dict[torch.device, Tensor] = vars(_thread).setdefault("rooms", {})
    if device not in rooms or len(rooms[device]) < size:
        rooms[device] = torch.empty(size, device=device)
    return rooms[device]


def part_grams(x: Tensor, layout: TokenLayout) -> list[Tensor]:
    """Grams of CLS, of the other prefix tokens (each if there are any) and of the spatial tokens, (m, m) each."""
    prefix, cls = layout.prefix, int(layout.has_cls)
    cuts = [(0, cls), (cls, prefix), (prefix, layout.tokens)]
    return [gram(x[:, start:stop]) for start, stop in cuts if stop > start]


def token_grams(layers: Sequence[Sequence[Tensor]], layout: TokenLayout) -> Tensor:
    """Grams per kind of `token_kinds`, from the `part_grams` of some layers: (kinds, layers, m, m) float64."""
    wide = accumulation_dtype(layers[0][0].device)
    parts = torch.stack([torch.stack([gram.to(wide) for gram in part]) for part in zip(*layers, strict=True)])
    parts = parts.to("cpu", torch.float64)  # all in one go
    everything, spatial = parts.sum(0), parts[-1]
    return torch.stack([parts[0], spatial, everything] if layout.has_cls else [spatial, everything])


def centre(grams: Tensor, *, scaled: bool = False) -> Tensor:
    """U-centred Grams, (..., m, m) float64; zeros where features are the same for all images.

    scaled: divided by the range (largest minus smallest entry, diagonal included) of the plain Gram, as published.
    """
    own = grams.diagonal(dim1=-1, dim2=-2)  # (..., m)
    variation = (own - 2 * grams[..., 0] + own[..., :1]).mean(-1)  # mean of |x_i - x_0|^2
    centred = u_centre(grams).masked_fill((variation <= CONSTANT * own[..., 0])[..., None, None], 0)
    if scaled:
        reach = grams.amax((-1, -2)) - grams.amin((-1, -2))
        centred /= reach.clamp_min(torch.finfo(torch.float64).tiny)[..., None, None]
    return centred
