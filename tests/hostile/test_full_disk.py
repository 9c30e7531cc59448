"""A disk that fills up at five moments of every command that writes: one sentence, and then the command completes.

The disk is a file system in memory of a few megabytes, which only the superuser can make.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.conftest import make_photos
from tests.support.commands import run_command
from vitscope.core.digest import digest_of_file

MODEL = "random:zoo/dino"
MOMENTS = (0.02, 0.25, 0.5, 0.75, 0.95)  # shares of what the command writes in the end
ENOUGH = 200 << 20  # bytes
PAGE = 4096  # bytes: what a file system in memory counts in
QUIET = ("--figures", "none")
LEAST, MOST = 1 << 20, 20 << 20  # bytes that a command writes here
COMMANDS: dict[str, tuple[str, ...]] = {
    "attention": ("attention", MODEL, "--images", "photos", "--out", "disk/out", "--figures", "all"),
    "features": ("features", MODEL, "--images", "photos", "--seeds", "1", "--out", "disk/out", *QUIET),
    "tasks": ("tasks", MODEL, "--knn", "photos", "--segmentation", "masks", "--out", "disk/out", *QUIET),
    "run": ("run", "study.toml", *QUIET),
    "extract": ("extract", MODEL, "zoo/dino", "zoo/mae", "--images", "photos", "--limit", "12", "--out", "disk/out"),
    "teach": ("teach", "mae", "--images", "photos", "--arch", "vit_tiny_patch16_224", "--out", "disk/out"),
    "menagerie": ("menagerie", "--out", "disk/out", "--train", "128", "--val", "64", "--coco", "8", "--parts", "8"),
}
COMMANDS["extract"] += ("--pooling", "cls", "--pooling", "tokens")
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


def written(out: Path) -> dict[str, str]:
    """Names of what a command wrote, with the content of what must be the same each time it is written."""
    files = [path for path in out.rglob("*") if path.is_file() and path.name != ".lock"]
    same = {".csv", ".png", ".npy"}
    return {str(path.relative_to(out)): digest_of_file(path) if path.suffix in same else "" for path in files}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", COMMANDS)
def test_full_disk(name: str, disk: Disk, tmp_path: Path) -> None:
    make_photos(tmp_path / "photos", count=48, size=(64, 64))
    for number, image in enumerate(make_photos(tmp_path / "masks/images", count=8, size=(64, 64)).rglob("*.png")):
        mask = tmp_path / "masks/masks" / image.relative_to(tmp_path / "masks/images")
        mask.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.roll(np.tri(64, dtype=np.uint8) + 1, number)).save(mask)
    (tmp_path / "study.toml").write_text(STUDY)
    place = tmp_path / "disk"

    def run() -> tuple[int | None, str]:
        ended = run_command(COMMANDS[name], seconds=120, cwd=tmp_path)
        assert not ended.problem, f"{ended.problem}: {ended.err[-500:]}"
        return ended.status, ended.err

    assert run()[0] == 0
    whole, right = used(place), written(place / "out")
    assert LEAST <= whole <= MOST, f"{whole >> 10} KiB"
    for share in MOMENTS:
        subprocess.run(["rm", "-rf", str(place / "out")], check=True)
        disk(max(PAGE * 4, int(share * whole) // PAGE * PAGE))
        status, said = run()
        print(f"{name}, {share:.0%} of {whole >> 10} KiB: {status} {said.splitlines()[-1:]}")
        assert status == 2
        assert "make room" in said
        disk(ENOUGH)
        assert run()[0] == 0
        assert written(place / "out") == right
