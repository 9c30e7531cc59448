"""What a network is examined in, each with the project's own measure, at every layer and for every seed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from vitscope.attention.saliency import SaliencyStatistic
from vitscope.data.samples import SampleList
from vitscope.features.clustering import Clustering, cluster_layers
from vitscope.features.objects import RegionStatistic
from vitscope.models.backbone import Backbone
from vitscope.observe import observe
from vitscope.progress import Advance, Progress, silent
from vitscope.tasks import keypoints, knn, video_segmentation
from vitscope.tasks.confidence import grouped_ratio
from vitscope.tasks.nearest import Array
from vitscope.tasks.pooled import PooledFeatures, pooled_features
from vitscope.teaching.zoo.exam.marks import Scores, stacked
from vitscope.teaching.zoo.exam.papers import Papers

MEASURES = {
    "unc": "species, k-NN, appearance-free",
    "nat": "species, k-NN, nature-like",
    "pck": "keypoints, PCK@0.1",
    "jf": "video, J&F",
    "purity": "part clusters, purity",
    "nmi": "part clusters, NMI",
    "iou": "CLS attention, IoU",
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
    """Every measure of `MEASURES`; one bar for all of it. A network without CLS has no figure for CLS attention."""
    with progress(backbone.title, papers.sizes.pictures) as advance:
        counting = _within(advance)
        bank, labels = pooled_features(backbone, papers.bank, progress=counting), labels_of(papers.bank)
        scores = {
            test: _species(backbone, bank, labels, [getattr(paper, test) for paper in papers.papers], counting)
            for test in ("unc", "nat")
        }
        points = [keypoints.run(backbone, paper.pairs, progress=counting) for paper in papers.papers]
        films = [video_segmentation.run(backbone, paper.films, progress=counting) for paper in papers.papers]
        scores |= {"pck": stacked([pck(one) for one in points]), "jf": stacked([jf(one) for one in films])}
        found, attended = [], []
        for paper in papers.papers:
            regions = RegionStatistic(backbone.layout)
            saliency = SaliencyStatistic(backbone.layout, backbone.depth)
            observe(backbone, paper.parts, [regions, saliency], progress=counting)
            seen = regions.result()
            found.append(cluster_layers(seen.features.unbind(1), seen.category, seeds=CLUSTER_SEEDS))
            if backbone.layout.has_cls:
                attended.append(saliency.result().heads["cls", "corrected"].mean(0).T)  # (H, L)
    scores |= {name: stacked([getattr(one, name).mean(1) for one in found]) for name in ("purity", "nmi")}
    if attended:
        scores["iou"] = stacked(attended, [f"head {number + 1}" for number in range(backbone.heads)])
    return Answers(scores, stacked([_chance(one) for one in found]))


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


def _species(
    backbone: Backbone, bank: PooledFeatures, labels: Tensor, tests: list[SampleList], progress: Progress
) -> Scores:
    kinds = list(bank.features)
    right = []
    for test in tests:
        asked = pooled_features(backbone, test, progress=progress)
        by_kind = [
            species_right(list(bank.features[kind]), labels, list(asked.features[kind]), labels_of(test))
            for kind in kinds
        ]
        right.append(torch.stack(by_kind))  # (K, L)
    return stacked(right, [KINDS[kind] for kind in kinds])


def _chance(found: Clustering) -> Tensor:
    """The purity that the clusters have by chance, mean over layers: (1,)."""
    return found.chance.mean().reshape(1)


def _within(advance: Advance) -> Progress:
    """A progress that is part of another."""

    @contextmanager
    def part(title: str, total: int) -> Iterator[Advance]:
        yield advance

    return part
