"""Attention rollout: how much of the input each token sees through all layers up to one.

The product over layers of 0.5 * (A + I), heads averaged. Only one row of each product is wanted (CLS; the mean of the
spatial tokens where there is no CLS), so that row vectors are carried instead of multiplying matrices.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vitscope.attention.view import TINY, AttentionPart, AttentionStatistic, AttentionView


def rollout(attentions: Sequence[Tensor], source: Tensor) -> Tensor:
    """Rollout to every depth.

    attentions: L head-averaged attentions (..., T, T); source: (T,) weights of the tokens that look.
    Returns (..., L, T): entry l starts from block l and goes down to the input.
    """
    ends = []
    for last in range(len(attentions)):
        row = source.to(attentions[0]).expand(*attentions[0].shape[:-2], 1, -1)  # (..., 1, T)
        for attention in reversed(attentions[: last + 1]):
            row = 0.5 * (row @ attention + row)
        ends.append(row)
    return torch.cat(ends, dim=-2)


class RolloutStatistic(AttentionStatistic):
    """Mean rollout map to every depth, (L, h, w), renormalised over spatial tokens; zero where none is ever reached."""

    name = "rollout"

    def stream(self, layer: int, part: AttentionPart) -> None:
        self.gather("head_mean", part.head_mean)

    def see(self, layer: int, view: AttentionView) -> None:
        self._pending.setdefault("layers", []).append(self.gathered("head_mean"))

    def end(self) -> None:
        layers = self._pending.pop("layers")
        source = torch.zeros(self.layout.tokens)
        if self.layout.has_cls:
            source[0] = 1
        else:
            source[self.layout.prefix :] = 1 / self.layout.spatial
        maps = rollout(layers, source)[..., self.layout.prefix :]  # (B, L, N)
        self.add("maps", (maps / maps.sum(-1, keepdim=True).clamp_min(TINY)).double().sum(0))
        super().end()

    def result(self) -> Tensor:
        found: Tensor = (self.sum_of("maps") / self.count).unflatten(-1, self.layout.grid)
        return found
