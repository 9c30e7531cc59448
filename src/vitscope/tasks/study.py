"""All tasks of one model: what was asked for, the numbers as tidy results, and what pictures can be drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from vitscope.data.batches import SkippedImages
from vitscope.data.davis import VideoSequence, VideoSet
from vitscope.data.keypoints import KeypointSet
from vitscope.data.revisited import RetrievalSet
from vitscope.data.samples import SampleList
from vitscope.models.backbone import Backbone
from vitscope.progress import Progress, silent
from vitscope.provenance import provenance_of
from vitscope.results import Label, Results
from vitscope.tasks import keypoints, knn, linear_probe, retrieval, video_segmentation
from vitscope.tasks.davis_results import write_masks
from vitscope.tasks.labelled import LabelledFeatures, LabelledSet, extract
from vitscope.tasks.official import name_of_keypoints, name_of_labelled, name_of_retrieval, name_of_videos

SNAPSHOTS = 5  # frames of each video that are kept for pictures


@dataclass(frozen=True)
class TaskData:
    """What to do the tasks on; what is None is not done."""

    labelled: LabelledSet | None = None  # k-NN and linear probe
    retrieval: tuple[RetrievalSet, ...] = ()
    videos: VideoSet | None = None
    keypoints: KeypointSet | None = None


@dataclass
class Evidence:
    """What pictures of one model are drawn from: answers at every layer."""

    model: str
    protocol: str  # of the snapshots and matches: the first that was asked for
    neighbours: knn.KnnScores | None = None
    features: LabelledFeatures | None = None
    retrieved: dict[str, retrieval.RetrievalScores] = field(default_factory=dict)  # dataset -> what was found
    snapshots: dict[str, dict[int, np.ndarray]] = field(default_factory=dict)  # video -> frame -> masks (L, H, W)
    matches: keypoints.KeypointScores | None = None


@dataclass(frozen=True)
class TaskConfig:
    protocols: tuple[str, ...] = ("corrected",)  # where `paper` differs: retrieval, video and keypoints
    probe: bool = True
    seed: int = 0  # of resampling, and of the pictures on which the probe's penalty is chosen
    masks: Path | None = None  # where predicted masks are written; None: nowhere
    store: Path | None = None  # where pooled features are kept; None: in memory
    skip_limit: int = 50  # unreadable pictures that are passed over


DEFAULT = TaskConfig()


def study_tasks(
    backbone: Backbone, data: TaskData, config: TaskConfig = DEFAULT, *, progress: Progress = silent
) -> tuple[Results, Evidence]:
    """Do every task on one model, each picture through the network once per task and protocol for all layers."""
    study = _Study(backbone, config, progress)
    if data.labelled:
        study.classify(data.labelled)
    for protocol in config.protocols:
        for some in data.retrieval:
            study.retrieve(some, protocol)
        if data.videos:
            study.follow(data.videos, protocol)
        if data.keypoints:
            study.match(data.keypoints, protocol)
    return study.results, study.evidence


class _Study:
    def __init__(self, backbone: Backbone, config: TaskConfig, progress: Progress) -> None:
        self.backbone, self.config, self.progress = backbone, config, progress
        self.results, self.evidence = Results(), Evidence(backbone.title, config.protocols[0])
        if not backbone.layout.has_cls:
            self.results.notes.append(f"{backbone.title} has no CLS token: its pictures are told by the mean token")

    def classify(self, data: LabelledSet) -> None:
        skipped = self._skipped()
        features = extract(self.backbone, data, store=self.config.store, skipped=skipped, progress=self.progress)
        name, origin = name_of_labelled(data), f"{data.train.origin}, {data.test.origin}"
        label = self._label(name, data.digest, origin, len(data.train) + len(data.test), "knn", {"ks": knn.KS})
        found = knn.run(self.backbone, data, features=features, progress=self.progress)
        self._take([row for kind, scores in found.items() for row in scores.rows(label, kind, "corrected")], data.notes)
        self.evidence.neighbours, self.evidence.features = next(iter(found.values())), features
        if self.config.probe:
            settings = linear_probe.ProbeConfig(seed=self.config.seed)
            about = {"penalties": settings.penalties, "seed": settings.seed}
            label = self._label(name, data.digest, origin, len(data.train) + len(data.test), "linear_probe", about)
            probed = linear_probe.run(self.backbone, data, settings, features=features, progress=self.progress)
            self._take([row for kind, scores in probed.items() for row in scores.rows(label, kind, "corrected")])
        self.results.skipped |= skipped.reasons

    def retrieve(self, data: RetrievalSet, protocol: str) -> None:
        chosen = retrieval.PAPER if protocol == "paper" else retrieval.CORRECTED
        skipped = self._skipped()
        label = self._label(
            name_of_retrieval(data),
            data.digest,
            data.database.origin,
            len(data.database),
            "retrieval",
            {"protocol": protocol},
        )
        found = retrieval.run(
            self.backbone, data, retrieval.RetrievalConfig(chosen), skipped=skipped, progress=self.progress
        )
        self._take([row for kind, scores in found.items() for row in scores.rows(label, kind, protocol)], data.notes)
        if protocol == self.config.protocols[0]:
            self.evidence.retrieved[label.dataset] = next(iter(found.values()))
        self.results.skipped |= skipped.reasons

    def follow(self, data: VideoSet, protocol: str) -> None:
        chosen = video_segmentation.PAPER if protocol == "paper" else video_segmentation.CORRECTED
        settings = {"protocol": protocol, "seed": self.config.seed}
        count = sum(len(sequence) for sequence in data.sequences)
        label = self._label(name_of_videos(data), data.digest, data.origin, count, "video", settings)

        def watch(sequence: VideoSequence, number: int, masks: np.ndarray) -> None:
            if protocol == self.config.protocols[0]:
                if number in snapshot_frames(len(sequence)):
                    self.evidence.snapshots.setdefault(sequence.name, {})[number] = masks
                if self.config.masks is not None:
                    write_masks(self.config.masks, sequence, number, masks)

        scores = video_segmentation.run(
            self.backbone, data, video_segmentation.VideoConfig(chosen), watch=watch, progress=self.progress
        )
        notes = list(data.notes)
        if len(scores.sequences) < len(data):
            notes.append("videos without masks beyond the first frame were followed but could not be scored")
        self._take(scores.rows(label, protocol, self.config.seed) if scores.sequences else [], notes)

    def match(self, data: KeypointSet, protocol: str) -> None:
        chosen = keypoints.PAPER if protocol == "paper" else keypoints.CORRECTED
        settings = {"protocol": protocol, "seed": self.config.seed}
        skipped = self._skipped()
        label = self._label(
            name_of_keypoints(data), data.digest, data.images.origin, len(data.images), "keypoints", settings
        )
        scores = keypoints.run(
            self.backbone, data, keypoints.KeypointConfig(chosen), skipped=skipped, progress=self.progress
        )
        notes = list(data.notes)
        if left := len(data.pairs) - len(scores.pairs):
            notes.append(f"{left} pairs were left out: an image of theirs could not be read")
        self._take(scores.rows(label, protocol, self.config.seed), notes)
        if protocol == self.config.protocols[0]:
            self.evidence.matches = scores
        self.results.skipped |= skipped.reasons

    def _skipped(self) -> SkippedImages:
        return SkippedImages(limit=self.config.skip_limit)

    def _label(self, name: str, digest: str, origin: str, count: int, task: str, settings: dict[str, Any]) -> Label:
        about = provenance_of(self.backbone, SampleList((), origin=origin), task, settings)
        about = replace(about, samples=digest, count=count)
        self.results.provenance.append(about.as_dict() | {"title": self.backbone.title})
        return Label(self.backbone.title, self.backbone.teaching, name, about.digest)

    def _take(self, rows: Sequence[pl.DataFrame], notes: Sequence[str] = ()) -> None:
        self.results.extend(rows)
        self.results.notes += [note for note in notes if note not in self.results.notes]


def snapshot_frames(length: int) -> list[int]:
    """Frames for a picture: the first, the last, and some evenly between."""
    return sorted({round(i * (length - 1) / (SNAPSHOTS - 1)) for i in range(SNAPSHOTS)})
