"""What stands around the source: one version, forms and workflows that are valid and name what exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.specifiers import SpecifierSet

import vitscope
from tests.test_requirements import project

ROOT = Path(__file__).parents[1]
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def test_the_version_stands_in_one_place() -> None:
    assert "version" in project()["dynamic"]
    assert read_yaml(ROOT / "CITATION.cff")["version"] == vitscope.__version__
    assert f"\n## {vitscope.__version__} " in (ROOT / "CHANGELOG.md").read_text()


def test_the_citation_has_what_the_format_requires() -> None:
    citation = read_yaml(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    for entry in (citation, *citation["references"]):
        assert all("name" in author or "family-names" in author for author in entry["authors"])


@pytest.mark.parametrize("path", [form for form in FORMS if form.stem != "config"], ids=lambda path: path.stem)
def test_forms_have_what_the_platform_requires(path: Path) -> None:
    form = read_yaml(path)
    assert {"name", "description", "body"} <= form.keys()
    names = [field["id"] for field in form["body"]]
    assert len(set(names)) == len(names)
    assert all(field["attributes"]["label"] for field in form["body"])


def workflow() -> dict[str, Any]:
    """Jobs by name. (YAML 1.1 reads the key `on` as true.)"""
    found = read_yaml(ROOT / ".github/workflows/ci.yml")
    assert set(found[True]) == {"push", "pull_request"}
    return dict(found["jobs"])


def test_the_workflow_lints_tests_builds_and_documents() -> None:
    jobs = workflow()
    assert {"lint", "tests", "oldest", "wheel", "docs"} <= jobs.keys()
    for job in jobs.values():
        assert job["runs-on"]
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            if (words := step.get("run", "").split())[:1] == ["make"]:
                assert words[1] in TARGETS


def test_the_workflow_tries_every_python_that_is_allowed() -> None:
    versions = workflow()["tests"]["strategy"]["matrix"]["python"]
    assert versions == ["3.10", "3.11", "3.12", "3.13"]
    assert all(version in SpecifierSet(project()["requires-python"]) for version in versions)
    assert "3.9" not in SpecifierSet(project()["requires-python"])


def test_hooks_use_the_tools_of_make_lint() -> None:
    lint = (ROOT / "Makefile").read_text().partition("\nlint:")[2].partition("\n\n")[0]
    tools = set(re.findall(r"\$\(BIN\)/(\S+)", lint))
    (local,) = read_yaml(ROOT / ".pre-commit-config.yaml")["repos"]
    assert {hook["entry"].split()[0].removeprefix(".venv/bin/") for hook in local["hooks"]} == tools


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md"])
def test_links_to_files_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / name).read_text()):
        assert target.startswith("https://") or (ROOT / target).exists(), target
