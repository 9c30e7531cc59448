"""Heavy work off the event loop: one thread, the most urgent job first, and what nobody waits for is dropped."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

MOST_WAITING = 64


class Busy(Exception):
    """More jobs wait than are worth waiting for."""


@dataclass(order=True)
class Job:
    """Work that somebody waits for. `wanted` counts them; at none it is not begun, or stops where it can."""

    urgency: int  # smaller is sooner
    number: int
    key: Hashable = field(compare=False)
    work: Callable[[Callable[[], bool]], Any] = field(compare=False)
    wanted: int = field(default=1, compare=False)
    future: Future[Any] = field(default_factory=Future, compare=False)

    def abandoned(self) -> bool:
        return self.wanted <= 0


class Worker:
    """One thread: a network uses all cores by itself, and two would only get in each other's way."""

    def __init__(self) -> None:
        self._jobs: dict[Hashable, Job] = {}  # waiting or under way
        self._heap: list[Job] = []
        self._changed = threading.Condition()
        self._numbers = itertools.count()
        self._open = True
        self._thread = threading.Thread(target=self._run, name="vitscope-explorer", daemon=True)
        self._thread.start()

    def submit(self, key: Hashable, work: Callable[[Callable[[], bool]], Any], urgency: int = 0) -> Job:
        """Have `work(stop)` done; the same key while it waits or runs is the same job."""
        with self._changed:
            job = self._jobs.get(key)
            if job is not None and not job.abandoned():
                job.wanted += 1
                return job
            if sum(not job.abandoned() for job in self._heap) >= MOST_WAITING:
                raise Busy
            job = Job(urgency, next(self._numbers), key, work)
            self._jobs[key] = job
            heapq.heappush(self._heap, job)
            self._changed.notify()
            return job

    def leave(self, job: Job) -> None:
        """One who waited does so no longer."""
        with self._changed:
            job.wanted -= 1

    @property
    def waiting(self) -> int:
        with self._changed:
            return sum(not job.abandoned() for job in self._jobs.values())

    def pressed(self, urgency: int) -> bool:
        """Whether something more urgent than this waits."""
        with self._changed:
            return any(job.urgency < urgency and not job.abandoned() for job in self._heap)

    def close(self) -> None:
        with self._changed:
            self._open = False
            for job in self._jobs.values():
                job.wanted = 0
            self._changed.notify()
        self._thread.join(timeout=30)

    def _run(self) -> None:
        while True:
            with self._changed:
                while self._open and not self._heap:
                    self._changed.wait()
                if not self._open:
                    return
                job = heapq.heappop(self._heap)
            try:
                if job.abandoned():
                    job.future.cancel()
                else:
                    job.future.set_result(job.work(job.abandoned))
            except BaseException as error:
                job.future.set_exception(error)
            with self._changed:
                if self._jobs.get(job.key) is job:
                    del self._jobs[job.key]
