"""Two commands on a machine that has Python and make: nothing of this environment, of the user's home, no browser.

Slow: two fresh environments with torch, several minutes and gigabytes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser import MISSING, NAMES

ROOT = Path(__file__).parents[1]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]
NETWORK = ("PIP_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT")  # how this machine reaches the index: not ours
INSTALLERS = {"apt-get", "apt"}  # a slow test does not change the system
LEFT_OVER = {".venv", "runs", "build", "dist", "site", ".git"}


@pytest.fixture
def fresh(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A copy of the source without left-overs, and an environment with a home and programs, and nothing else."""

    def ignore(_: str, names: list[str]) -> set[str]:
        return {name for name in names if name in LEFT_OVER or (name.startswith(".") and name.endswith("_cache"))}

    source, programs, home = tmp_path / "source", tmp_path / "bin", tmp_path / "home"
    shutil.copytree(ROOT, source, ignore=ignore)
    home.mkdir()
    programs.mkdir()
    for folder in ("/bin", "/usr/bin"):
        for program in Path(folder).iterdir():
            if program.name not in {*NAMES, *INSTALLERS} and not (programs / program.name).exists():
                (programs / program.name).symlink_to(program)
    network = {name: value for name, value in os.environ.items() if name.upper().startswith(NETWORK)}
    return source, {**network, "HOME": str(home), "PATH": str(programs), "LANG": "C.UTF-8"}


def make(target: str, fresh: tuple[Path, dict[str, str]], **more: str) -> str:
    source, environment = fresh
    run = ["make", target, f"PYTHON={sys.base_prefix}/bin/python3"]
    done = subprocess.run(run, cwd=source, env=environment | more, capture_output=True, text=True, timeout=2300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_make_demo_ends_with_a_page(fresh: tuple[Path, dict[str, str]]) -> None:
    make("demo", fresh)
    source, _ = fresh
    assert "Six teachings, one network, one world" in (source / "runs/demo/report.html").read_text()
    installed = {path.name.split("-")[0] for path in source.glob(".venv/lib/python*/site-packages/*.dist-info")}
    assert "torch" in installed
    assert not {"transformers", "lightly", "pytest", "playwright", "mypy"} & installed


def test_make_test_sets_up_all_that_it_needs(fresh: tuple[Path, dict[str, str]]) -> None:
    """Of the tests themselves, which run here anyway, some: of the page, of statistics, of a command."""
    some = "test_page_browser or test_statistic or test_models_command"
    said = make("test", fresh, PYTEST_ADDOPTS=f"-k '{some}'")
    assert " passed" in said or "100%" in said
    if MISSING in said:  # no browser could be had
        assert "THE PAGE WAS NOT TESTED" in said
