"""The attention of single images, for people to look at: the first few of the list, every layer and head."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from vitscope.attention.view import AttentionStatistic, AttentionView
from vitscope.data.dataset import EXAMPLES

FINEST = 28  # cells: larger grids are averaged down to it
WIDEST = 448  # pixels of a kept image: as the network sees it, unless it sees very much


@dataclass(frozen=True)
class Examples:
    """Images as the network sees them, uint8 (n, 3, h, w), and where CLS (or, without one, the spatial tokens on
    average) looks in each, (n, L, H, grid)."""

    images: Tensor
    maps: Tensor


class ExampleStatistic(AttentionStatistic):
    """Each image has a place of its own in sums that are zero elsewhere: adding up puts every one where it belongs.

    An image that could not be read leaves its place empty.
    """

    name = "examples"

    def see(self, layer: int, view: AttentionView) -> None:
        chosen = (self.batch.indices < EXAMPLES).nonzero().flatten()
        if len(chosen):
            probs, prefix = view.probs[chosen.to(view.probs.device)], self.layout.prefix
            seen = probs[:, :, 0, prefix:] if self.layout.has_cls else probs[:, :, prefix:, prefix:].mean(2)
            self.note("maps", at_most(seen.unflatten(-1, self.layout.grid), FINEST))  # (n, H, h, w)

    def end(self) -> None:
        if layers := self._pending.pop("maps", None):
            chosen = self.batch.indices < EXAMPLES
            where = self.batch.indices[chosen]
            self.add("maps", placed(torch.stack(layers, dim=1), where))
            self.add("images", placed(at_most(self.batch.images[chosen].double(), WIDEST), where))
            self.add("seen", placed(torch.ones(len(where)), where))
        super().end()

    def result(self) -> Examples | None:
        """None if none of the images was seen."""
        if "seen" not in self._sums:
            return None
        there = self.sum_of("seen") > 0
        images = self.sum_of("images")[there].round().clamp(0, 255).to(torch.uint8)
        return Examples(images, self.sum_of("maps")[there])


def placed(values: Tensor, where: Tensor) -> Tensor:
    """(n, ...) at places (n,) of EXAMPLES; zero elsewhere."""
    places = values.new_zeros(EXAMPLES, *values.shape[1:])
    places[where.to(values.device)] = values
    return places


def at_most(maps: Tensor, most: int) -> Tensor:
    """Averaged down so that the longer side of (n, c, h, w) is at most `most`."""
    h, w = maps.shape[-2:]
    if max(h, w) <= most:
        return maps
    size = (max(1, round(h * most / max(h, w))), max(1, round(w * most / max(h, w))))
    return F.adaptive_avg_pool2d(maps, size)
