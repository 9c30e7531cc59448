"""The analysis of objects and parts: clusters of mask-pooled features against categories, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field
from torch import Tensor

from vitscope.core.analysis import Analysis, Drive, Found, Measure, Outcome, Pass, Stream, Watch, shards_of
from vitscope.features.clustering import (
    LONELY,
    cluster_layers,
    cluster_tables,
    clustering_operations,
    clustering_refusal,
    single_members,
)
from vitscope.features.dense_regions import dense_regions
from vitscope.features.regions import Regions, RegionStatistic

if TYPE_CHECKING:
    from vitscope.data.batches import SkippedImages
    from vitscope.data.dataset import MaskSet
    from vitscope.models.backbone import Backbone
    from vitscope.models.shape import ModelShape

CLUSTERS_PAPER = 80  # COCO's categories; as published, of PartImageNet's parts too
DENSE_TILES = 6  # forward passes per image of a dense extraction, about


class Objects(Analysis):
    """Do features of an object, or of a part, lie together? Clusters of mask-pooled features against categories.

    `corrected`: features of length 1, a token weighs by how much of its cell the region covers, as many clusters as
    categories. `paper`: raw features, weights by a bicubic filter in 8 bits, always 80 clusters.
    dense: regions are pooled from tiles at twice the size, as published; several forward passes per image.
    """

    name = "objects"
    title = "object and part clusters"
    domain = "what"
    kind = "masks"
    measures = (
        Measure("purity", "purity", "share of regions in clusters whose most frequent category is theirs"),
        Measure("nmi", "NMI", "mutual information of clusters and categories, normalised"),
        Measure("ari", "ARI", "agreement of clusters and categories beyond chance"),
    )

    protocol: Literal["corrected", "paper"] = "corrected"
    cluster_seeds: int = Field(3, ge=1, description="Runs of k-means, each the best of ten initialisations")
    dense: bool = Field(False, description="Pool regions from tiles at twice the size")

    def passes(self, dataset: MaskSet, shape: ModelShape) -> Sequence[Pass]:
        if self.dense:
            count, disk = len(dataset.samples), float(_regions(dataset)) * shape.depth * shape.width * 4
            return [Drive((1,) * count, shards_of(count), tiles=DENSE_TILES, disk=disk)]
        return [Stream(dataset.shuffled, (Watch.by(RegionStatistic, protocol=self.protocol),))]

    def operations(self, dataset: MaskSet, shape: ModelShape) -> float:
        k = CLUSTERS_PAPER if self.protocol == "paper" else len(dataset.samples.categories)
        return clustering_operations(_regions(dataset), k, shape, self.protocol, self.cluster_seeds)

    def drive(self, backbone: Backbone, dataset: MaskSet, units: range, skipped: SkippedImages) -> Mapping[str, Tensor]:
        return dense_regions(backbone, dataset.shuffled, units, skipped, self.protocol)

    def reduce(self, dataset: MaskSet, found: Found) -> Outcome:
        if self.dense:
            seen = RegionStatistic(found.shape.layout)
            for _, state in found.states():
                part = RegionStatistic(found.shape.layout)
                part.load_state(state)
                seen.merge(part)
        else:
            seen = found.statistic("regions")
        return self._clusters(seen.result(dataset.order))

    def _clusters(self, regions: Regions) -> Outcome:
        outcome = Outcome()
        if regions.outside:
            outcome.notes.append(f"{{model}}: {regions.outside} regions lie outside the crop and were left out")
        if not len(regions.category):
            outcome.notes.append("{model}: no region lies inside any crop: there are no region clusters")
            return outcome
        if refusal := clustering_refusal(regions.category):
            outcome.notes.append(f"regions are not clustered: {refusal}")
            return outcome
        if lonely := single_members(regions.category):
            words = "categories have" if lonely > 1 else "category has"
            outcome.notes.append(f"{lonely} {words} a single region: {LONELY}")
        k, n = CLUSTERS_PAPER if self.protocol == "paper" else None, len(regions.category)
        if k and n < k:
            outcome.notes.append(f"regions are not clustered under paper: {n} are too few for its {k} clusters")
            return outcome
        layers = (regions.layers(layer) for layer in range(regions.depth))
        found = cluster_layers(layers, regions.category, k=k, protocol=self.protocol, seeds=self.cluster_seeds)
        variant = "regions, dense" if self.dense else "regions"
        outcome.tables += cluster_tables(found, variant, n, self.protocol)
        return outcome


def _regions(dataset: MaskSet) -> int:
    return sum(len(sample.annotations) for sample in dataset.samples)
