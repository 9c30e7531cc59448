"""A disk that fills up at five moments of every command that writes: one sentence, and then the command completes.

The disk is a file system in memory of a few megabytes, which only the superuser can make.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import make_photos
from tests.support.commands import run_command

MODEL = "random:zoo/dino"
MOMENTS = (0.02, 0.25, 0.5, 0.75, 0.95)  # shares of what the command writes in the end
ENOUGH = 200 << 20  # bytes
PAGE = 4096  # bytes: what a file system in memory counts in
QUIET = ("--no-figures",)
COMMANDS: dict[str, tuple[str, ...]] = {
    "attention": ("attention", MODEL, "--images", "photos", "--out", "disk/out"),
    "features": ("features", MODEL, "--images", "photos", "--seeds", "1", "--out", "disk/out", *QUIET),
    "tasks": ("tasks", MODEL, "--knn", "photos", "--no-probe", "--out", "disk/out", *QUIET),
    "run": ("run", "study.toml", *QUIET),
    "extract": ("extract", MODEL, "--images", "photos", "--pooling", "tokens", "--out", "disk/out"),
    "teach": ("teach", "mae", "--images", "photos", "--arch", "vit_tiny_patch16_224", "--out", "disk/out"),
    "menagerie": ("menagerie", "--out", "disk/out", "--train", "96", "--val", "48", "--coco", "8", "--parts", "8"),
}
COMMANDS["teach"] += ("--size", "32", "--batch", "4", "--epochs", "1", "--save-every", "6")
COMMANDS["teach"] += ("--option", "depth=1", "--option", "embed_dim=48")
COMMANDS["menagerie"] += ("--individuals", "2", "--encounters", "2", "--pairs", "4", "--videos", "1", "--frames", "3")
STUDY = f"""
title = "A study"
out = "disk/out"
[[models]]
name = "{MODEL}"
[data.images]
path = "photos"
"""

Disk = Callable[[int], None]  # gives the disk another size in bytes


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk at tmp_path/disk."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(size: int, *words: str) -> bool:
        command = ["mount", "-t", "tmpfs", "-o", ",".join([*words, f"size={size}"]), "tmpfs", str(place)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    if os.getuid() != 0 or not mount(ENOUGH):
        pytest.skip("only the superuser can make a small disk")
    try:
        yield lambda size: pytest.fail("the disk's size cannot be changed") if not mount(size, "remount") else None
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def used(place: Path) -> int:
    status = os.statvfs(place)
    return (status.f_blocks - status.f_bfree) * status.f_frsize


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", COMMANDS)
def test_full_disk(name: str, disk: Disk, tmp_path: Path) -> None:
    make_photos(tmp_path / "photos", count=48, size=(64, 64))
    (tmp_path / "study.toml").write_text(STUDY)
    place = tmp_path / "disk"

    def run() -> tuple[int | None, str]:
        ended = run_command(COMMANDS[name], seconds=120, cwd=tmp_path)
        assert not ended.problem, f"{ended.problem}: {ended.err[-500:]}"
        return ended.status, ended.err

    assert run()[0] == 0
    whole = used(place)
    assert whole < 20 << 20, f"{whole >> 10} KiB"
    for share in MOMENTS:
        subprocess.run(["rm", "-rf", str(place / "out")], check=True)
        disk(max(PAGE * 4, int(share * whole) // PAGE * PAGE))
        status, said = run()
        print(f"{name}, {share:.0%} of {whole >> 10} KiB: {status} {said.splitlines()[-1:]}")
        assert status == 2
        disk(ENOUGH)
        assert run()[0] == 0
