"""What several measures need of one block's attention, computed once and shared.

On a CPU the heavy elementwise steps go image by image, so that what they touch stays in the cache: that is what
keeps the whole attention study close to the speed of a bare forward pass.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property

import torch
from torch import Tensor

from vitscope.core.statistic import Statistic
from vitscope.models.layout import TokenLayout

TINY = 1e-30  # log(TINY) * 0 is 0, log(0) * 0 is not a number


class AttentionView:
    """One block's attention probs (B, H, T, T), post-softmax, and what follows from it. Nothing is written into it."""

    def __init__(self, probs: Tensor, layout: TokenLayout) -> None:
        self.probs = probs if probs.dtype == torch.float32 else probs.float()
        self.layout = layout

    def chunks(self) -> Iterator[tuple[slice, Tensor]]:
        """Slices of the batch and their attention (b, H, T, T): single images on a CPU, all at once elsewhere."""
        size = 1 if self.probs.device.type == "cpu" else len(self.probs)
        for start in range(0, len(self.probs), size):
            where = slice(start, start + size)
            yield where, self.probs[where]

    def rows(self, functional: Tensor) -> Tensor:
        """sum_d probs[s, d] * functional[s, d] for every source. functional: (T, T) -> (B, H, T)."""
        return torch.cat([torch.linalg.vecdot(probs, functional) for _, probs in self.chunks()])

    @cached_property
    def spatial(self) -> Tensor:
        """Attention between spatial tokens, (B, H, N, N): a view, rows sum to the spatial mass."""
        prefix = self.layout.prefix
        return self.probs[:, :, prefix:, prefix:]

    @cached_property
    def spatial_mass(self) -> Tensor:
        """Share of each spatial source's attention that stays on spatial tokens, (B, H, N)."""
        prefix = self.layout.prefix
        if prefix == 0:
            return self.probs.sum(-1)
        if prefix == 1:  # cheaper and as exact: the rest of a distribution
            total = self.probs[:, :, prefix:].sum(-1)
            return (total - self.probs[:, :, prefix:, 0]).clamp_min(0)
        return self.spatial.sum(-1)

    @cached_property
    def renormaliser(self) -> Tensor:
        """1 / spatial mass, (B, H, N); 0 for a source that attends to prefix tokens only (its row stays 0)."""
        return torch.where(self.spatial_mass > 0, 1 / self.spatial_mass, torch.zeros(()))

    @cached_property
    def column_means(self) -> tuple[Tensor, Tensor, Tensor]:
        """Mean attention on each token over (all sources, spatial sources, spatial sources renormalised).

        Each (B, H, T); the last one is 0 on prefix tokens.
        """
        batch, heads, tokens, _ = self.probs.shape
        prefix, spatial = self.layout.prefix, self.layout.spatial
        weights = self.probs.new_zeros(batch, heads, 3, tokens)
        weights[:, :, 0] = 1 / tokens
        weights[:, :, 1, prefix:] = 1 / spatial
        weights[:, :, 2, prefix:] = self.renormaliser / spatial
        means = torch.matmul(weights, self.probs)  # (B, H, 3, T)
        pure = means[:, :, 2].clone()
        pure[..., :prefix] = 0
        return means[:, :, 0], means[:, :, 1], pure

    @cached_property
    def head_mean(self) -> Tensor:
        """Mean over heads, (B, T, T)."""
        return self.probs.mean(1)

    @cached_property
    def cls_map(self) -> Tensor | None:
        """Attention of CLS on the spatial tokens, (B, H, N), or None for a model without CLS."""
        return self.probs[:, :, 0, self.layout.prefix :] if self.layout.has_cls else None


class AttentionStatistic(Statistic):
    """A statistic of attention. `see` gets the shared view; per-image values are collected layer by layer."""

    wants = frozenset({"attention"})

    def __init__(self, layout: TokenLayout, depth: int) -> None:
        super().__init__()
        self.layout, self.depth = layout, depth
        self._pending: dict[str, list[Tensor]] = {}

    def attention(self, layer: int, probs: Tensor) -> None:
        self.see(layer, AttentionView(probs, self.layout))

    @abstractmethod
    def see(self, layer: int, view: AttentionView) -> None:
        """One block's attention; blocks come in order."""

    def note(self, name: str, value: Tensor) -> None:
        """A value per image at the current layer, (B, ...): becomes row `name` of shape (B, L, ...)."""
        self._pending.setdefault(name, []).append(value)

    def end(self) -> None:
        for name, layers in self._pending.items():
            self.put(name, torch.stack(layers, dim=1).float())
        self._pending.clear()
        super().end()
