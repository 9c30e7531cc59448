"""The developers' interface on a fresh machine: what is installed for whom, and where the browser comes from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import browser

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]


def commands_of(target: str, venv: Path, **variables: str) -> str:
    """What `make target` would run with this virtual environment."""
    given = [f"{name}={value}" for name, value in {"VENV": str(venv), **variables}.items()]
    run = ["make", "--dry-run", "--no-print-directory", target, *given]
    return subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_running_installs_no_more_than_running_needs(tmp_path: Path) -> None:
    planned = commands_of("demo", tmp_path / "venv")
    assert "--editable '.[explore]'" in planned
    assert "dev" not in planned
    assert "tests.browser" not in planned


@pytest.mark.parametrize("constraints", ["constraints.txt", "constraints-min.txt"])
def test_what_builds_is_what_the_project_asks_for(tmp_path: Path, constraints: str) -> None:
    """An environment of Python 3.10 or 3.11 comes with a setuptools that is too old, and nothing else replaces it."""
    (asked,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    planned = commands_of("demo", tmp_path / "venv", CONSTRAINTS=constraints)
    assert planned.index(f"--constraint {constraints} '{asked}'") < planned.index("--no-build-isolation")


def test_testing_installs_the_rest_and_the_browser_before_the_tests(tmp_path: Path) -> None:
    planned = commands_of("test", tmp_path / "venv")
    assert planned.index("'.[dev]'") < planned.index("tests.browser") < planned.index("-m pytest")


@pytest.mark.parametrize("target", ["demo", "test", "test-slow"])
def test_a_second_run_installs_nothing(tmp_path: Path, target: str) -> None:
    for stamp in (".ready", ".ready-tests", ".ready-slow"):  # from oldest to newest
        (tmp_path / stamp).touch()
    assert "pip install" not in commands_of(target, tmp_path)


def test_a_submission_is_tested_by_make_test_and_nothing_else() -> None:
    lines = [line for line in (ROOT / ".ci/run").read_text().splitlines() if line and not line.startswith("#")]
    assert lines == ["set -euo pipefail", 'cd "$(dirname "$0")/.."', "make test"]


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH of one empty folder, and no build of Playwright's."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "builds"))
    return tmp_path


def put_command(folder: Path, name: str, script: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("name", ["chromium", "google-chrome"])
def test_a_browser_on_the_path_is_used(bare_machine: Path, name: str) -> None:
    path = put_command(bare_machine, name, "echo Chromium 130")
    assert browser.set_up_browser() == path


def test_a_browser_that_does_not_run_is_passed_over(bare_machine: Path) -> None:
    put_command(bare_machine, "chromium-browser", "echo 'requires the chromium snap'; exit 1")
    path = put_command(bare_machine, "google-chrome", "echo Chrome 130")
    assert browser.find_browser() == path


def installs(bare_machine: Path, monkeypatch: pytest.MonkeyPatch, *, root: bool, apt_works: bool) -> list[str]:
    """What is run to get a browser; a working apt-get brings one."""
    ran: list[str] = []

    def run(command: list[str]) -> None:
        ran.append(" ".join(command[-3:]))
        if apt_works and "install" in command and command[0] == "apt-get":
            put_command(bare_machine, "chromium", "exit 0")

    monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)
    monkeypatch.setattr(browser, "_try", run)
    put_command(bare_machine, "apt-get", "exit 1")
    browser.set_up_browser()
    return ran


def test_root_on_debian_gets_the_systems_package(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = installs(bare_machine, monkeypatch, root=True, apt_works=True)
    assert ran == ["apt-get update -qq", "-qq --no-install-recommends chromium"]


@pytest.mark.parametrize(
    ("root", "last"), [(True, "install --with-deps chromium"), (False, "playwright install chromium")]
)
def test_where_apt_cannot_help_playwrights_own_is_tried(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch, root: bool, last: str
) -> None:
    ran = installs(bare_machine, monkeypatch, root=root, apt_works=False)
    assert ran[-1] == last
    assert any("apt-get" in command for command in ran) == root


def test_without_a_browser_the_page_tests_are_skipped_and_the_summary_says_so(bare_machine: Path) -> None:
    one = "tests/report/test_page_browser.py::test_picking_a_token_redraws_the_chart"
    run = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", one]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout
    assert "THE PAGE WAS NOT TESTED" in done.stdout
    assert f"1 tests were skipped: {browser.MISSING}" in done.stdout
