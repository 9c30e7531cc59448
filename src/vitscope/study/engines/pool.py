"""Several processes share the jobs of a plan, each with its share of the cores, of the memory and of the GPUs.

For small networks two processes of one thread do far more than one process of two. The processes are started afresh
(nothing is forked under running threads) and end with the process that started them, however that one ends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait as wait_for
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from threading import Thread

import torch
from threadpoolctl import threadpool_limits

from vitscope.data.batches import DECODED_BYTES
from vitscope.device import nth_device
from vitscope.errors import VitscopeError
from vitscope.progress import Advance, Progress
from vitscope.study.engines.worker import Worker
from vitscope.study.folder import StudyFolder
from vitscope.study.plan import Job, Plan

Ticks = SimpleQueue  # of int: pictures that went through a network; None ends it


def run_in_pool(plan: Plan, folder: StudyFolder, jobs: Sequence[Job], processes: int, *, progress: Progress) -> None:
    """Do the jobs, `processes` at a time; the first error stops the rest and is raised, what is done stays done."""
    context = multiprocessing.get_context("spawn")
    ticks: Ticks = context.SimpleQueue()
    numbers = context.Value("i", 0)
    with progress(f"{len(jobs)} jobs in {processes} processes", sum(job.count for job in jobs)) as advance:
        listener = Thread(target=_listen, args=(ticks, advance), daemon=True)
        listener.start()
        pool = ProcessPoolExecutor(
            processes,
            mp_context=context,
            initializer=_begin,
            initargs=(plan, folder.root, processes, numbers, ticks),
        )
        try:
            futures = [pool.submit(_do, plan.jobs.index(job)) for job in jobs]
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        except BrokenProcessPool as error:
            raise VitscopeError(
                "a process of the study was killed, perhaps for want of memory: what is done is kept, "
                "run again with fewer processes"
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)
            ticks.put(None)
            listener.join()


def _listen(ticks: Ticks, advance: Advance) -> None:
    while (n := ticks.get()) is not None:
        advance(n)


# -- in the processes -----------------------------------------------------------------------------------------------

_worker: Worker
_ticks: Ticks


def _begin(plan: Plan, root: Path, processes: int, numbers, ticks: Ticks) -> None:  # type: ignore[no-untyped-def]
    global _worker, _ticks
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupt ends the process without a traceback of its own
    Thread(target=_end_with_parent, daemon=True).start()
    with numbers.get_lock():
        number = numbers.value
        numbers.value += 1
    threads = max(1, (os.cpu_count() or 1) // processes)
    torch.set_num_threads(threads)
    threadpool_limits(threads)  # of NumPy and scikit-learn
    _ticks = ticks
    _worker = Worker(
        plan,
        StudyFolder(root, plan.study.title),
        device=nth_device(plan.study.device, number),
        decoded_bytes=DECODED_BYTES // processes,
    )


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait_for([parent.sentinel])
    os._exit(1)


def _do(index: int) -> None:
    job = _worker.plan.jobs[index]
    left = job.count

    @contextmanager
    def told(_title: str, _total: int) -> Iterator[Advance]:
        def advance(n: int) -> None:
            nonlocal left
            n = min(n, left)  # a job that goes over its pictures twice counts them once
            left -= n
            _ticks.put(n)

        yield advance

    _worker.progress = told
    _worker.do(job)
    _ticks.put(left)
