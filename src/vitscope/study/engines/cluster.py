"""Jobs on a Ray cluster: a warm worker for each share of it, the same jobs, the same files.

Workers write into the study's folder, which every node must see. With RAY_ADDRESS in the environment that cluster is
used; without it one is started on this machine, for this machine only, and stopped at the end.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import torch
from threadpoolctl import threadpool_limits

from vitscope.device import choose_device
from vitscope.errors import VitscopeError
from vitscope.progress import Progress
from vitscope.study.engines.worker import Worker
from vitscope.study.folder import StudyFolder
from vitscope.study.plan import Job, Plan


def run_on_cluster(plan: Plan, folder: StudyFolder, jobs: Sequence[Job], *, progress: Progress) -> None:
    """Do the jobs, `processes` at a time; the first error stops the rest and is raised, what is done stays done."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        from ray.util import ActorPool
    except ImportError as error:
        raise VitscopeError("engine = 'ray' needs Ray: pip install 'vitscope[ray]', or use engine = 'local'") from error
    if "RAY_ADDRESS" in os.environ:
        ray.init(log_to_driver=False)
    else:
        ray.init(log_to_driver=False, include_dashboard=False, _node_ip_address="127.0.0.1")
    try:
        count = min(plan.study.processes, len(jobs))
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)) // count)
        gpus = 1 if choose_device(plan.study.device).type == "cuda" else 0
        worker = ray.remote(num_cpus=cores, num_gpus=gpus)(ClusterWorker)
        shared = ray.put(plan)
        pool = ActorPool([worker.remote(shared, folder.root, cores) for _ in range(count)])
        with progress(f"{len(jobs)} jobs on {count} Ray workers", sum(job.count for job in jobs)) as advance:
            places = [plan.jobs.index(job) for job in jobs]
            for pictures in pool.map_unordered(lambda actor, place: actor.do.remote(place), places):
                advance(pictures)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        raise (cause if isinstance(cause, VitscopeError) else error) from None
    except ray.exceptions.RayActorError as error:
        raise VitscopeError(
            "a Ray worker was lost, perhaps for want of memory: what is done is kept, run again with fewer processes"
        ) from error
    finally:
        ray.shutdown()


class ClusterWorker:
    """What lives in a Ray worker."""

    def __init__(self, plan: Plan, root: Path, cores: int) -> None:
        torch.set_num_threads(cores)
        threadpool_limits(cores)
        self.worker = Worker(plan, StudyFolder(root, plan.study.title))

    def do(self, place: int) -> int:
        """Do the job at this place of the plan; returns how many pictures it had."""
        job = self.worker.plan.jobs[place]
        self.worker.do(job)
        return job.count
