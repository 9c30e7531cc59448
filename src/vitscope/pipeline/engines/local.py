"""Jobs on this machine: in this process, or in several that share its cores, memory and GPUs.

For small networks two processes of one thread do far more than one process of two. The processes are started afresh
(nothing is forked under running threads) and end with the process that started them, however that one ends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from multiprocessing.context import SpawnProcess
from pathlib import Path
from threading import Thread, current_thread, main_thread

import torch
from threadpoolctl import threadpool_limits

from vitscope.core.device import nth_device
from vitscope.core.errors import VitscopeError
from vitscope.core.progress import Progress
from vitscope.pipeline.engines.crew import Event, supervise
from vitscope.pipeline.plan import Job, Plan, Schedule
from vitscope.pipeline.store import Store
from vitscope.pipeline.worker import Worker

TICK = 16  # images between two words of a worker about its progress
STILLBORN = (
    "the processes that should do the work end before they begin: in a script, call vitscope below "
    '`if __name__ == "__main__":`, since every process reads the script; elsewhere the machine may be out of memory'
)


@dataclass(frozen=True)
class Local:
    """This machine. processes: jobs done side by side."""

    processes: int = 1

    def __post_init__(self) -> None:
        if self.processes < 1:
            raise VitscopeError(f"{self.processes} processes cannot do anything: use 1 or more")

    def run(self, schedule: Schedule, store: Store, progress: Progress) -> None:
        jobs = schedule.jobs
        total = sum(job.images for job in jobs)
        title = f"{len(jobs)} jobs" + (f" in {self.processes} processes" if self.processes > 1 else "")
        with progress(title, total) as advance:
            if min(self.processes, len(jobs)) <= 1:
                worker = Worker(schedule.plan, store)
                while (job := schedule.next()) is not None:
                    advance(0, schedule.plan.doing(job))
                    try:
                        worker.do(job, advance)
                    except VitscopeError as error:
                        schedule.fail(job, error)
                    else:
                        schedule.done(job)
                return
            processes = Processes(schedule.plan, store, min(self.processes, len(jobs)))
            try:
                supervise(schedule, processes, store, advance)
            finally:
                processes.end()


class Processes:
    """A crew of processes."""

    def __init__(self, plan: Plan, store: Store, count: int) -> None:
        self.plan, self.root, self.count = plan, store.root, count
        self.context = multiprocessing.get_context("spawn")
        self.members: dict[int, tuple[SpawnProcess, Connection]] = {}
        self.begun: set[int] = set()
        self.stillborn = 0  # processes in a row that ended before they began
        for number in range(count):
            self._start(number)

    @property
    def workers(self) -> Sequence[int]:
        return list(self.members)

    def _start(self, number: int) -> None:
        here, there = self.context.Pipe()
        threads = max(1, (os.cpu_count() or 1) // self.count)
        arguments = (self.plan, self.root, nth_device(self.plan.device, number), threads, there)
        process = self.context.Process(target=_serve, args=arguments, daemon=True)
        # Ctrl-C goes to all processes of a terminal: it is for this one to end the others, from their first moment on.
        # Python's resource tracker, begun by the first start, would lift the mask before the process inherits it.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with _terminated_later():
                process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        there.close()
        self.members[number] = (process, here)

    def give(self, worker: int, job: Job) -> None:
        with suppress(OSError):  # it has just ended: `wait` tells
            self.members[worker][1].send(job)

    def wait(self) -> list[Event]:
        by_source = {source: n for n, (p, c) in self.members.items() for source in (c, p.sentinel)}
        events = []
        lost = set()
        for source in wait_for(list(by_source)):
            number = by_source[source]  # type: ignore[index]
            connection = self.members[number][1]
            try:
                while connection.poll():
                    kind, payload = connection.recv()
                    if kind == "begun":
                        self.begun.add(number)
                        self.stillborn = 0
                    else:
                        events.append(Event(number, kind, payload))
            except (EOFError, OSError):
                lost.add(number)
            if source == self.members[number][0].sentinel:
                lost.add(number)
        for number in lost:
            events.append(Event(number, "lost"))
            self.stillborn += number not in self.begun
            if self.stillborn > self.count:
                raise VitscopeError(STILLBORN)
            self._stop(number)
            self._start(number)
        return events

    def _stop(self, number: int) -> None:
        self.begun.discard(number)
        process, connection = self.members.pop(number)
        process.kill()
        process.join()
        connection.close()

    def end(self) -> None:
        for number in list(self.members):
            self._stop(number)


@contextmanager
def _terminated_later() -> Iterator[None]:
    """SIGTERM waits: a process that was begun and never told what it is for would complain aloud.

    It is not blocked, since the new process would inherit that, and end no more when it is asked to.
    """
    if current_thread() is not main_thread():  # where no signal arrives
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if came:
            os.kill(os.getpid(), signal.SIGTERM)


# -- in the processes -----------------------------------------------------------------------------------------------


def _serve(plan: Plan, root: Path, device: str, threads: int, parent: Connection) -> None:
    Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    threadpool_limits(threads)  # of NumPy and scikit-learn
    worker = Worker(plan, Store(root), device=device)
    with suppress(EOFError, ConnectionError):  # the parent is gone: so is this process, without a word
        parent.send(("begun", None))
        while True:
            _do(worker, parent.recv(), parent)


def _do(worker: Worker, job: Job, parent: Connection) -> None:
    untold = 0

    def tell(n: int) -> None:
        nonlocal untold
        untold += n
        if untold >= TICK:
            parent.send(("tick", untold))
            untold = 0

    try:
        worker.do(job, tell)
    except VitscopeError as error:
        parent.send(("failed", error))
    except ConnectionError:
        raise
    except Exception as error:  # a mistake of ours, or no memory: told with where it happened
        text = "".join(traceback.format_exception(error))
        parent.send(("failed", RuntimeError(f"{type(error).__name__}: {error}\n{text}")))
    else:
        parent.send(("done", None))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait_for([parent.sentinel])
    os._exit(1)
