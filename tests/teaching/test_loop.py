"""Stopping, killing and resuming; refusing the wrong checkpoint; stopping at NaN."""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import torch

from tests.teaching.tiny import ARCH, OPTIONS, squares
from vitscope.core.errors import BadCheckpoint
from vitscope.teaching.checkpoint import load_checkpoint
from vitscope.teaching.images import StoredImages
from vitscope.teaching.loop import CHECKPOINT, Diverged, Run, Settings
from vitscope.teaching.monitor import Monitor
from vitscope.teaching.schedule import Schedule
from vitscope.teaching.teachers.registry import TEACHERS, create_teacher, recipe_for

SMALL = {
    "dino": {"prototypes": 16, "small_crops": 1},
    "moco": {"hidden": 16, "joint": 8},
    "mae": {"decoder_width": 16, "decoder_depth": 1},
    "beit": {"words": 12},
    "clip": {"text_depth": 1},
}


def open_run(folder: Path, key: str, images: StoredImages, total: int = 7, **identity: str) -> Run:
    assert images.labels is not None
    teacher = create_teacher(key, ARCH, OPTIONS, images, seed=0, recipe=recipe_for(key, SMALL.get(key)))
    monitor = Monitor(images.take(range(8)), images.labels[:8], {"same": (images.take(range(8)), images.labels[:8])})
    settings = Settings(batch=6, point_every=2, monitor_every=4)
    told = {"teacher": key, "data": images.digest, **identity}
    return Run(folder, teacher, images, Schedule(2, total, 3), settings, identity=told, monitor=monitor)


def stopped_at(run: Run, step: int | None) -> bool:
    return run.step == step


@pytest.mark.parametrize("key", list(TEACHERS))
def test_a_stopped_and_resumed_run_equals_an_uninterrupted_one(tmp_path: Path, key: str) -> None:
    images = squares()
    whole = open_run(tmp_path / "whole", key, images)
    whole.train()
    for stop_at in (3, 5, None):
        part = open_run(tmp_path / "parts", key, images)
        assert part.resume() is (stop_at != 3)
        torch.manual_seed(stop_at or 99)  # whatever the process did before must not matter
        part.train(stop=partial(stopped_at, part, stop_at))
    assert part.step == whole.step == 7
    for name, value in whole.teacher.state_dict().items():
        assert torch.equal(value, part.teacher.state_dict()[name]), name
    assert [(p.step, p.loss, p.logs, p.knn) for p in part.curve] == [
        (p.step, p.loss, p.logs, p.knn) for p in whole.curve
    ]
    assert [p.step for p in whole.curve] == [2, 4, 6, 7]


def test_all_teachers_start_from_the_same_network() -> None:
    images = squares()
    first, *others = (
        create_teacher(key, ARCH, OPTIONS, images, seed=5, recipe=recipe_for(key, SMALL.get(key))).encoder.state_dict()
        for key in TEACHERS
    )
    for other in others:
        assert first.keys() == other.keys()
        assert all(torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"data": "others"}, "data"),
        ({"teacher": "mae"}, "teacher"),
        ({"architecture": "vit_small"}, "architecture"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path, change: dict[str, str], what: str) -> None:
    run = open_run(tmp_path, "fs", squares(), total=1, architecture=ARCH)
    run.train()
    with pytest.raises(BadCheckpoint, match=f"was made with {what}"):
        load_checkpoint(tmp_path / CHECKPOINT, {**run.identity, **change})


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.99])
def test_a_checkpoint_cut_short_is_refused(tmp_path: Path, kept: float) -> None:
    run = open_run(tmp_path, "fs", squares(), total=1)
    run.train()
    path = tmp_path / CHECKPOINT
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))])
    with pytest.raises(BadCheckpoint, match="damaged or cut short"):
        run.resume()


def test_other_files_are_not_checkpoints(tmp_path: Path) -> None:
    torch.save({"model": torch.zeros(2)}, tmp_path / "other.pt")
    with pytest.raises(BadCheckpoint, match="not a checkpoint of vitscope teach"):
        load_checkpoint(tmp_path / "other.pt", {})


def test_nan_stops_the_run_and_keeps_the_last_good_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = squares()
    run = open_run(tmp_path, "fs", images)
    run.train(stop=lambda: run.step == 3)
    good = {name: value.clone() for name, value in run.teacher.state_dict().items()}
    content = (tmp_path / CHECKPOINT).read_bytes()
    original = run.teacher.loss
    monkeypatch.setattr(run.teacher, "loss", lambda lesson: (original(lesson)[0] * float("nan"), {}))
    with pytest.raises(Diverged, match="not finite at step 3"):
        run.train()
    assert (tmp_path / CHECKPOINT).read_bytes() == content
    for name, value in run.teacher.state_dict().items():
        assert torch.equal(value, good[name])  # the bad step was not taken


KILLED = """
import torch
from pathlib import Path
from tests.teaching.test_loop import open_run
from tests.teaching.tiny import squares
torch.set_num_threads(1)
run = open_run(Path({folder!r}), "moco", squares(), total=400)
object.__setattr__(run.settings, "save_seconds", 0.2)
run.train()
"""


def test_a_killed_run_goes_on_and_ends_with_the_same_weights(tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, "-c", KILLED.format(folder=str(folder))], cwd=Path(__file__).parents[2])
    while not (folder / CHECKPOINT).exists() and process.poll() is None:
        time.sleep(0.05)
    process.kill()
    process.wait()
    images = squares()
    resumed = open_run(folder, "moco", images, total=400)
    assert resumed.resume()
    assert 0 < resumed.step < 400
    end = resumed.step + 5
    resumed.train(stop=lambda: resumed.step == end)
    whole = open_run(tmp_path / "whole", "moco", images, total=400)
    whole.train(stop=lambda: whole.step == end)
    for name, value in whole.teacher.state_dict().items():
        assert torch.equal(value, resumed.teacher.state_dict()[name]), name
