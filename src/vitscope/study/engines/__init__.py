"""Who does the jobs of a plan: this process, several beside each other, or a Ray cluster; with the same results."""

from __future__ import annotations

from vitscope.progress import Progress, silent
from vitscope.study.engines.cluster import run_on_cluster
from vitscope.study.engines.pool import run_in_pool
from vitscope.study.engines.worker import Worker
from vitscope.study.folder import StudyFolder
from vitscope.study.plan import Plan


def run_plan(plan: Plan, folder: StudyFolder, *, progress: Progress = silent) -> None:
    """Do every job that is not done yet."""
    waiting = []
    for job in plan.jobs:
        if folder.is_done(job.digest):
            folder.log("already done", model=job.title, role=job.role, job=job.digest)
        else:
            waiting.append(job)
    processes = min(plan.study.processes, len(waiting))
    if waiting and plan.study.engine == "ray":
        run_on_cluster(plan, folder, waiting, progress=progress)
    elif processes > 1:
        run_in_pool(plan, folder, waiting, processes, progress=progress)
    else:
        with Worker(plan, folder, progress=progress) as worker:
            for job in waiting:
                worker.do(job)
