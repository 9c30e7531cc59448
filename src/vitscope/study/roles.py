"""What a model does on the dataset of each role: which statistics watch, which tasks run, what rows come of it."""

from __future__ import annotations

from typing import Any

from vitscope.attention.saliency import SaliencyStatistic
from vitscope.attention.study import AttentionStudy, notes_on, saliency_tables
from vitscope.data.davis import VideoSet
from vitscope.data.keypoints import KeypointSet
from vitscope.data.revisited import RetrievalSet
from vitscope.data.samples import SampleList
from vitscope.models import Backbone
from vitscope.provenance import Provenance, provenance_of
from vitscope.results import Label, Results
from vitscope.statistic import Statistic
from vitscope.study.plan import Job
from vitscope.tasks.labelled import LabelledSet
from vitscope.tasks.study import TaskConfig, TaskData, study_tasks


def statistics_of(job: Job, backbone: Backbone) -> list[Statistic]:
    """The statistics that watch a streamed job's one pass, in a fixed order."""
    statistics: list[Statistic] = []
    if "attention" in job.analyses:
        statistics.append(AttentionStudy(backbone))
    if "saliency" in job.analyses:
        statistics.append(SaliencyStatistic(backbone.layout, backbone.depth))
    return statistics


def finish_streamed(job: Job, backbone: Backbone, statistics: list[Statistic]) -> Results:
    """Rows and maps of a streamed job, from its merged statistics."""
    assert isinstance(job.dataset, SampleList)
    results = Results(notes=[*backbone.notes, *job.dataset.notes])
    for statistic in statistics:
        about = provenance_of(backbone, job.dataset, statistic.name, job.settings)
        label = Label(backbone.title, backbone.teaching, job.role, about.digest)
        results.join(_finish(statistic, backbone, label, about))
    return results


def _finish(statistic: Statistic, backbone: Backbone, label: Label, about: Provenance) -> Results:
    seen: dict[str, Any] = {"seen": statistic.count, "title": backbone.title}
    results = Results(provenance=[about.as_dict() | seen])
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


def run_task(job: Job, backbone: Backbone) -> Results:
    """A downstream task at every layer, from one extraction."""
    data, config = (
        job.dataset,
        TaskConfig(
            protocols=tuple(job.settings.get("protocols", ("corrected",))),
            probe="probe" in job.analyses,
            seed=job.settings["seed"],
            skip_limit=job.settings["skip_limit"],
        ),
    )
    if isinstance(data, LabelledSet):
        chosen = TaskData(labelled=data)
    elif isinstance(data, RetrievalSet):
        chosen = TaskData(retrieval=(data,))
    elif isinstance(data, VideoSet):
        chosen = TaskData(videos=data)
    else:
        assert isinstance(data, KeypointSet)
        chosen = TaskData(keypoints=data)
    results, _ = study_tasks(backbone, chosen, config)
    return results
