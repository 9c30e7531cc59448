"""What people install: the wheel, with its declared dependencies alone, in an environment far from the source.

Slow: a fresh environment with torch takes a minute or two and a gigabyte.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.test_requirements import project

ROOT = Path(__file__).parents[1]
LARGEST = 15 << 20  # bytes: one download that nobody minds, the zoo's weights included
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), pytest.mark.xdist_group("wheel")]


def run(command: Sequence[str | Path], folder: Path, **environment: str) -> str:
    """Run it as somebody who knows nothing of the source: no PYTHONPATH, another folder."""
    known = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=known | environment, capture_output=True, text=True, timeout=1500
    )
    assert done.returncode == 0, f"{command} gave {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built in a copy, so that no left-over of an earlier build gets into it, nor one of this stays."""
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT / "src", folder / "source/src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source")
    build = ["pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", "dist", "./source"]
    run([sys.executable, "-m", *build], folder)
    (built,) = (folder / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def home(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an environment into which nothing but the wheel and what it asks for was installed."""
    folder = tmp_path_factory.mktemp("stranger")
    run([sys.executable, "-m", "venv", "env"], folder)
    run(["env/bin/python", "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel], folder)
    return folder


def vitscope(home: Path, line: str) -> str:
    return run([home / "env/bin/vitscope", *line.split()], home, OMP_NUM_THREADS="1")


def test_the_wheel_is_small_and_complete(wheel: Path) -> None:
    assert wheel.stat().st_size < LARGEST
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    files = [path.relative_to(ROOT / "src") for path in (ROOT / "src/vitscope").rglob("*") if path.is_file()]
    assert {path.as_posix() for path in files if path.suffix != ".pyc"} <= inside
    assert not [name for name in inside if name.startswith(("tests", "zoo", "benchmarks", "docs"))]


def test_nothing_but_what_is_declared_was_installed(home: Path) -> None:
    """Otherwise what follows would prove nothing about the declaration."""
    extras = {Requirement(line).name.lower() for lines in project()["optional-dependencies"].values() for line in lines}
    there = {line.split("==")[0].lower() for line in run(["env/bin/python", "-m", "pip", "freeze"], home).split()}
    assert not extras - {"pyyaml"} & there  # timm asks for PyYAML
    assert str(home) in run(["env/bin/python", "-c", "import vitscope; print(vitscope.__file__)"], home)


def test_a_study_runs_from_the_first_file_to_the_page(home: Path) -> None:
    small = "--train 64 --val 32 --coco 4 --parts 8 --individuals 4 --encounters 3 --pairs 4 --videos 1 --frames 4"
    vitscope(home, f"menagerie --out world {small}")
    (home / "study.toml").write_text(
        'title = "from the wheel"\nout = "runs/study"\n[[models]]\nname = "zoo/dino"\n[[models]]\nname = "zoo/mae"\n'
        '[[data.images]]\npath = "world/imagefolder/val"\n[[data.labelled]]\npath = "world/imagefolder"\n'
        '[[data.video]]\npath = "world/davis"\n'
    )
    vitscope(home, "run study.toml --figures all")
    page = (home / "runs/study/report.html").read_text()
    assert "from the wheel" in page
    assert sorted(home.glob("runs/study/figures/*.png"))


def test_a_network_is_taught_and_examined(home: Path) -> None:
    small = "--arch vit_tiny_patch16_224 --size 32 --epochs 1 --batch 16"
    vitscope(home, f"teach mae --images world/imagefolder/train {small} --out runs/mine")
    vitscope(
        home, "attention runs/mine/model.toml --images world/imagefolder/val --limit 8 --figures none --out runs/look"
    )
    assert (home / "runs/look/report.html").is_file()


def test_every_command_explains_itself(home: Path) -> None:
    listed = vitscope(home, "--help")
    for command in ("demo", "run", "teach", "explore", "attention", "features", "tasks", "look", "heads", "models"):
        assert command in listed
        assert "--" in vitscope(home, f"{command} --help")


def test_the_explorer_writes_its_page_and_names_the_extra_that_its_server_needs(home: Path) -> None:
    vitscope(home, "explore --export explorer.html")
    assert "</html>" in (home / "explorer.html").read_text()
    done = subprocess.run(
        [home / "env/bin/vitscope", "explore", "zoo/dino"], cwd=home, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2
    assert "vitscope[explore]" in done.stderr


def test_the_demo_runs_as_the_readme_says(home: Path) -> None:
    vitscope(home, "demo --out runs/demo")
    assert "Six teachings, one network, one world" in (home / "runs/demo/report.html").read_text()
