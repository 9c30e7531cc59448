"""Where attention falls: mean maps over images, per layer and head."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vitscope.attention.view import AttentionStatistic, AttentionView


@dataclass(frozen=True)
class MeanMaps:
    """Mean attention on each spatial token, (L, H, h, w) each; `cls` is None for a model without CLS.

    cls: from CLS; all: from all sources; spatial: from spatial sources; pure: from spatial sources, each renormalised
    to sum 1 without the prefix tokens.
    prefix: mean attention of spatial sources on each prefix token, (L, H, prefix).
    nulls: spatial sources per (layer, head) that attended to prefix tokens only.
    """

    cls: Tensor | None
    all: Tensor
    spatial: Tensor
    pure: Tensor
    prefix: Tensor
    nulls: Tensor
    n: int


class MapStatistic(AttentionStatistic):
    """Running sums of the four aggregate maps."""

    name = "maps"

    def see(self, layer: int, view: AttentionView) -> None:
        everyone, spatial, pure = view.column_means
        kinds = {"all": everyone, "spatial": spatial, "pure": pure}
        if view.layout.has_cls:
            kinds["cls"] = view.probs[:, :, 0]
        for kind, values in kinds.items():
            self.note(kind, values.double().sum(0))  # (H, T)
        self.note("nulls", (view.spatial_mass <= 0).sum(dim=(0, 2)).double())

    def end(self) -> None:
        for kind, layers in self._pending.items():
            self.add(kind, torch.stack(layers))  # (L, H, T)
        self._pending.clear()
        super().end()

    def result(self) -> MeanMaps:
        prefix, grid = self.layout.prefix, self.layout.grid

        def mean(kind: str) -> Tensor:
            found: Tensor = (self.sum_of(kind) / self.count)[..., prefix:].unflatten(-1, grid)
            return found

        return MeanMaps(
            cls=mean("cls") if self.layout.has_cls else None,
            all=mean("all"),
            spatial=mean("spatial"),
            pure=mean("pure"),
            prefix=(self.sum_of("spatial") / self.count)[..., :prefix],
            nulls=self.sum_of("nulls").long(),
            n=self.count,
        )
