"""The command itself, killed without warning: started again as often as it takes, it ends with the same store."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.features.made import write_pictures
from tests.features.test_extract import contents_of
from vitscope.errors import BadData
from vitscope.features.store import FeatureStore

COMMAND = Path(sys.executable).with_name("vitscope")
PICTURES, SHARDS = 320, 4  # all tokens of 96 pictures fill a shard


def start(pictures: Path, out: Path) -> subprocess.Popen[bytes]:
    """`vitscope extract` as a user starts it."""
    arguments = ["extract", "zoo/fs", "--images", str(pictures), "--out", str(out), "--pooling", "tokens",
                 "--dtype", "float32", "--batch-size", "32"]  # fmt: skip
    return subprocess.Popen(
        [COMMAND, *arguments],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def shards_in(out: Path) -> int:
    return len(list(out.glob("*.safetensors")))


def kill_when(moment: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """SIGKILL as soon as the moment has come; the process must not have ended before."""
    while not moment():
        assert process.poll() is None, "the extraction ended before it could be killed"
        time.sleep(0.0005)
    process.kill()
    assert process.wait(timeout=60) == -signal.SIGKILL


def test_killed_in_the_middle_of_everything_and_started_again(tmp_path: Path) -> None:
    pictures, out = write_pictures(tmp_path / "p", PICTURES, size=64), tmp_path / "s"
    undisturbed = start(pictures, tmp_path / "whole")
    moments: list[tuple[str, Callable[[], bool], range]] = [
        ("before the first shard", (out / "store.json").exists, range(1)),
        ("with one shard there", lambda: shards_in(out) >= 1, range(1, SHARDS)),
        (
            "while a later shard is written",
            lambda: shards_in(out) >= 2 and any(out.glob(".writing-*/*")),
            range(2, SHARDS),
        ),
    ]
    for name, moment, expected in moments:
        kill_when(moment, start(pictures, out))
        with pytest.raises(BadData, match=rf"incomplete, \d of {SHARDS} shards") as told:
            FeatureStore(out)
        there = int(re.search(r"incomplete, (\d)", str(told.value))[1])  # type: ignore[index]
        assert there in expected, f"killed {name}: {told.value}"
    assert start(pictures, out).wait(timeout=120) == 0
    assert undisturbed.wait(timeout=120) == 0
    assert len(FeatureStore(out)) == PICTURES
    assert contents_of(out) == contents_of(tmp_path / "whole")
