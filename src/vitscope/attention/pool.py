"""Where a pooling head looks: networks without CLS, such as SigLIP, sum up an image by a query of their own.

It reads the tokens of the last layer, and is measured as CLS is there.
"""

from __future__ import annotations

import polars as pl
from torch import Tensor

from vitscope.attention.patterns import looks, repetition
from vitscope.core.results import NOBODY, tidy_mean
from vitscope.core.statistic import Statistic
from vitscope.models.layout import TokenLayout


class PoolStatistic(Statistic):
    """The mean map of each head of the query, and the look of each image's maps."""

    name = "pool"
    wants = frozenset({"pool"})

    def __init__(self, layout: TokenLayout, depth: int) -> None:
        super().__init__()
        self.layout, self.depth = layout, depth

    def pool(self, layer: int, probs: Tensor, x: Tensor) -> None:
        self.add("map", probs.float().sum(0))  # (H, N)
        for name, value in (looks(probs, self.layout.grid) | {"repetition_in_layer": repetition(probs)}).items():
            self.put(name, value.float())

    def tables(self) -> list[pl.DataFrame]:
        """Rows of the last layer, one per head of the query."""
        options = {"variant": self.name, "first_layer": self.depth}
        return [tidy_mean(NOBODY, name, self.rows_of(name).double().unsqueeze(1), **options) for name in self._rows]

    def result(self) -> Tensor:
        """The mean map, (1, H, h, w)."""
        found: Tensor = (self.sum_of("map") / self.count).unflatten(-1, self.layout.grid)
        return found.unsqueeze(0)
