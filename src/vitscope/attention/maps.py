"""Where attention falls: mean maps over images, per layer and head, for several sources that look."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vitscope.attention.view import AttentionStatistic, AttentionView
from vitscope.models.layout import Grid, TokenLayout

PLACES = ("top", "left", "centre", "right", "bottom")  # single patch tokens whose maps are kept, as published


def place(name: str, grid: Grid) -> int:
    """The token, among the spatial ones, in the middle of an edge or of the image (the lower right one of four).

    >>> [place(name, (14, 14)) for name in PLACES]
    [7, 98, 105, 111, 189]
    """
    h, w = grid
    row = {"top": 0, "bottom": h - 1}.get(name, h // 2)
    column = {"left": 0, "right": w - 1}.get(name, w // 2)
    return row * w + column


@dataclass(frozen=True)
class MeanMaps:
    """Mean attention on each spatial token, (L, H, h, w) each; `cls` is None for a model without CLS.

    cls: from CLS; all: from all sources; spatial: from spatial sources; pure: from spatial sources, each renormalised
    to sum 1 without the prefix tokens; places: from each of PLACES, by name.
    cells: what the same sources give each prefix token, (L, H, prefix): the CLS cell beside the map. None for `pure`.
    nulls: spatial sources per (layer, head) that attended to prefix tokens only.
    """

    cls: Tensor | None
    all: Tensor
    spatial: Tensor
    pure: Tensor
    places: dict[str, Tensor]
    cells: dict[str, Tensor]
    nulls: Tensor
    n: int

    @property
    def prefix(self) -> Tensor:
        """Mean attention of spatial sources on each prefix token, (L, H, prefix)."""
        return self.cells["spatial"]


class MapStatistic(AttentionStatistic):
    """Running sums of the aggregate maps, all tokens of them."""

    name = "maps"

    def __init__(self, layout: TokenLayout, depth: int) -> None:
        super().__init__(layout, depth)
        self._places = [layout.prefix + place(name, layout.grid) for name in PLACES]

    def see(self, layer: int, view: AttentionView) -> None:
        everyone, spatial, pure = view.column_means
        kinds = {"all": everyone, "spatial": spatial, "pure": pure}
        if view.layout.has_cls:
            kinds["cls"] = view.probs[:, :, 0]
        for kind, values in kinds.items():
            self.note(kind, values.double().sum(0))  # (H, T)
        self.note("places", view.probs[:, :, self._places].double().sum(0))  # (H, 5, T)
        self.note("nulls", (view.spatial_mass <= 0).sum(dim=(0, 2)).double())

    def end(self) -> None:
        for kind, layers in self._pending.items():
            self.add(kind, torch.stack(layers))  # (L, H, T)
        self._pending.clear()
        super().end()

    def result(self) -> MeanMaps:
        prefix, grid = self.layout.prefix, self.layout.grid
        seen = {
            name: self.sum_of(name) / self.count for name in ("all", "spatial", "pure", "cls") if self.has_sum(name)
        }
        seen |= {name: found / self.count for name, found in zip(PLACES, self.sum_of("places").unbind(2), strict=True)}
        maps = {name: found[..., prefix:].unflatten(-1, grid) for name, found in seen.items()}
        return MeanMaps(
            cls=maps.get("cls"),
            all=maps["all"],
            spatial=maps["spatial"],
            pure=maps["pure"],
            places={name: maps[name] for name in PLACES},
            cells={name: found[..., :prefix] for name, found in seen.items() if name != "pure"},
            nulls=self.sum_of("nulls").long(),
            n=self.count,
        )
