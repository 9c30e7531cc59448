"""The tooling stays in the repository: whoever installs vitscope gets the taught networks, not how to teach them."""

from __future__ import annotations

from pathlib import Path

from setuptools import find_packages

from vitscope.models.registry import ZOO

ROOT = Path(__file__).parents[2]


def test_the_wheel_has_the_networks_but_not_their_tooling() -> None:
    packages = find_packages(str(ROOT / "src"))
    assert {name.split(".")[0] for name in packages} == {"vitscope"}
    assert not [name for name in packages if "zoo" in name]
    assert len(list(ZOO.glob("*.safetensors"))) == 7
    assert ZOO.is_relative_to(ROOT / "src/vitscope")


def test_vitscope_does_not_know_of_its_tooling() -> None:
    sources = (ROOT / "src").rglob("*.py")
    lines = [line for path in sources for line in path.read_text(encoding="utf-8").splitlines()]
    assert not [line for line in lines if line.strip().startswith(("from zoo", "import zoo"))]
