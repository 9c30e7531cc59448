"""Handing out jobs: to whoever is free, of the model that is loaded there; again, if a worker is lost.

The loop is the same for processes of this machine and for actors of a cluster. Starting workers, noticing that one is
gone and putting another in its place is the crew's: multiprocessing does it here, Ray there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from vitscope.core.progress import Advance, Progress
from vitscope.pipeline.plan import Job, Schedule
from vitscope.pipeline.store import Store


class Engine(Protocol):
    """Runs a schedule; what fails is in `schedule.failures` afterwards."""

    def run(self, schedule: Schedule, store: Store, progress: Progress) -> None: ...


@dataclass(frozen=True)
class Event:
    """What happened at a worker. kind: tick (images, so many), done, failed (an error), or lost."""

    worker: int
    kind: str
    payload: Any = None


class Crew(Protocol):
    """Workers, numbered; one that is lost is replaced under the same number."""

    @property
    def workers(self) -> Sequence[int]:
        """Those who can be given something."""
        ...

    def give(self, worker: int, job: Job) -> None: ...

    def wait(self) -> list[Event]:
        """What happened since; blocks until something has."""
        ...


def supervise(schedule: Schedule, crew: Crew, store: Store, advance: Advance) -> None:
    """Keep everybody busy until all that can be done is done."""
    busy: dict[int, Job] = {}
    warm: dict[int, int] = {}  # worker -> the model it has loaded
    left: dict[int, int] = {}  # images of its job that it has not told yet
    while not schedule.finished:
        for worker in [w for w in crew.workers if w not in busy]:
            job = schedule.next(warm.get(worker))
            if job is None:
                break
            busy[worker], warm[worker], left[worker] = job, job.model, job.images
            crew.give(worker, job)
            advance(0, schedule.plan.doing(job))
        assert busy or not crew.workers, "jobs wait for what nobody will do"
        for event in crew.wait():
            if event.worker not in busy:
                continue
            job = busy[event.worker]
            if event.kind == "tick":
                n = min(event.payload, left[event.worker])
                left[event.worker] -= n
                advance(n)
                continue
            del busy[event.worker]
            if event.kind == "done":
                advance(left[event.worker])
                schedule.done(job)
            elif event.kind == "failed":
                schedule.fail(job, event.payload)
            else:
                warm.pop(event.worker, None)
                again = schedule.give_back(job, "its worker was lost")
                store.log("lost", what=schedule.plan.describe(job), again=again)
