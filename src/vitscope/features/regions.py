"""One vector per annotated region (object or part) and layer: the mask-weighted mean of the spatial tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F

from vitscope.core.errors import BadData
from vitscope.core.statistic import Statistic
from vitscope.models.layout import Grid, TokenLayout

if TYPE_CHECKING:
    from vitscope.data.batches import Batch
    from vitscope.models.shape import ModelShape


def region_weights(coverage: Tensor, grid: Grid) -> Tensor:
    """How much each token belongs to each region: (A, h_px, w_px), any scale -> (A, N), rows sum to 1.

    A token's weight is the share of its cell that the region covers; `paper` has cells already, reduced as published.
    A region without any pixel has a row of zeros.

    >>> region_weights(torch.tensor([[[1.0, 1, 0, 0], [1, 1, 1, 1]]]), grid=(1, 2)).tolist()  # covers 1 and 1/2
    [[0.666..., 0.333...]]
    """
    cells = F.adaptive_avg_pool2d(coverage.unsqueeze(1).float(), grid).flatten(1)  # (A, N)
    total = cells.sum(-1, keepdim=True)
    return torch.where(total > 0, cells / total, torch.zeros(()))


@dataclass(frozen=True)
class Regions:
    """All regions of all images, ordered by image. outside: regions without a pixel inside the crop."""

    layers: Callable[[int], Tensor]  # layer -> (A, D) float32, read when it is asked for
    category: Tensor  # (A,)
    image: Tensor  # (A,): positions in the sample list
    outside: int
    depth: int

    @property
    def features(self) -> Tensor:
        """(A, L, D)."""
        return torch.stack([self.layers(layer) for layer in range(self.depth)], dim=1)


class RegionStatistic(Statistic):
    """Mask-pooled features of every region and layer. Needs batches with annotations."""

    name = "regions"
    wants = frozenset({"tokens"})
    needs_annotations = True

    @classmethod
    def of(cls, shape: ModelShape, **settings: Any) -> RegionStatistic:
        return cls(shape.layout, **settings)

    def __init__(self, layout: TokenLayout, protocol: str = "corrected") -> None:
        super().__init__()
        self.layout, self.protocol = layout, protocol
        self._weights: list[Tensor] = []  # per image of the batch (A, N), regions inside the crop only
        self._categories: list[Tensor] = []
        self._outside = 0
        self._layers: list[Tensor] = []

    def begin(self, batch: Batch) -> None:
        super().begin(batch)
        assert batch.annotations is not None, "regions need masks"
        self._weights, self._categories, self._outside, self._layers = [], [], 0, []
        for annotation in batch.annotations:
            masks = annotation.published if self.protocol == "paper" else annotation.coverage
            weights = region_weights(masks, self.layout.grid)
            inside = weights.sum(-1) > 0
            self._weights.append(weights[inside])
            self._categories.append(annotation.categories[inside])
            self._outside += int((~inside).sum())

    def tokens(self, layer: int, x: Tensor) -> None:
        spatial = x[:, self.layout.prefix :]
        pooled = [
            weights.to(x.device) @ tokens.float()  # (A, D)
            for weights, tokens in zip(self._weights, spatial, strict=True)
            if len(weights)
        ]
        self._layers.append(torch.cat(pooled) if pooled else x.new_empty(0, x.shape[-1], dtype=torch.float32))

    def end(self) -> None:
        self.record(torch.stack(self._layers, dim=1).cpu())
        super().end()

    def record(self, features: Tensor) -> None:
        """Take in the features (A, L, D) of the batch's regions, image by image."""
        if not torch.isfinite(features).all():
            raise BadData(f"features of regions near {self.batch.ids[0]} are NaN or infinite: check the weights")
        counts = torch.tensor([len(categories) for categories in self._categories])
        for layer, rows in enumerate(features.unbind(1)):
            self.put(f"features/{layer}", rows)
        self.put("category", torch.cat(self._categories))
        self.put("image", self.batch.indices.repeat_interleave(counts))
        self.add("outside", torch.tensor(self._outside))

    def result(self, places: Tensor | None = None) -> Regions:
        """places: as for `rows_of`."""
        if not self.has_rows("image"):
            empty = torch.empty(0, dtype=torch.int64)
            return Regions(lambda _layer: torch.empty(0, 1), empty, empty, 0, 0)
        image = self.joined("image") if places is None else places[self.joined("image")]
        order = image.argsort(stable=True)  # the regions of an image always come together and in order
        return Regions(
            layers=lambda layer: self.joined(f"features/{layer}")[order],
            category=self.joined("category")[order],
            image=image[order],
            outside=int(self.sum_of("outside")),
            depth=sum(name.startswith("features/") for name in self._rows),
        )
