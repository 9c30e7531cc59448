"""What a model does on the dataset of each role: which statistics watch, which tasks run, what rows come of it."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from vitscope.attention.observer import AttentionStudy, saliency_tables
from vitscope.attention.saliency import SaliencyStatistic
from vitscope.attention.study import notes_on
from vitscope.data.davis import VideoSet
from vitscope.data.keypoints import KeypointSet
from vitscope.data.revisited import RetrievalSet
from vitscope.data.samples import SampleList
from vitscope.features.analysis import analyse_model
from vitscope.features.record import ModelRecord, observe_model, plan_for
from vitscope.models import Backbone
from vitscope.progress import Progress, silent
from vitscope.provenance import provenance_of
from vitscope.results import Label, Results
from vitscope.statistic import Statistic
from vitscope.study.plan import STREAMED, Job
from vitscope.tasks.labelled import LabelledSet
from vitscope.tasks.study import TaskConfig, TaskData, study_tasks

CLUSTER_SEEDS = 3


def run_role(job: Job, backbone: Backbone, folder: Path, *, progress: Progress = silent) -> tuple[Results, int]:
    """Do a job; returns its results and how many pictures were seen."""
    if job.role in STREAMED:
        results, seen = _observe(job, backbone, folder, progress)
    else:
        results = run_task(job, backbone, progress)
        seen = job.count - len(results.skipped)
    results.notes[:0] = [note for note in backbone.notes if note not in results.notes]
    results.table = results.table.with_columns(dataset=pl.lit(job.role)) if job.role in STREAMED else results.table
    return results, seen


def records_folder(folder: Path) -> Path:
    return folder / "records"


def record_of(job: Job, folder: Path) -> ModelRecord:
    """The record that a finished streamed job left; nothing is run."""
    home = next(path.parent for path in records_folder(folder).glob("*/provenance.json"))
    return ModelRecord(home, title=job.title, teaching=job.model.teaching or "")


def _watching(job: Job, backbone: Backbone) -> list[Statistic]:
    """The statistics that watch the pass beside those of the features."""
    if "attention" in job.analyses:
        return [AttentionStudy(backbone)]
    if "saliency" in job.analyses:
        return [SaliencyStatistic(backbone.layout, backbone.depth)]
    return []


def _observe(job: Job, backbone: Backbone, folder: Path, progress: Progress) -> tuple[Results, int]:
    """One pass for everything that this role's dataset is for."""
    samples = job.dataset
    assert isinstance(samples, SampleList)
    record = observe_model(
        backbone,
        samples,
        records_folder(folder),
        plan_for(samples, "corrected"),
        watching=lambda: _watching(job, backbone),
        skip_limit=job.settings["skip_limit"],
        progress=progress,
    )
    results = Results(notes=list(samples.notes), skipped=dict(record.store.skipped))
    for statistic in record.watched(lambda: _watching(job, backbone)):
        results.join(_rows_of(statistic, job, backbone))
    if "features" in job.analyses:
        results.join(analyse_model(record, seeds=CLUSTER_SEEDS))
    elif "objects" in job.analyses:
        found = analyse_model(record, seeds=CLUSTER_SEEDS, projections=False)
        found.table = found.table.filter(pl.col("variant").str.starts_with("regions"))
        results.join(Results(found.table, provenance=found.provenance, notes=found.notes))
    return results, len(record.store)


def _rows_of(statistic: Statistic, job: Job, backbone: Backbone) -> Results:
    assert isinstance(job.dataset, SampleList)
    about = provenance_of(backbone, job.dataset, statistic.name, job.settings)
    label = Label(backbone.title, backbone.teaching, job.role, about.digest)
    results = Results(provenance=[about.as_dict() | {"seen": statistic.count, "title": backbone.title}])
    if isinstance(statistic, AttentionStudy):
        result = statistic.result()
        results.extend(result.tables(label))
        results.maps = {f"{backbone.title}/{name}": value for name, value in result.maps().items()}
        results.notes = notes_on(statistic, backbone)
    elif isinstance(statistic, SaliencyStatistic):
        found = statistic.result()
        results.extend(saliency_tables(label, found))
        if found.without_object:
            lost = f"{backbone.title}: {found.without_object} pictures have no object inside the crop"
            results.notes = [f"{lost}; saliency leaves them out"]
    return results


def run_task(job: Job, backbone: Backbone, progress: Progress) -> Results:
    """A downstream task at every layer, from one extraction."""
    config = TaskConfig(
        protocols=tuple(job.settings.get("protocols", ("corrected",))),
        probe="probe" in job.analyses,
        seed=job.settings["seed"],
        skip_limit=job.settings["skip_limit"],
    )
    data = job.dataset
    if isinstance(data, LabelledSet):
        chosen = TaskData(labelled=data)
    elif isinstance(data, RetrievalSet):
        chosen = TaskData(retrieval=(data,))
    elif isinstance(data, VideoSet):
        chosen = TaskData(videos=data)
    else:
        assert isinstance(data, KeypointSet)
        chosen = TaskData(keypoints=data)
    return study_tasks(backbone, chosen, config, progress=progress)[0]
