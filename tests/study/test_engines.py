"""Jobs in several processes: the same results, errors that arrive, and nobody left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import make_photos
from vitscope.errors import VitscopeError
from vitscope.study.file import parse_study
from vitscope.study.folder import StudyFolder
from vitscope.study.run import run_study

KEYS = ["model", "dataset", "layer", "head", "measure", "variant", "protocol"]
RUN = (
    "import json, sys; from pathlib import Path; from vitscope.study.file import parse_study;"
    "from vitscope.study.run import run_study;"
    "run_study(parse_study(json.loads(sys.argv[1]), Path('.')))"
)


def describe(photos, out, **settings):
    values = {
        "title": "pool",
        "models": [
            {"name": "random:vit_tiny_patch16_224", "title": "A", "size": 32},
            {"name": "random:deit_tiny_patch16_224", "title": "B", "size": 32},
        ],
        "data": {"images": {"path": str(photos)}, "labelled": {"path": str(photos)}},
        "analyses": ["attention", "knn"],
        "out": str(out),
    }
    return parse_study(values | settings, Path("/"))


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return make_photos(tmp_path_factory.mktemp("data") / "photos", count=48, classes=3)


def start(study):
    values = json.dumps(study.model_dump(mode="json"))
    return subprocess.Popen(
        [sys.executable, "-c", RUN, values], env=os.environ | {"OMP_NUM_THREADS": "1"}, stderr=subprocess.PIPE
    )


def children(pid: int) -> list[int]:
    """Processes started by `pid` that are still there."""
    found = subprocess.run(
        ["ps", "-ww", "-o", "pid=", "-o", "args=", "--ppid", str(pid)], capture_output=True, text=True
    )
    return [int(line.split()[0]) for line in found.stdout.splitlines() if "spawn_main" in line]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def until(condition, seconds: float = 90.0):
    """Wait for something true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")


def log_has(out, event: str) -> bool:
    return (out / "log.jsonl").exists() and event in (out / "log.jsonl").read_text()


def test_two_processes_give_what_one_gives(photos, tmp_path):
    counted: list[int] = []

    class Bar:
        def __init__(self, title, total):
            self.total = total

        def __enter__(self):
            return counted.append

        def __exit__(self, *_):
            assert sum(counted) == self.total == 4 * 48

    one = run_study(describe(photos, tmp_path / "one")).results.table.sort(KEYS)
    two = run_study(describe(photos, tmp_path / "two", processes=2), progress=Bar).results.table.sort(KEYS)
    assert one.select(KEYS).equals(two.select(KEYS))
    for column in ("value", "ci_low", "ci_high"):
        assert np.allclose(one[column], two[column], rtol=1e-5, atol=1e-7, equal_nan=True)
    events = StudyFolder(tmp_path / "two", "pool").events()
    assert sorted((e["model"], e["role"]) for e in events if e["event"] == "traced") == [
        ("A", "images"), ("A", "labelled"), ("B", "images"), ("B", "labelled"),
    ]  # fmt: skip


def test_the_number_of_processes_is_not_part_of_a_job(photos, tmp_path):
    out = tmp_path / "out"
    run_study(describe(photos, out, processes=2))
    run_study(describe(photos, out, processes=1))
    events = [event["event"] for event in StudyFolder(out, "pool").events()]
    assert events.count("traced") == events.count("already done") == 4


def test_an_error_in_a_process_is_told_in_its_own_words(photos, tmp_path):
    broken = make_photos(tmp_path / "broken", count=12, classes=3)
    (broken / "class0" / "000.png").write_text("not a picture")
    with pytest.raises(VitscopeError, match="more than 0 images are unusable"):
        run_study(describe(broken, tmp_path / "out", processes=2, skip_limit=0))


def test_a_killed_process_is_told_and_what_is_done_stays(photos, tmp_path):
    study = describe(photos, tmp_path / "out", processes=2)
    process = start(study)
    until(lambda: log_has(study.out, '"started"'))
    os.kill(children(process.pid)[0], signal.SIGKILL)
    error = process.communicate(timeout=90)[1].decode()
    assert process.returncode != 0
    assert "run again with fewer processes" in error
    assert run_study(describe(photos, study.out)).results.table["model"].n_unique() == 2


def test_nobody_outlives_a_killed_study(photos, tmp_path):
    study = describe(photos, tmp_path / "out", processes=2)
    process = start(study)
    workers = until(lambda: len(found := children(process.pid)) == 2 and found)
    until(lambda: log_has(study.out, '"started"'))
    process.kill()
    process.communicate(timeout=30)
    until(lambda: not any(alive(pid) for pid in workers), seconds=30)
    outcome = run_study(study)
    assert all(part.complete for part in outcome.coverage)
