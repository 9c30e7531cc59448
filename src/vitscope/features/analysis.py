"""The analysis of features: clusters, residual stream, dimensions, projections; and how alike models are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
import torch
from pydantic import Field
from torch import Tensor

from vitscope.core.analysis import Analysis, Found, Measure, Member, Outcome, Stream, Watch, batch_of
from vitscope.core.results import NOBODY, tidy, tidy_mean
from vitscope.features.clustering import (
    LONELY,
    MOST_CLUSTERED,
    cluster_layers,
    cluster_tables,
    clustering_operations,
    clustering_refusal,
    single_members,
)
from vitscope.features.comparison import compare_models
from vitscope.features.gram_statistic import MOST_IMAGES, GramStatistic, NormGramStatistic
from vitscope.features.hsic import LEAST
from vitscope.features.pooling import pooled
from vitscope.features.projection import pca, tsne
from vitscope.features.record import VARIANTS, FeatureRecord
from vitscope.features.residual import Residual, ResidualStatistic
from vitscope.features.spectrum import effective_rank, intrinsic_dimension
from vitscope.models.trace import PARTS

if TYPE_CHECKING:
    from vitscope.data.dataset import ImageSet
    from vitscope.models.shape import ModelShape

PAPER_BLOCK = 8  # images that the published code compares with each other
MOST_POINTS = 2000  # images for dimensions: more change nothing and cost minutes
MOST_DRAWN = 500  # images in projections: more are a cloud, and t-SNE is the slowest part of a reduction
LEAST_POINTS = 10


class Features(Analysis):
    """What models represent at every layer, and how alike they are.

    `corrected`: images in a seeded order, CKA on blocks of 32 (all at once up to 64), clusters of features of length 1.
    `paper`: as published, blocks of 8 in class order with scaled Grams, clusters of raw features.
    """

    name = "features"
    title = "features"
    domain = "what"
    kind = "images"
    measures = (
        Measure("cka", "CKA", "similarity of two models' last layers (debiased linear CKA), beside its null"),
        Measure("purity", "purity", "share of images in clusters whose most frequent class is theirs"),
        Measure("nmi", "NMI", "mutual information of clusters and classes, normalised"),
        Measure("ari", "ARI", "agreement of clusters and classes beyond chance"),
        Measure(
            "skip_over_branch", "skip over branch", "norm of what the residual connection carries over what is added"
        ),
        Measure("residual_cka", "CKA of skip and branch", "similarity of what is carried and what is added"),
        Measure("effective_rank", "effective rank", "how many dimensions features use"),
        Measure("intrinsic_dimension", "intrinsic dimension", "dimension of the surface on which features lie (TwoNN)"),
    )

    protocol: Literal["corrected", "paper"] = "corrected"
    cluster_seeds: int = Field(3, ge=1, description="Runs of k-means, each the best of ten initialisations")
    projections: bool = Field(True, description="Also PCA and t-SNE of the last layers")

    def passes(self, dataset: ImageSet, shape: ModelShape) -> Sequence[Stream]:
        samples = dataset.samples if self.protocol == "paper" else dataset.shuffled
        scaled = self.protocol == "paper"
        block = {"block": PAPER_BLOCK if scaled else batch_of(len(samples)), "scaled": scaled}
        watch = [pooled(samples), Watch.by(GramStatistic, **block)]
        if "norms" in shape.signals:
            watch.append(Watch.by(NormGramStatistic, **block))
        if "branches" in shape.signals:
            watch.append(Watch.by(ResidualStatistic, **block))
        return [Stream(samples, tuple(watch))]

    def operations(self, dataset: ImageSet, shape: ModelShape) -> float:
        points, k = min(dataset.count, MOST_CLUSTERED), len(dataset.samples.classes)
        return (1 + shape.layout.has_cls) * clustering_operations(points, k, shape, self.protocol, self.cluster_seeds)

    def reduce(self, dataset: ImageSet, found: Found) -> Outcome:
        record = FeatureRecord(found)
        samples = dataset.samples if self.protocol == "paper" else dataset.shuffled
        labels = _labels(samples.labels, record)
        outcome = Outcome(notes=_notes(record))
        if labels is not None:
            outcome.facts["classes"] = list(samples.classes)
        self._add_clusters(record, labels, outcome)
        if record.residual is not None:
            outcome.tables += residual_tables(record.residual, self.protocol)
            for part, value in record.residual.cka.items():
                for kind, matrix in zip(record.residual.kinds, value, strict=True):
                    outcome.maps[f"residual.{part}.{kind}"] = matrix
        _add_dimensions(record, outcome, self.protocol)
        if self.projections:
            _add_projections(record, labels, outcome)
        return outcome

    def compare(self, dataset: ImageSet, members: Sequence[Member]) -> Outcome | None:
        records = [FeatureRecord(m.found, m.title, m.teaching, m.digest) for m in members]
        return compare_models(records, self.protocol)

    def _add_clusters(self, record: FeatureRecord, labels: Tensor | None, outcome: Outcome) -> None:
        if labels is None:
            outcome.notes.append("the images have no labels: nothing to compare clusters of images with")
            return
        if refusal := clustering_refusal(labels):
            outcome.notes.append(f"images are not clustered: {refusal}")
            return
        if lonely := single_members(labels):
            outcome.notes.append(f"{lonely} {'classes have' if lonely > 1 else 'class has'} a single image: {LONELY}")
        if len(labels) > MOST_CLUSTERED:
            outcome.notes.append(f"clusters are those of {MOST_CLUSTERED:,} of the {len(labels):,} images")
            labels = labels[:MOST_CLUSTERED]
        for pooling in record.pooled.kinds:
            layers = _layers(record, pooling, MOST_CLUSTERED)
            found = cluster_layers(layers, labels, protocol=self.protocol, seeds=self.cluster_seeds)
            outcome.tables += cluster_tables(found, VARIANTS[pooling], len(labels), self.protocol)


def _labels(labels: Sequence[int | None], record: FeatureRecord) -> Tensor | None:
    """The classes of the images that could be read; None if some have none."""
    if not labels or None in labels:
        return None
    return torch.tensor(labels, dtype=torch.int64)[record.pooled.positions]


def _notes(record: FeatureRecord) -> list[str]:
    notes = []
    if not record.shape.layout.has_cls:
        notes.append("{model} has no CLS token: it has no CLS rows, and is absent from CLS figures")
    if "norms" not in record.shape.signals:
        notes.append("{model} does not show its norms: similarity over depth uses block outputs instead")
    if "branches" not in record.shape.signals:
        notes.append("{model} does not show its residual branches: it is absent from the residual analysis")
    if unused := record.grams.unused:
        why = f"uses the first {MOST_IMAGES} images" if unused >= LEAST else "takes blocks of at least 4 images"
        notes.append(f"CKA {why}: {unused} of {len(record.pooled)} are not in it")
    return notes


def _layers(record: FeatureRecord, pooling: str, rows: int | None = None) -> Iterator[Tensor]:
    for layer in range(record.depth):
        yield record.features(pooling, layer, rows)


def residual_tables(residual: Residual, protocol: str) -> list[pl.DataFrame]:
    tables = []
    for part in PARTS:
        for number, kind in enumerate(residual.kinds):
            ratios = residual.ratios[part][..., number]  # (n, L)
            options: dict[str, Any] = {"axes": ("layer",), "variant": f"{part}/{kind}", "protocol": protocol}
            tables.append(tidy_mean(NOBODY, "skip_over_branch", ratios, **options))
            if part in residual.cka:
                value, low, high, null = (
                    side[part][number].diagonal() for side in (residual.cka, residual.low, residual.high, residual.null)
                )
                n = len(ratios)
                tables.append(tidy(NOBODY, "residual_cka", value, low=low, high=high, n=n, **options))
                tables.append(tidy(NOBODY, "residual_cka_null", null, n=n, **options))
    return [table.filter(pl.col("value").is_not_nan()) for table in tables]


def _add_dimensions(record: FeatureRecord, outcome: Outcome, protocol: str) -> None:
    n = min(len(record.pooled), MOST_POINTS)
    if n < LEAST_POINTS:
        outcome.notes.append(f"{n} images are too few to tell how many dimensions features use")
        return
    for pooling in record.pooled.kinds:
        for measure, function in (("effective_rank", effective_rank), ("intrinsic_dimension", intrinsic_dimension)):
            value = torch.tensor([function(x) for x in _layers(record, pooling, n)]).double()
            rows = tidy(NOBODY, measure, value, axes=("layer",), n=n, variant=VARIANTS[pooling], protocol=protocol)
            outcome.tables.append(rows.filter(pl.col("value").is_not_nan()))


def _add_projections(record: FeatureRecord, labels: Tensor | None, outcome: Outcome) -> None:
    """PCA and t-SNE of the last layer's CLS features (mean spatial without CLS)."""
    features = record.features(record.pooled.kinds[0], record.depth - 1, MOST_DRAWN)
    outcome.maps["projection.pca"], outcome.maps["projection.pca.share"] = pca(features)
    embedded = tsne(features)
    if embedded is not None:
        outcome.maps["projection.tsne"] = embedded
    if labels is not None:
        outcome.maps["projection.labels"] = labels[:MOST_DRAWN]
