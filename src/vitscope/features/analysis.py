"""One model's record as numbers: clusters, residual stream, dimensions and projections of every layer."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import torch
from torch import Tensor

from vitscope.features.clustering import SCORES, SEEDS, Clustering, cluster_layers
from vitscope.features.gram_statistic import MOST_PICTURES
from vitscope.features.hsic import LEAST
from vitscope.features.projection import pca, tsne
from vitscope.features.record import ModelRecord
from vitscope.features.residual import Residual
from vitscope.features.spectrum import effective_rank, intrinsic_dimension
from vitscope.models.trace import PARTS
from vitscope.progress import Progress, silent
from vitscope.results import Results, tidy, tidy_mean

VARIANTS = {"cls": "cls", "mean": "spatial"}  # pooling in the store -> name of the tokens in tables
MOST_POINTS = 2000  # pictures in projections and for dimensions: more change nothing and cost minutes
LEAST_POINTS = 10
_LONELY = "there no cluster can be right"


def analyse_model(
    record: ModelRecord, *, seeds: int = SEEDS, projections: bool = True, progress: Progress = silent
) -> Results:
    """Tables, maps and notes of one model."""
    label = record.label
    classes = record.store.manifest.drop_nulls("label").unique("label").sort("label")["class"].to_list()
    about = {"seen": len(record.store), "title": record.title, "classes": classes}
    results = Results(
        provenance=[record.provenance | about],
        skipped=record.store.skipped,
        notes=_notes(record),
    )
    _add_image_clusters(record, results, seeds, progress)
    _add_region_clusters(record, results, seeds, progress)
    if record.residual is not None:
        results.extend(_residual_tables(record, record.residual))
        for part, value in record.residual.cka.items():
            for kind, matrix in zip(record.residual.kinds, value, strict=True):
                results.maps[f"{label.model}/residual.{part}.{kind}"] = matrix
    _add_dimensions(record, results)
    if projections:
        _add_projections(record, results)
    return results


def _notes(record: ModelRecord) -> list[str]:
    notes = []
    if not record.layout.has_cls:
        notes.append(f"{record.title} has no CLS token: it has no CLS rows, and is absent from CLS figures")
    signals = record.settings["signals"]
    if "norms" not in signals:
        notes.append(f"{record.title} does not show its norms: similarity over depth uses block outputs instead")
    if "branches" not in signals:
        notes.append(f"{record.title} does not show its residual branches: it is absent from the residual analysis")
    if unused := record.grams.unused:
        why = f"uses the first {MOST_PICTURES} pictures" if unused >= LEAST else "takes blocks of at least 4 pictures"
        notes.append(f"CKA {why}: {unused} of {len(record.store)} are not in it")
    return notes


def _layers(record: ModelRecord, pooling: str, rows: int | None = None) -> Iterator[Tensor]:
    for layer in range(record.depth):
        yield record.store.features(pooling, layer)[:rows]


def clustering_refusal(labels: Tensor) -> str:
    """Why clusters of these labels would mean nothing; empty if they mean something."""
    classes = len(labels.unique())
    if classes < 2:
        return "there is only one class"
    if len(labels) < 2 * classes:
        return (
            f"{len(labels)} for {classes} classes are fewer than two per class, and almost any clusters would be pure"
        )
    return ""


def single_members(labels: Tensor) -> int:
    return int((labels.unique(return_counts=True)[1] == 1).sum())


def _add_image_clusters(record: ModelRecord, results: Results, seeds: int, progress: Progress) -> None:
    labels = record.store.labels
    if labels is None:
        results.notes.append("the pictures have no labels: nothing to compare clusters of pictures with")
        return
    if refusal := clustering_refusal(labels):
        results.notes.append(f"pictures are not clustered: {refusal}")
        return
    if lonely := single_members(labels):
        results.notes.append(f"{lonely} {'classes have' if lonely > 1 else 'class has'} a single picture: {_LONELY}")
    for pooling in record.contents.poolings:
        with progress(f"{record.title}: clusters ({VARIANTS[pooling]})", record.depth) as advance:
            layers = _counted(_layers(record, pooling), advance)
            found = cluster_layers(layers, labels, protocol=record.settings["protocol"], seeds=seeds)
        _add_clustering(record, results, found, VARIANTS[pooling], len(labels))


def _add_region_clusters(record: ModelRecord, results: Results, seeds: int, progress: Progress) -> None:
    regions = record.regions
    if regions is None:
        return
    if regions.outside:
        results.notes.append(f"{record.title}: {regions.outside} regions lie outside the crop and were left out")
    if not len(regions.category):
        results.notes.append(f"{record.title}: no region lies inside any crop: there are no region clusters")
        return
    if refusal := clustering_refusal(regions.category):
        results.notes.append(f"regions are not clustered: {refusal}")
        return
    if lonely := single_members(regions.category):
        results.notes.append(
            f"{lonely} {'categories have' if lonely > 1 else 'category has'} a single region: {_LONELY}"
        )
    with progress(f"{record.title}: clusters (regions)", record.depth) as advance:
        layers = _counted((regions.features[:, layer] for layer in range(record.depth)), advance)
        found = cluster_layers(layers, regions.category, protocol=record.settings["protocol"], seeds=seeds)
    variant = "regions, dense" if record.settings["regions"] == "dense" else "regions"
    _add_clustering(record, results, found, variant, len(regions.category))


def _counted(layers: Iterator[Tensor], advance) -> Iterator[Tensor]:  # type: ignore[no-untyped-def]
    for layer in layers:
        yield layer
        advance(1)


def _add_clustering(record: ModelRecord, results: Results, found: Clustering, variant: str, n: int) -> None:
    """Mean over seeds; the interval is from the lowest to the highest seed."""
    protocol = record.settings["protocol"]
    for name in SCORES:
        scores: Tensor = getattr(found, name)  # (L, seeds)
        results.extend(
            [
                tidy(record.label, name, scores.mean(1), axes=("layer",), low=scores.amin(1), high=scores.amax(1), n=n,
                     variant=variant, protocol=protocol)
            ]
        )  # fmt: skip
    results.extend(
        [tidy(record.label, "purity_chance", found.chance, axes=("layer",), n=n, variant=variant, protocol=protocol)]
    )


def _residual_tables(record: ModelRecord, residual: Residual) -> list[pl.DataFrame]:
    label, protocol = record.label, record.settings["protocol"]
    tables = []
    for part in PARTS:
        for number, kind in enumerate(residual.kinds):
            ratios = residual.ratios[part][..., number]  # (n, L)
            options = {"axes": ("layer",), "variant": f"{part}/{kind}", "protocol": protocol}
            tables.append(tidy_mean(label, "skip_over_branch", ratios, **options))
            if part in residual.cka:
                value, low, high, null = (
                    side[part][number].diagonal() for side in (residual.cka, residual.low, residual.high, residual.null)
                )
                n = len(ratios)
                tables.append(tidy(label, "residual_cka", value, low=low, high=high, n=n, **options))
                tables.append(tidy(label, "residual_cka_null", null, n=n, **options))
    return [table.filter(pl.col("value").is_not_nan()) for table in tables]


def _add_dimensions(record: ModelRecord, results: Results) -> None:
    n = min(len(record.store), MOST_POINTS)
    if n < LEAST_POINTS:
        results.notes.append(f"{n} pictures are too few to tell how many dimensions features use")
        return
    for pooling in record.contents.poolings:
        for measure, function in (("effective_rank", effective_rank), ("intrinsic_dimension", intrinsic_dimension)):
            value = torch.tensor([function(x) for x in _layers(record, pooling, n)]).double()
            rows = tidy(record.label, measure, value, axes=("layer",), n=n, variant=VARIANTS[pooling])
            results.extend([rows.filter(pl.col("value").is_not_nan())])


def _add_projections(record: ModelRecord, results: Results) -> None:
    """PCA and t-SNE of the last layer's CLS features (mean spatial without CLS)."""
    pooling = record.contents.poolings[0]
    features = record.store.features(pooling, record.depth - 1)[:MOST_POINTS]
    key = f"{record.title}/projection"
    coordinates, share = pca(features)
    results.maps[f"{key}.pca"], results.maps[f"{key}.pca.share"] = coordinates, share
    embedded = tsne(features)
    if embedded is not None:
        results.maps[f"{key}.tsne"] = embedded
    labels = record.store.labels
    if labels is not None:
        results.maps[f"{key}.labels"] = labels[:MOST_POINTS]
