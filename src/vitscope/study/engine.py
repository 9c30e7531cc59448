"""Runs a plan in this process: one forward pass per model and picture, every statistic watching, resumable anywhere.

Finished jobs are recognised by digest before any weights are loaded. Streamed jobs are cut into shards that are written
as they are done, so that a killed run repeats at most one of them. Pictures are decoded once for all models of the same
input size, as far as they fit in memory.
"""

from __future__ import annotations

import gc
import json

from vitscope.data.batches import decoded_once
from vitscope.models import Backbone, load
from vitscope.progress import Progress, silent
from vitscope.results import Results, write_atomically
from vitscope.study.folder import StudyFolder
from vitscope.study.plan import Job, Plan
from vitscope.study.roles import run_role


def run_plan(plan: Plan, folder: StudyFolder, *, progress: Progress = silent) -> None:
    """Do every job that is not done yet, role by role."""
    for role in plan.study.roles:
        with decoded_once():
            for job in plan.of(role):
                if folder.is_done(job.digest):
                    folder.log("already done", model=job.title, role=role, job=job.digest)
                else:
                    _run(job, plan, folder, progress)


def _run(job: Job, plan: Plan, folder: StudyFolder, progress: Progress) -> None:
    folder.log("started", model=job.title, role=job.role, job=job.digest)
    backbone = load_model(job, plan)
    where = folder.job(job.digest)
    where.mkdir(exist_ok=True)

    def titled(_title: str, total: int):  # type: ignore[no-untyped-def]
        return progress(f"{job.role}: {job.title}", total)

    results, seen = run_role(job, backbone, where, progress=titled)
    folder.log("traced", model=job.title, role=job.role, job=job.digest, pictures=backbone.pictures_traced)
    finish(job, folder, results, seen)
    del backbone
    gc.collect()  # twenty models do not fit in memory together


def load_model(job: Job, plan: Plan) -> Backbone:
    """The model of a job, under the title and teaching that the study file gives it."""
    spec, study = job.model, plan.study
    source = str(spec.weights) if spec.weights else spec.name
    backbone = load(source, arch=spec.arch, size=spec.size, device=study.device, seed=study.seed)
    backbone.title = job.title
    backbone.teaching = spec.teaching or backbone.teaching
    return backbone


def finish(job: Job, folder: StudyFolder, results: Results, seen: int) -> None:
    """Write the results, then the file that says the job is finished."""
    where = folder.job(job.digest)
    results.save(where)
    about = {"model": job.title, "role": job.role, "seen": seen, "planned": job.count, "skipped": results.skipped}
    write_atomically(where / "done.json", lambda path: path.write_text(json.dumps(about)))
    folder.log("finished", model=job.title, role=job.role, job=job.digest, pictures=seen)
