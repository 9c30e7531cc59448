"""From a study file to jobs: one per model and dataset role, named by a digest of everything that decides its numbers.

Datasets are opened and models identified (weights hashed, nothing loaded) before any work, so that what is missing is
told at once and what is done already is recognised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from vitscope.data.davis import VideoSet, open_videos
from vitscope.data.folders import open_images
from vitscope.data.keypoints import KeypointSet
from vitscope.data.masks import open_masks
from vitscope.data.retrieval import open_retrieval
from vitscope.data.revisited import RetrievalSet
from vitscope.data.samples import SampleList
from vitscope.data.spair import open_keypoints
from vitscope.device import choose_device, compute_dtype
from vitscope.digest import digest_of
from vitscope.models import identify
from vitscope.provenance import versions
from vitscope.study.file import NEEDS, DataSpec, ModelSpec, StudyFile
from vitscope.tasks.labelled import LabelledSet, open_labelled

Dataset = SampleList | LabelledSet | RetrievalSet | VideoSet | KeypointSet
STREAMED = ("images", "masks")  # roles that statistics watch; the others are tasks


@dataclass(frozen=True)
class Job:
    """All that one model has to do on one dataset."""

    model: ModelSpec
    role: str
    dataset: Dataset
    analyses: tuple[str, ...]
    settings: dict[str, Any]
    identity: dict[str, Any]  # of the model, without loading it

    @property
    def title(self) -> str:
        return self.model.title or self.model.name

    @cached_property
    def digest(self) -> str:
        return digest_of(
            {
                "model": self.identity,
                "title": self.title,
                "teaching": self.model.teaching,
                "role": self.role,
                "data": self.dataset.digest,
                "analyses": self.analyses,
                "settings": self.settings,
                "versions": versions(),
            }
        )

    @property
    def count(self) -> int:
        """Pictures that go through the network."""
        data = self.dataset
        if isinstance(data, LabelledSet):
            return len(data.train) + len(data.test)
        if isinstance(data, RetrievalSet):
            return len(data.database) + len(data.query_images)
        if isinstance(data, VideoSet):
            return sum(len(sequence) for sequence in data.sequences)
        if isinstance(data, KeypointSet):
            return len(data.images)
        return len(data)


@dataclass(frozen=True)
class Plan:
    study: StudyFile
    jobs: tuple[Job, ...]

    def of(self, role: str) -> Sequence[Job]:
        return [job for job in self.jobs if job.role == role]


def make_plan(study: StudyFile) -> Plan:
    """Open every dataset, identify every model, and write down the jobs: role by role, model by model."""
    datasets = {role: open_role(role, getattr(study.data, role), study.seed) for role in study.roles}
    identities = []
    for spec in study.models:
        source = str(spec.weights) if spec.weights else spec.name
        identities.append(identify(source, arch=spec.arch, size=spec.size, seed=study.seed))
    dtype = str(compute_dtype(choose_device(study.device)))
    jobs = []
    for role in study.roles:
        analyses = tuple(a for a in study.chosen if NEEDS[a] == role)
        settings: dict[str, Any] = {"seed": study.seed, "dtype": dtype, "skip_limit": study.skip_limit}
        if role in ("retrieval", "video", "keypoints"):
            settings["protocols"] = list(study.protocols)
        jobs += [
            Job(spec, role, datasets[role], analyses, settings, identity)
            for spec, identity in zip(study.models, identities, strict=True)
        ]
    return Plan(study, tuple(jobs))


def open_role(role: str, spec: DataSpec, seed: int) -> Dataset:
    """Open the dataset of a role; its layout is checked here."""
    if role == "images":
        # one seeded order for all models: minibatch CKA compares pictures within blocks of it
        return _limited(open_images(spec.path), spec.limit, seed).shuffled(seed)
    if role == "masks":
        return _limited(open_masks(spec.path, spec.images), spec.limit, seed)
    if role == "labelled":
        return open_labelled(spec.path, limit=spec.limit, seed=seed)
    if role == "retrieval":
        return open_retrieval(spec.path)
    if role == "video":
        return open_videos(spec.path)
    pairs = open_keypoints(spec.path)
    return pairs.limit(spec.limit, seed) if spec.limit else pairs


def _limited(samples: SampleList, limit: int | None, seed: int) -> SampleList:
    return samples.limit(limit, seed) if limit else samples
