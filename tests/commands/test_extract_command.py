"""`vitscope extract` as people run it: what it says, and that it may be killed without warning as often as it takes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.features.made import write_images
from tests.features.test_extraction import contents_of, states_in
from vitscope.cli import main
from vitscope.core.errors import BadData
from vitscope.core.files import WRITING
from vitscope.features.extraction import load_features

IMAGES, SHARDS = 320, 5  # 64 images fill a shard
MODEL = "random:vit_tiny_patch16_224"


def run(*words: object) -> None:
    main([str(word) for word in words])


def test_features_are_written_and_what_was_skipped_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_images(tmp_path / "p", 16, classes=2)
    (folder / "class0" / "zz.png").write_bytes(b"broken")
    run("extract", MODEL, "--images", folder, "--out", tmp_path / "s", "--size", 32, "--pooling", "mean")
    said = " ".join(capsys.readouterr().out.split())
    assert "wrote mean features of 16 images of Untrained vit_tiny_patch16_224 (float16" in said
    assert "class0/zz.png" in said
    found = load_features(tmp_path / "s")
    assert (len(found), found.kinds, found.depth) == (16, ("mean",), 12)
    assert found.layer("mean", 11)[:2].dtype == torch.float16
    assert found.layer("mean", 11).whole().shape == (16, 192)


def test_two_models_lie_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_images(tmp_path / "p", 8)
    run("extract", "zoo/fs", "zoo/dino", "--images", folder, "--out", tmp_path / "s")
    said = capsys.readouterr().out
    assert said.count("wrote cls and mean features of 8 images") == 2
    with pytest.raises(BadData, match="say of which model"):
        load_features(tmp_path / "s")
    first, second = (load_features(tmp_path / "s", title) for title in ("zoo/fs", "zoo/dino"))
    assert not torch.equal(first.layer("cls", 5).whole(), second.layer("cls", 5).whole())


# -- killed ---------------------------------------------------------------------------------------------------------


def start(images: Path, out: Path, *options: str) -> subprocess.Popen[bytes]:
    """The command as a user starts it."""
    code = "import sys; from vitscope.cli import main; main(sys.argv[1:])"
    words = ["extract", "zoo/fs", "--images", str(images), "--out", str(out), "--pooling", "tokens"]
    return subprocess.Popen(
        [sys.executable, "-c", code, *words, "--dtype", "float32", *options],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def kill_when(moment: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """SIGKILL as soon as the moment has come; the process must not have ended before."""
    while not moment():
        assert process.poll() is None, "the extraction ended before it could be killed"
        time.sleep(0.0005)
    process.kill()
    assert process.wait(timeout=60) == -signal.SIGKILL


def writing(out: Path) -> bool:
    """Whether a state is being written."""
    return any(out.glob(f"states/*/{WRITING}*/*"))


@pytest.mark.parametrize("options", [(), ("--processes", "2")], ids=["one process", "two processes"])
def test_killed_in_the_middle_of_everything_and_started_again(tmp_path: Path, options: tuple[str, ...]) -> None:
    images, out = write_images(tmp_path / "p", IMAGES, size=64), tmp_path / "s"
    undisturbed = start(images, tmp_path / "whole")
    moments: list[tuple[str, Callable[[], bool], range]] = [
        ("before the first shard", (out / "store.json").exists, range(1)),
        ("with one shard there", lambda: len(states_in(out)) >= 1, range(1, SHARDS)),
        ("while a later shard is written", lambda: len(states_in(out)) >= 2 and writing(out), range(2, SHARDS)),
    ]
    for name, moment, expected in moments:
        kill_when(moment, start(images, out, *options))
        with pytest.raises(BadData, match="holds no features"):
            load_features(out)
        assert len(states_in(out)) in expected, f"killed {name}"
    before = {path: path.stat().st_mtime_ns for path in states_in(out)}
    time.sleep(0.5)  # workers of the killed one end by themselves: nobody writes on
    assert start(images, out, *options).wait(timeout=120) == 0
    assert undisturbed.wait(timeout=120) == 0
    assert all(path.stat().st_mtime_ns == modified for path, modified in before.items())  # none was made again
    assert len(load_features(out)) == IMAGES
    assert contents_of(out) == contents_of(tmp_path / "whole")
