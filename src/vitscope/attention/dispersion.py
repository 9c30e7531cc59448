"""How attention spreads: mass on prefix tokens, entropy, deviation over heads and over source positions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vitscope.attention.view import TINY, AttentionPart, AttentionStatistic, AttentionView


def entropy(attention: Tensor) -> Tensor:
    """Mean over sources of the entropy of each row, in nats. attention: (..., S, T) -> (...).

    >>> round(entropy(torch.full((4, 4), 0.25)).item(), 6)  # log 4
    1.386294
    """
    found: Tensor = -torch.linalg.vecdot(attention, attention.clamp_min(TINY).log()).mean(-1)
    return found


def deviation_over_heads(spatial: Tensor) -> Tensor:
    """Standard deviation (ddof 1) over heads, mean over source-destination pairs. (B, H, N, N) -> (B,)."""
    return spatial.std(dim=1).mean(dim=(-1, -2))


def deviation_over_positions(spatial: Tensor) -> Tensor:
    """Standard deviation (ddof 1) over source positions, mean over destinations. (B, H, N, N) -> (B, H)."""
    return spatial.std(dim=2).mean(dim=-1)


@dataclass(frozen=True)
class Dispersion:
    """Per image: (n, L, H) each, except `head_deviation` (n, L)."""

    prefix_mass: Tensor  # share of spatial tokens' attention on prefix tokens
    first_spatial_mass: Tensor  # what the published code called attention on CLS: on the top-left patch
    entropy: Tensor  # nats, mean over all sources
    head_deviation: Tensor  # NaN for a single head
    position_deviation: Tensor


class DispersionStatistic(AttentionStatistic):
    """The measures of spread, from one sweep over squares and one over logarithms."""

    name = "dispersion"

    def stream(self, layer: int, part: AttentionPart) -> None:
        prefix, spatial = self.layout.prefix, self.layout.spatial
        count = part.probs.shape[1]
        self.gather("entropy", part.row_entropy.mean(-1))
        deviation = part.probs - 1 / self.layout.tokens  # from uniform attention: squares do not cancel
        over_heads = deviation.sum(1)[:, prefix:, prefix:]  # (b, N, N)
        over_sources = deviation[:, :, prefix:].sum(2)[..., prefix:]  # (b, H, N)
        square = deviation.square_()
        if count > 1:
            variance = square.sum(1)[:, prefix:, prefix:] - over_heads.square() / count
            self.gather("head_deviation", variance.clamp_min(0).div(count - 1).sqrt().mean(dim=(-1, -2)))
        else:
            self.gather("head_deviation", part.probs.new_full((len(part.probs),), torch.nan))
        variance = square[:, :, prefix:].sum(2)[..., prefix:] - over_sources.square() / spatial
        self.gather("position_deviation", variance.clamp_min(0).div(max(spatial - 1, 1)).sqrt().mean(-1))

    def see(self, layer: int, view: AttentionView) -> None:
        self.note("prefix_mass", 1 - view.spatial_mass.mean(-1))
        self.note("first_spatial_mass", view.column_means[1][..., self.layout.prefix])
        for name in ("entropy", "head_deviation", "position_deviation"):
            self.note(name, self.gathered(name))

    def result(self) -> Dispersion:
        return Dispersion(**{name: self.rows_of(name).double() for name in Dispersion.__dataclass_fields__})
