"""Shards in several processes: the same bytes, errors that arrive, losses made good, and nobody left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import make_photos
from tests.pipeline.studies import NAMES, children, describe, gone, logged, start, traced, until, written
from vitscope.api import load_results, run_study
from vitscope.core.errors import VitscopeError
from vitscope.pipeline.engines import Local
from vitscope.pipeline.engines.local import _terminated_later
from vitscope.pipeline.store import Store
from vitscope.pipeline.study import Study

SOON = 15.0  # seconds in which an interrupted study must be over, on a busy machine


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_photos(tmp_path_factory.mktemp("data") / "photos", count=300, classes=3)


def one_by_one(photos: Path, out: Path, **settings: Any) -> Study:
    """One model, one dataset, five shards, each long enough to be interrupted."""
    model = {"name": NAMES["A"], "title": "A", "size": 96}
    values = {"models": [model], "analyses": {"attention": {}, "features": {"projections": False}}} | settings
    return describe(out, {"images": photos}, **values)


@pytest.fixture(scope="module")
def calm(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study undisturbed, in this process."""
    out = tmp_path_factory.mktemp("calm") / "out"
    run_study(one_by_one(photos, out))
    return out


def test_one_model_on_one_dataset_is_divided_between_two_processes(photos: Path, calm: Path, tmp_path: Path) -> None:
    counted: list[int] = []

    class Bar:
        def __init__(self, title: str, total: int) -> None:
            self.total = total

        def __enter__(self) -> Any:
            return lambda n, doing="": counted.append(n)

        def __exit__(self, *_: object) -> None: ...

    out = tmp_path / "two"
    run_study(one_by_one(photos, out, processes=2), progress=Bar)
    assert sum(counted) == 300 + 1  # every image, and one comparison
    events = [event for event in Store(out).events() if event["event"] == "traced"]
    assert [event["shard"] for event in sorted(events, key=lambda e: e["shard"])] == [0, 1, 2, 3, 4]
    workers = {event["pid"] for event in events}
    assert len(workers) == 2
    assert os.getpid() not in workers
    assert written(out) == written(calm)


def test_two_models_on_two_datasets_give_what_one_process_gives(tmp_path: Path) -> None:
    photos = make_photos(tmp_path / "photos", count=72, classes=3)
    data = {"images": photos, "labelled": photos}
    for processes in (1, 2):
        run_study(
            describe(tmp_path / str(processes), data, ("A", "C"), analyses=["attention", "knn"], processes=processes)
        )
    assert written(tmp_path / "1") == written(tmp_path / "2")
    assert sorted(traced(tmp_path / "1")) == sorted(traced(tmp_path / "2"))


def test_the_number_of_processes_is_not_part_of_a_job(photos: Path, calm: Path) -> None:
    before = len(traced(calm))
    run_study(one_by_one(photos, calm, processes=2))
    assert len(traced(calm)) == before


def test_an_error_in_a_process_is_told_in_its_own_words(tmp_path: Path) -> None:
    broken = make_photos(tmp_path / "broken", count=12, classes=3)
    (broken / "class0" / "000.png").write_text("not an image")
    data = {"images": broken, "labelled": broken}
    with pytest.raises(VitscopeError, match="more than 0 images are unusable"):
        run_study(describe(tmp_path / "out", data, analyses=["attention", "knn"], processes=2, skip_limit=0))


def test_what_cannot_be_done_does_not_stop_the_rest(tmp_path: Path) -> None:
    photos = make_photos(tmp_path / "photos", count=12, classes=3)
    broken = make_photos(tmp_path / "broken", count=13, classes=3)
    (broken / "class0" / "000.png").write_text("not an image")
    for processes in (1, 2):
        entries = [{"path": str(photos)}, {"path": str(broken)}]
        out = tmp_path / f"out{processes}"
        study = describe(out, {"images": entries}, ("A",), analyses=["attention"], processes=processes, skip_limit=0)
        results = run_study(study)
        assert set(results.table["dataset"]) == {"photos"}
        (failure,) = results.failures
        assert failure.startswith("A on broken, images 1 to 13: more than 0 images are unusable")
        assert {part.dataset: part.complete for part in results.coverage} == {"photos": True, "broken": False}
    assert written(tmp_path / "out1") == written(tmp_path / "out2")


def test_a_killed_worker_costs_its_shard_only(photos: Path, calm: Path, tmp_path: Path) -> None:
    study = one_by_one(photos, tmp_path / "out", processes=2)
    process = start(study)
    until(lambda: logged(study.out, "traced") >= 1)
    victim = children(process.pid)[0]
    os.kill(victim, signal.SIGKILL)
    error = process.communicate(timeout=200)[1].decode()
    assert process.returncode == 0, error
    assert "Traceback" not in error
    assert written(study.out) == written(calm)
    assert any("a worker was lost" in note and "done again" in note for note in load_results(study.out).notes)
    assert logged(study.out, "lost") == 1
    events = [event for event in Store(study.out).events() if event["event"] == "traced"]
    assert sorted(event["shard"] for event in events) == [0, 1, 2, 3, 4]  # what was done before was not done again
    assert len({event["pid"] for event in events} - {victim}) == 2  # another took its place


def test_nobody_outlives_a_killed_study(photos: Path, calm: Path, tmp_path: Path) -> None:
    study = one_by_one(photos, tmp_path / "out", processes=2)
    process = start(study)
    until(lambda: logged(study.out, "traced") >= 1)
    workers = children(process.pid)
    assert len(workers) == 2
    process.kill()
    error = process.communicate(timeout=30)[1].decode()
    until(lambda: gone(workers), seconds=SOON)
    assert "Traceback" not in error
    results = run_study(study)
    assert all(part.complete for part in results.coverage)
    assert written(study.out) == written(calm)


def test_sigterm_waits_until_a_process_is_begun() -> None:
    """Or it would be left without what it is for, and complain aloud."""
    came: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
    try:
        with _terminated_later():
            os.kill(os.getpid(), signal.SIGTERM)
            assert came == []
        assert came == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("moment", ["starting", "tracing"])
def test_interrupts_end_in_seconds_with_one_sentence(
    photos: Path, tmp_path: Path, processes: int, number: signal.Signals, status: int, moment: str
) -> None:
    """As a terminal sends Ctrl-C, to all processes; SIGTERM to the command alone."""
    out = tmp_path / "out"
    file = tmp_path / "study.toml"
    file.write_text(
        f'title = "test"\nout = "{out}"\nprocesses = {processes}\nanalyses = ["attention"]\n'
        f'[[models]]\nname = "{NAMES["A"]}"\nsize = 128\n[data.images]\npath = "{photos}"\n'
    )
    code = "import sys; from vitscope.cli import main; main(['run', sys.argv[1], '--figures', 'none'])"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(file)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    if moment == "tracing":
        until(lambda: logged(out, "traced") >= 1)
    elif processes == 2:
        until(lambda: children(process.pid))  # they are importing what they need
    else:
        until((out / "store.json").exists)
    workers = children(process.pid)
    began = time.monotonic()
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    error = process.communicate(timeout=60)[1].decode()
    assert time.monotonic() - began < SOON
    assert process.returncode == status, error
    said = [line for line in error.splitlines() if not line.startswith(("5 jobs", "6 jobs"))]
    assert said == ["stopped; what was written stays, and the same command goes on from there"]
    until(lambda: gone(workers), seconds=SOON)
    with Store(out).locked():  # the same command can go on
        pass


def test_ctrl_c_never_reaches_a_worker(photos: Path, tmp_path: Path) -> None:
    """Not even the first one in its first moments: Python itself would print a traceback there."""
    process = start(one_by_one(photos, tmp_path / "out", processes=2))
    try:
        workers = until(lambda: children(process.pid))
        masks = [Path(f"/proc/{pid}/status").read_text().split("SigBlk:")[1].split()[0] for pid in workers]
        assert all(int(mask, 16) >> (signal.SIGINT - 1) & 1 for mask in masks)
    finally:
        process.kill()
        process.communicate(timeout=30)


def test_a_script_without_a_guard_is_told_so(photos: Path, tmp_path: Path) -> None:
    """Every new process reads the script again; Python calls that an error of the script, in a page of tracebacks."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, vitscope\n"
        "from vitscope.core.errors import VitscopeError\n"
        "try:\n"
        f"    vitscope.evaluate({NAMES['A']!r}, on=vitscope.images({str(photos)!r}), store={str(tmp_path / 'out')!r},\n"
        "        analyses=[vitscope.Attention()], engine=vitscope.Local(2))\n"
        "except VitscopeError as error:\n"
        "    sys.exit(f'told: {error}')\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr.startswith("told: the processes that should do the work end before they begin: in a script")
    assert "Traceback" not in done.stderr


def test_processes_must_be_some() -> None:
    with pytest.raises(VitscopeError, match="0 processes cannot do anything"):
        Local(0)
