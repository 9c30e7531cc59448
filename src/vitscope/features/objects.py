"""One vector per annotated region (object or part) and layer: the mask-weighted mean of the spatial tokens."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from vitscope.data.batches import Batch
from vitscope.errors import BadData
from vitscope.models.layout import Grid, TokenLayout
from vitscope.statistic import Statistic


def region_weights(coverage: Tensor, grid: Grid) -> Tensor:
    """How much each token belongs to each region: (A, h_px, w_px), any scale -> (A, N), rows sum to 1.

    A token's weight is the share of its cell that the region covers. A region without any pixel has a row of zeros.

    >>> region_weights(torch.tensor([[[1.0, 1, 0, 0], [1, 1, 1, 1]]]), grid=(1, 2)).tolist()  # covers 1 and 1/2
    [[0.666..., 0.333...]]
    """
    cells = F.adaptive_avg_pool2d(coverage.unsqueeze(1).float(), grid).flatten(1)  # (A, N)
    total = cells.sum(-1, keepdim=True)
    return torch.where(total > 0, cells / total, torch.zeros(()))


@dataclass(frozen=True)
class Regions:
    """All regions of all pictures, ordered by picture. outside: regions without a pixel inside the crop."""

    features: Tensor  # (A, L, D) float32
    category: Tensor  # (A,)
    picture: Tensor  # (A,): positions in the sample list
    outside: int


class RegionStatistic(Statistic):
    """Mask-pooled features of every region and layer. Needs batches with annotations."""

    name = "regions"
    wants = frozenset({"tokens"})
    needs_annotations = True

    def __init__(self, layout: TokenLayout) -> None:
        super().__init__()
        self.layout = layout
        self._weights: list[Tensor] = []  # per picture of the batch (A, N), regions inside the crop only
        self._categories: list[Tensor] = []
        self._outside = 0
        self._layers: list[Tensor] = []

    def begin(self, batch: Batch) -> None:
        super().begin(batch)
        assert batch.annotations is not None, "regions need masks"
        self._weights, self._categories, self._outside, self._layers = [], [], 0, []
        for annotation in batch.annotations:
            weights = region_weights(annotation.coverage, self.layout.grid)
            inside = weights.sum(-1) > 0
            self._weights.append(weights[inside])
            self._categories.append(annotation.categories[inside])
            self._outside += int((~inside).sum())

    def tokens(self, layer: int, x: Tensor) -> None:
        spatial = x[:, self.layout.prefix :]
        pooled = [
            (weights.to(x.device) @ tokens.float()).cpu()  # (A, D)
            for weights, tokens in zip(self._weights, spatial, strict=True)
            if len(weights)
        ]
        self._layers.append(torch.cat(pooled) if pooled else torch.empty(0, x.shape[-1]))

    def end(self) -> None:
        self.record(torch.stack(self._layers, dim=1))
        super().end()

    def record(self, features: Tensor) -> None:
        """Take in the features (A, L, D) of the batch's regions, picture by picture."""
        if not torch.isfinite(features).all():
            raise BadData(f"features of regions near {self.batch.ids[0]} are NaN or infinite: check the weights")
        counts = torch.tensor([len(categories) for categories in self._categories])
        self.put("features", features)
        self.put("category", torch.cat(self._categories))
        self.put("picture", self.batch.indices.repeat_interleave(counts))
        self.add("outside", torch.tensor(self._outside))

    def result(self) -> Regions:
        picture = torch.cat(self._rows["picture"])
        order = picture.argsort(stable=True)  # the regions of a picture always come together and in order
        return Regions(
            features=torch.cat(self._rows["features"])[order],
            category=torch.cat(self._rows["category"])[order],
            picture=picture[order],
            outside=int(self.sum_of("outside")),
        )
