"""One job after the other: one forward pass per model and picture, every statistic watching, resumable anywhere.

Streamed jobs are cut into shards that are written as they are done, so that a killed run repeats at most one of them.
Pictures are decoded once for all models of the same input size, as far as they fit in memory.
"""

from __future__ import annotations

import gc
import json
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType

from vitscope.data.batches import DECODED_BYTES, decoded_once
from vitscope.models import Backbone, load
from vitscope.progress import Advance, Progress, silent
from vitscope.results import Results, write_atomically
from vitscope.study.folder import StudyFolder
from vitscope.study.plan import Job, Plan
from vitscope.study.roles import run_role


class Worker:
    """Does jobs. As long as the role stays the same, pictures stay decoded: give it jobs role by role."""

    def __init__(
        self,
        plan: Plan,
        folder: StudyFolder,
        *,
        device: str | None = None,
        decoded_bytes: int = DECODED_BYTES,
        progress: Progress = silent,
    ) -> None:
        self.plan, self.folder, self.progress = plan, folder, progress
        self.device = device or plan.study.device
        self.decoded_bytes = decoded_bytes
        self.role = ""
        self.decoded = ExitStack()
        gc.freeze()  # libraries stay: not to be searched by every collection below

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.decoded.close()

    def do(self, job: Job) -> None:
        """Run a job and write what came of it; the file that says it is done is written last."""
        if job.role != self.role:
            self.decoded.close()
            self.decoded.enter_context(decoded_once(self.decoded_bytes))
            self.role = job.role
        self.folder.log("started", model=job.title, role=job.role, job=job.digest)
        backbone = self.load(job)
        where = self.folder.job(job.digest)
        where.mkdir(exist_ok=True)

        def titled(_title: str, total: int) -> AbstractContextManager[Advance]:
            return self.progress(f"{job.role}: {job.title}", total)

        results, seen = run_role(job, backbone, where, progress=titled)
        traced = backbone.pictures_traced
        self.folder.log("traced", model=job.title, role=job.role, job=job.digest, pictures=traced)
        finish(job, self.folder, results, seen)
        del backbone
        gc.collect()  # twenty models do not fit in memory together

    def load(self, job: Job) -> Backbone:
        """The model of a job, under the title and teaching that the study file gives it."""
        spec = job.model
        source = str(spec.weights) if spec.weights else spec.name
        backbone = load(source, arch=spec.arch, size=spec.size, device=self.device, seed=self.plan.study.seed)
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
