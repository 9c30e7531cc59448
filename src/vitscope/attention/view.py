"""What several measures need of one block's attention, computed once and shared.

On a CPU whatever streams all probabilities goes through a few images at a time (`AttentionPart`), as soon as the
network has made them and while they are in the cache; what is small is then done for the whole batch at once
(`AttentionView`). That is what keeps the whole attention study close to the speed of a bare forward pass.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from weakref import ref

import torch
from torch import Tensor

from vitscope.core.statistic import Statistic
from vitscope.models.layout import TokenLayout
from vitscope.models.watched_attention import parts_of

TINY = 1e-30  # log(TINY) * 0 is 0, log(0) * 0 is not a number


class AttentionPart:
    """Attention probs (b, H, T, T) of a few images of a batch, post-softmax, and what is shared of it.

    scores: the logarithms of probs up to a constant per row, at most 0, or None if nobody has them.
    """

    def __init__(self, probs: Tensor, layout: TokenLayout, scores: Tensor | None = None) -> None:
        self.probs = probs if probs.dtype == torch.float32 else probs.float()
        self.scores, self.layout = scores, layout
        self.spatial_mass = self._spatial_mass()
        self.renormaliser = torch.where(self.spatial_mass > 0, 1 / self.spatial_mass, 0.0)
        self.column_means = self._column_means()

    @classmethod
    def of(cls, probs: Tensor, layout: TokenLayout, scores: Tensor | None = None) -> AttentionPart:
        """The one that another statistic has made of the same tensor and still holds, or a new one."""
        known = getattr(probs, "_part", lambda: None)()
        if known is not None and known.layout == layout:
            return known  # type: ignore[no-any-return]
        part = cls(probs, layout, scores)
        probs._part = ref(part)  # type: ignore[attr-defined]
        return part

    def _spatial_mass(self) -> Tensor:
        """Share of each spatial source's attention that stays on spatial tokens, (b, H, N)."""
        prefix = self.layout.prefix
        if prefix == 0:
            return self.probs.sum(-1)
        if prefix == 1:  # cheaper and as exact: the rest of a distribution
            total = self.probs[:, :, prefix:].sum(-1)
            return (total - self.probs[:, :, prefix:, 0]).clamp_min(0)
        return self.probs[:, :, prefix:, prefix:].sum(-1)

    def _column_means(self) -> Tensor:
        """Mean attention on each token over all sources, spatial sources, spatial sources renormalised: (b, H, 3, T).

        The last one is 0 on prefix tokens.
        """
        batch, heads, tokens, _ = self.probs.shape
        prefix, spatial = self.layout.prefix, self.layout.spatial
        weights = self.probs.new_zeros(batch, heads, 3, tokens)
        weights[:, :, 0] = 1 / tokens
        weights[:, :, 1, prefix:] = 1 / spatial
        weights[:, :, 2, prefix:] = self.renormaliser / spatial
        means = torch.matmul(weights, self.probs)  # (b, H, 3, T)
        means[:, :, 2, :prefix] = 0
        return means

    @cached_property
    def head_mean(self) -> Tensor:
        """Mean over heads, (b, T, T)."""
        return self.probs.mean(1)

    @cached_property
    def row_entropy(self) -> Tensor:
        """Entropy of each row in nats, (b, H, T).

        From scores s = log p - log p_max it is -log p_max - sum p s: no logarithm but one per row.
        """
        found: Tensor
        if self.scores is None:
            found = torch.linalg.vecdot(self.probs, self.probs.clamp_min(TINY).log())
        else:
            found = self.probs.amax(-1).log() + torch.linalg.vecdot(self.probs, self.scores)
        return -found


class AttentionView:
    """One block's attention probs (B, H, T, T), post-softmax, and what follows from it. Nothing is written into it."""

    def __init__(self, probs: Tensor, layout: TokenLayout, parts: Sequence[AttentionPart]) -> None:
        self.probs = probs if probs.dtype == torch.float32 else probs.float()
        self.layout, self.parts = layout, parts

    @cached_property
    def spatial_mass(self) -> Tensor:
        """Share of each spatial source's attention that stays on spatial tokens, (B, H, N)."""
        return torch.cat([part.spatial_mass for part in self.parts])

    @cached_property
    def column_means(self) -> tuple[Tensor, Tensor, Tensor]:
        """Mean attention on each token over (all sources, spatial sources, spatial sources renormalised).

        Each (B, H, T); the last one is 0 on prefix tokens.
        """
        everyone, spatial, pure = torch.cat([part.column_means for part in self.parts]).unbind(2)
        return everyone, spatial, pure

    @cached_property
    def cls_map(self) -> Tensor | None:
        """Attention of CLS on the spatial tokens, (B, H, N), or None for a model without CLS. A copy, to be kept."""
        return self.probs[:, :, 0, self.layout.prefix :].contiguous() if self.layout.has_cls else None


class SweepingStatistic(Statistic):
    """A statistic of attention that sees a block in parts first (`stream`), and then as a whole (`see`)."""

    wants = frozenset({"attention"})

    def __init__(self, layout: TokenLayout) -> None:
        super().__init__()
        self.layout = layout
        self._parts: list[AttentionPart] = []

    def sweep(self, layer: int, probs: Tensor, scores: Tensor | None) -> None:
        """The next images of the batch, (b, H, T, T), before `attention` is told of all of them."""
        part = AttentionPart.of(probs, self.layout, scores)
        self._parts.append(part)
        self.stream(layer, part)

    def attention(self, layer: int, probs: Tensor) -> None:
        if not self._parts:  # nobody swept
            for images in parts_of(probs):
                self.sweep(layer, probs[images], None)
        self.see(layer, AttentionView(probs, self.layout, self._parts))
        self._parts = []

    def stream(self, layer: int, part: AttentionPart) -> None:
        """A few images of one block: the place for what reads all probabilities."""

    @abstractmethod
    def see(self, layer: int, view: AttentionView) -> None:
        """One block's attention; blocks come in order."""


class AttentionStatistic(SweepingStatistic):
    """A single statistic of attention; per-image values are collected layer by layer."""

    def __init__(self, layout: TokenLayout, depth: int) -> None:
        super().__init__(layout)
        self.depth = depth
        self._pending: dict[str, list[Tensor]] = {}
        self._gathered: dict[str, list[Tensor]] = {}

    def gather(self, name: str, value: Tensor) -> None:
        """A value per image of a part, (b, ...): `gathered` gives all of the batch."""
        self._gathered.setdefault(name, []).append(value)

    def gathered(self, name: str) -> Tensor:
        return torch.cat(self._gathered.pop(name))

    def note(self, name: str, value: Tensor) -> None:
        """A value per image at the current layer, (B, ...): becomes row `name` of shape (B, L, ...)."""
        self._pending.setdefault(name, []).append(value)

    def end(self) -> None:
        for name, layers in self._pending.items():
            self.put(name, torch.stack(layers, dim=1).float())
        self._pending.clear()
        super().end()
