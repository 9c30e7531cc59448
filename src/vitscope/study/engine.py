"""Runs a plan in this process: one forward pass per model and picture, every statistic watching, resumable anywhere.

A streamed job is cut into shards. After each shard the states of its statistics are written under a temporary name and
renamed; a killed run repeats at most one shard per model. Finished jobs are recognised by digest before any weights are
loaded. Pictures of a shard are decoded once for all models of the same input geometry.
"""

from __future__ import annotations

import json
import shutil
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path

from safetensors.torch import load_file, save_file

from vitscope.data.batches import Batch, SkippedImages, batches
from vitscope.data.samples import SampleList
from vitscope.errors import BadData
from vitscope.models import Backbone, load
from vitscope.observe import default_batch_size
from vitscope.progress import Advance, Progress, silent
from vitscope.results import Results, write_atomically
from vitscope.statistic import Statistic
from vitscope.study.folder import StudyFolder
from vitscope.study.plan import STREAMED, Job, Plan
from vitscope.study.roles import finish_streamed, run_task, statistics_of

LOADED_BYTES = 6 << 30  # parameters kept in memory together
Decoded = dict[tuple[tuple[int, int], str], tuple[list[Batch], dict[str, str]]]  # geometry -> batches, skipped


def run_plan(plan: Plan, folder: StudyFolder, *, progress: Progress = silent) -> None:
    """Do every job that is not done yet."""
    models = Models(plan)
    for role in plan.study.roles:
        waiting = []
        for job in plan.of(role):
            if folder.is_done(job.digest):
                folder.log("already done", model=job.title, role=role, job=job.digest)
            else:
                waiting.append(job)
        if not waiting:
            continue
        total = sum(job.count for job in waiting)
        with progress(role, total) as advance:
            if role in STREAMED:
                _stream(waiting, plan, folder, models, advance)
            else:
                for job in waiting:
                    _whole(job, folder, models, advance)


class Models:
    """Loads each model when it is first needed and keeps as many as fit."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._kept: OrderedDict[str, Backbone] = OrderedDict()

    def get(self, job: Job) -> Backbone:
        if job.title in self._kept:
            self._kept.move_to_end(job.title)
            return self._kept[job.title]
        spec, study = job.model, self.plan.study
        backbone = load(
            str(spec.weights) if spec.weights else spec.name,
            arch=spec.arch,
            size=spec.size,
            device=study.device,
            seed=study.seed,
        )
        backbone.title = job.title
        backbone.teaching = spec.teaching or backbone.teaching
        self._kept[job.title] = backbone
        while sum(_bytes(kept) for kept in self._kept.values()) > LOADED_BYTES and len(self._kept) > 1:
            self._kept.popitem(last=False)
        return backbone


def _bytes(backbone: Backbone) -> int:
    return sum(p.numel() * p.element_size() for p in backbone.module.parameters())


def _stream(jobs: list[Job], plan: Plan, folder: StudyFolder, models: Models, advance: Advance) -> None:
    for stretch in jobs[0].shards(plan.study.shard):
        decoded: Decoded = {}
        for job in jobs:
            path = _shard_path(folder, job, stretch)
            if not path.exists():
                _shard(job, stretch, path, models.get(job), plan, decoded, folder)
            advance(len(stretch))
    for job in jobs:
        backbone = models.get(job)
        statistics = statistics_of(job, backbone)
        skipped = SkippedImages(limit=plan.study.skip_limit)
        for stretch in job.shards(plan.study.shard):
            part = statistics_of(job, backbone)
            path = _shard_path(folder, job, stretch)
            load_states(part, path)
            for mine, theirs in zip(statistics, part, strict=True):
                mine.merge(theirs)
            for picture, reason in json.loads(path.with_suffix(".json").read_text()).items():
                skipped.add(picture, reason)
        results = finish_streamed(job, backbone, statistics)
        results.skipped |= skipped.reasons
        _done(job, folder, results, seen=statistics[0].count)
        shutil.rmtree(folder.job(job.digest) / "shards", ignore_errors=True)


def _shard_path(folder: StudyFolder, job: Job, stretch: range) -> Path:
    return folder.job(job.digest) / "shards" / f"{stretch.start:08}-{stretch.stop:08}.safetensors"


def _shard(
    job: Job, stretch: range, path: Path, backbone: Backbone, plan: Plan, decoded: Decoded, folder: StudyFolder
) -> None:
    """Trace one stretch of the sample list and write the states."""
    assert isinstance(job.dataset, SampleList)
    statistics = statistics_of(job, backbone)
    geometry = (backbone.preprocessing.size, backbone.preprocessing.interpolation)
    if geometry not in decoded:
        decoded[geometry] = _decode(job, stretch, backbone, plan)
    seen = 0
    pictures, skipped = decoded[geometry]
    for batch in pictures:
        for statistic in statistics:
            statistic.begin(batch)
        backbone.trace(batch.images, statistics)
        for statistic in statistics:
            statistic.end()
        seen += len(batch)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path.with_suffix(".json"), lambda to: to.write_text(json.dumps(skipped)))
    save_states(statistics, path)
    folder.log("traced", model=job.title, role=job.role, job=job.digest, pictures=seen, first=stretch.start)


def _decode(job: Job, stretch: range, backbone: Backbone, plan: Plan) -> tuple[list[Batch], dict[str, str]]:
    """The pictures of a stretch, in batches of whole CKA blocks where features need them."""
    assert isinstance(job.dataset, SampleList)
    size = default_batch_size(backbone)
    if "features" in job.analyses:
        size = max(size // plan.study.cka_block, 1) * plan.study.cka_block
    skipped = SkippedImages(limit=plan.study.skip_limit)
    stream = batches(
        job.dataset[stretch.start : stretch.stop],
        backbone.preprocessing,
        batch_size=size,
        skipped=skipped,
        annotations=job.role == "masks",
    )
    try:
        found = [replace(batch, indices=batch.indices + stretch.start) for batch in stream]
    except BadData:
        if len(skipped) < len(stretch) or len(stretch) == job.count:
            raise
        found = []  # a whole stretch of unreadable pictures; the limit over all of them decides
    return found, dict(skipped.reasons)


def _whole(job: Job, folder: StudyFolder, models: Models, advance: Advance) -> None:
    """A task: done in one piece."""
    results = run_task(job, models.get(job))
    folder.log("traced", model=job.title, role=job.role, job=job.digest, pictures=job.count, first=0)
    _done(job, folder, results, seen=job.count - len(results.skipped))
    advance(job.count)


def _done(job: Job, folder: StudyFolder, results: Results, *, seen: int) -> None:
    """Write the results, then the file that says the job is finished."""
    where = folder.job(job.digest)
    results.save(where)
    about = {"model": job.title, "role": job.role, "seen": seen, "planned": job.count, "skipped": results.skipped}
    write_atomically(where / "done.json", lambda path: path.write_text(json.dumps(about)))
    folder.log("finished", model=job.title, role=job.role, job=job.digest, pictures=seen)


def save_states(statistics: list[Statistic], path: Path) -> None:
    """The states of several statistics in one file, atomically."""
    tensors = {
        f"{statistic.name}|{key}": value.contiguous()
        for statistic in statistics
        for key, value in statistic.state().items()
    }
    write_atomically(path, lambda to: save_file(tensors, to))


def load_states(statistics: list[Statistic], path: Path) -> None:
    tensors = load_file(path)
    for statistic in statistics:
        start = f"{statistic.name}|"
        statistic.load_state({key[len(start) :]: value for key, value in tensors.items() if key.startswith(start)})
