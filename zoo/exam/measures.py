"""What a network is examined in, each with the project's own measure, at every layer and for every seed."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
import torch
from torch import Tensor

from vitscope.attention.analysis import Attention
from vitscope.attention.saliency import Saliency
from vitscope.core.progress import Progress, silent
from vitscope.data.dataset import ImageSet, LabelledSet, MaskSet
from vitscope.data.samples import SampleList
from vitscope.features.objects import Objects
from vitscope.models.backbone import Backbone
from vitscope.pipeline.evaluate import evaluate
from vitscope.tasks import keypoints, knn, video_segmentation
from vitscope.tasks.confidence import grouped_ratio
from vitscope.tasks.keypoints import Keypoints
from vitscope.tasks.knn import HEADLINE_K, Knn
from vitscope.tasks.nearest import Array
from vitscope.tasks.video_segmentation import Video
from zoo.exam.marks import Scores, stacked
from zoo.exam.papers import Papers
from zoo.heads import FIRM

MEASURES = {
    "unc": "species, k-NN, appearance-free",
    "nat": "species, k-NN, nature-like",
    "pck": "keypoints, PCK@0.1",
    "jf": "video, J&F",
    "purity": "part clusters, purity",
    "nmi": "part clusters, NMI",
    "iou": "CLS attention, IoU",
    # what attention is like: one number for each network
    "local": "heads that are not global, share",
    "offset": "offset-local heads that are stable",
    "nearest": "attention distance, least of a layer",
    "mixed": "layers of the first third with local and global heads",
    "rise": "layers at which CLS k-NN rises, appearance-free",
}
NEIGHBOURS = knn.KnnConfig(ks=(knn.HEADLINE_K,))
KINDS = {"cls": "CLS", "mean": "patches"}
CLUSTER_SEEDS = 2  # each the best of ten initialisations; the seeds of the papers add to them


@dataclass(frozen=True)
class Answers:
    """Scores by measure, and the purity that shuffled labels give."""

    scores: dict[str, Scores]
    chance: Scores


def examine(backbone: Backbone, papers: Papers, progress: Progress = silent) -> Answers:
    """Every measure of `MEASURES`, seed by seed. A network without CLS has no figure for CLS attention."""
    analyses = [
        Knn(ks=(HEADLINE_K,)),
        Keypoints(),
        Video(),
        Objects(cluster_seeds=CLUSTER_SEEDS),
        Saliency(),
        Attention(),
    ]
    tables = []
    with tempfile.TemporaryDirectory() as store:  # one for all seeds: the bank goes through the network once
        for paper in papers.papers:
            data = [
                LabelledSet("unc", papers.bank, paper.unc),
                LabelledSet("nat", papers.bank, paper.nat),
                MaskSet("parts", paper.parts),
                ImageSet("looks", paper.parts),
                paper.pairs,
                paper.films,
            ]
            tables.append(evaluate(backbone, data, analyses, store=store, progress=progress).table)
    return answers_of(tables)


def answers_of(tables: Sequence[pl.DataFrame]) -> Answers:
    """Scores of every layer, read off the tables of all seeds."""

    def curve(table: pl.DataFrame, measure: str, variant: str, dataset: str | None = None) -> Tensor:
        """(L,), or (H, L) where there are heads."""
        rows = table.filter(
            (pl.col("measure") == measure) & (pl.col("variant") == variant) & (pl.col("protocol") == "corrected")
        )
        if dataset is not None:
            rows = rows.filter(pl.col("dataset") == dataset)
        heads = max(rows["head"].n_unique(), 1)
        return torch.from_numpy(rows.sort("head", "layer")["value"].to_numpy().copy()).reshape(heads, -1).squeeze(0)

    variants = set(tables[0]["variant"])
    kinds = [kind for kind in KINDS if f"{kind} k={HEADLINE_K}" in variants]
    scores = {}
    for test in ("unc", "nat"):
        right = [torch.stack([curve(t, "knn_top1", f"{kind} k={HEADLINE_K}", test) for kind in kinds]) for t in tables]
        scores[test] = stacked(right, [KINDS[kind] for kind in kinds])
    for name, measure, variant in (
        ("pck", "pck@0.1", ""),
        ("jf", "video_j&f", ""),
        ("purity", "purity", "regions"),
        ("nmi", "nmi", "regions"),
    ):
        scores[name] = stacked([curve(table, measure, variant) for table in tables])
    if "cls" in kinds:
        attended = [curve(table, "saliency_iou", "cls") for table in tables]  # (H, L)
        scores["iou"] = stacked(attended, [f"head {number + 1}" for number in range(len(attended[0]))])
        rises = [(curve(t, "knn_top1", f"cls k={HEADLINE_K}", "unc").diff() > 0).sum() for t in tables]
        scores["rise"] = stacked([count.double().reshape(1) for count in rises])
    looks = [looks_of(table) for table in tables]
    scores |= {name: stacked([torch.tensor([look[name]]) for look in looks]) for name in looks[0]}
    chance = [curve(table, "purity_chance", "regions").mean().reshape(1) for table in tables]
    return Answers(scores, stacked(chance))


def looks_of(table: pl.DataFrame) -> dict[str, float]:
    """What the attention of a network is like, in a number each, of its table."""
    kinds = table.filter((pl.col("measure") == "head_kind") & (pl.col("value") == 1))  # a row for each head
    stable = table.filter((pl.col("measure") == "head_kind_stability") & (pl.col("value") >= FIRM))
    offset = kinds.filter(pl.col("variant") == "offset local").join(stable, on=["layer", "head"])
    spread = kinds.group_by("layer").agg((pl.col("variant") == "global").mean().alias("share"))
    early = spread.filter(pl.col("layer") <= len(spread) // 3)["share"]
    distance = table.filter((pl.col("measure") == "attention_distance") & (pl.col("variant") == "grid"))
    return {
        "local": float((kinds["variant"] != "global").mean()),  # type: ignore[arg-type]
        "offset": float(len(offset)),
        "nearest": float(distance.group_by("layer").agg(pl.col("value").mean())["value"].min()),  # type: ignore[arg-type]
        "mixed": float(((early > 0) & (early < 1)).sum()),
    }


def species_right(
    bank: list[Array], bank_labels: Tensor, queries: list[Array], labels: Tensor
) -> Tensor:  # also what baselines are asked by
    """Share of right answers at each layer, (L,). bank: L of (n, D); queries: L of (q, D)."""
    answers = knn.evaluate(bank, bank_labels, queries, labels, config=NEIGHBOURS)
    return answers.top1[..., 0].double().mean(0)


def pck(scores: keypoints.KeypointScores) -> Tensor:
    """PCK@0.1, mean over species: (L,)."""
    return grouped_ratio(scores.right[:, keypoints.ALPHAS.index(0.1)], scores.points, scores.category)


def jf(scores: video_segmentation.VideoScores) -> Tensor:
    """J&F, mean over objects: (L,)."""
    return torch.cat([torch.from_numpy(values) for values in scores.per_object()["j&f"]], 1).mean(1)


def labels_of(samples: SampleList) -> Tensor:
    return torch.tensor([-1 if label is None else label for label in samples.labels])
