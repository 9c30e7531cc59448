"""A study killed without warning a hundred times, in every way: it ends in the bytes of an undisturbed one."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import make_photos
from tests.pipeline.studies import children, describe, gone, start, until, written
from vitscope.api import load_results
from vitscope.pipeline.study import Study

KILLS = 100
OFTEN = 2  # workers killed in one run: a shard that is lost three times is given up


def study_of(photos: Path, out: Path) -> Study:
    """Two models, two datasets, two processes; seconds long."""
    analyses = {"attention": {}, "features": {"projections": False, "cluster_seeds": 1}, "knn": {}}
    data = {"images": photos, "labelled": photos}
    return describe(out, data, ("A", "C"), analyses=analyses, processes=2)


def finish(process: subprocess.Popen[bytes]) -> None:
    error = process.communicate(timeout=300)[1].decode()
    assert process.returncode == 0, error
    assert "Traceback" not in error


def files(out: Path) -> int:
    """What is done so far. Folders come and go meanwhile, which `os.walk` does not mind."""
    return sum(name.endswith(".safetensors") for _, _, names in os.walk(out) for name in names)


def wait_for_a_moment(process: subprocess.Popen[bytes], out: Path, starting: float, chance: random.Random) -> bool:
    """A moment of chance, while it starts or while it works; whether the process is still there then."""
    if chance.random() < 0.3:
        _wait(process, chance.uniform(0, starting))
    else:
        wanted = files(out) + chance.randint(1, 4)
        while files(out) < wanted and process.poll() is None:
            time.sleep(0.005)
        _wait(process, chance.uniform(0, 0.3))
    return process.poll() is None


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        time.sleep(0.005)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_hundred_kills_do_not_change_a_byte(tmp_path: Path) -> None:
    chance = random.Random(0)
    photos = make_photos(tmp_path / "photos", count=200, classes=4)
    began = time.monotonic()
    process = start(study_of(photos, tmp_path / "calm"))
    until(lambda: files(tmp_path / "calm") or process.poll() is not None)
    starting = time.monotonic() - began
    finish(process)
    expected = written(tmp_path / "calm")
    out = tmp_path / "killed"
    kills: Counter[str] = Counter()
    completed = 0
    while kills.total() < KILLS:
        process = start(study_of(photos, out))
        workers_killed = 0
        while kills.total() < KILLS and wait_for_a_moment(process, out, starting, chance):
            workers = children(process.pid)
            whom = chance.choice(["main", "worker", "both"] if workers and workers_killed < OFTEN else ["main"])
            victims = [chance.choice(workers)] if whom != "main" else []
            victims += [process.pid] if whom != "worker" else []
            if gone(victims):
                break  # it came to its end while it was aimed at: that is no kill
            for pid in victims:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if whom == "worker":
                kills[whom] += 1
                workers_killed += 1
                continue
            process.communicate(timeout=60)
            kills[whom] += process.returncode == -signal.SIGKILL  # whether it landed
            until(partial(gone, workers), seconds=60)
            break
        if process.returncode is None:
            process.communicate(timeout=300)
        if process.returncode != -signal.SIGKILL:  # it came to its end, perhaps without a worker or two
            assert process.returncode == 0
            assert written(out) == expected
            completed += 1
            shutil.rmtree(out)  # the next kills are to hit a study that has everything before it
        print(f"{kills.total()} kills, {completed} studies completed, {time.monotonic() - began:.0f} s", flush=True)
    finish(start(study_of(photos, out)))
    assert written(out) == expected
    assert load_results(out).failures == []
    assert kills.total() == KILLS
    assert min(kills[whom] for whom in ("main", "worker", "both")) >= 10, kills
    assert completed, "no study came to its end between the kills"
    print(f"{dict(kills)}, {completed} studies completed in between, {time.monotonic() - began:.0f} s")
