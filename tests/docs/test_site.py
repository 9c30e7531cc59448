"""The site: a page for every measure, notes about measures that exist, messages that the program really gives."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest

import vitscope
from vitscope.findings import CLAIMS
from vitscope.pipeline.registry import ANALYSES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "docs/site_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_measure_has_a_page_of_its_own(pages: ModuleType) -> None:
    measures = [(kind, measure) for kind in ANALYSES.values() for measure in kind.measures]
    names = [pages.page_name(*pair) for pair in measures]
    assert len(set(names)) == len(measures)
    overview = pages.overview()
    for (kind, measure), name in zip(measures, names, strict=True):
        page = pages.measure_page(kind, measure, pages.Notes())
        assert page.startswith(f"# {measure.title}\n")
        assert name.removeprefix("measures/") in overview


def test_notes_are_about_measures_that_exist(pages: ModuleType) -> None:
    known = {measure.name for kind in ANALYSES.values() for measure in kind.measures}
    notes = pages.read_notes()
    assert not notes.keys() - known
    assert all(note.formula and note.silent for note in notes.values())


def test_every_headline_says_what_it_does_not_say(pages: ModuleType) -> None:
    notes = pages.read_notes()
    shown = {kind.headline.measure for kind in ANALYSES.values() if kind.headline}
    assert not {name for name in shown if name not in notes}


def test_every_finding_stands_with_its_rule(pages: ModuleType) -> None:
    page = pages.findings_page()
    assert all(f"## {claim.key}\n" in page and claim.text in page for claim in CLAIMS)


def test_every_setting_of_every_analysis_stands_in_the_reference(pages: ModuleType) -> None:
    assert (ROOT / "docs/api.md").read_text().count(pages.SETTINGS) == 1
    rows = {row.split("`")[1]: row for row in pages.settings_table().splitlines()[2:]}
    assert rows.keys() == {f"vitscope.{kind.__name__}" for kind in ANALYSES.values()}
    for kind in ANALYSES.values():
        assert getattr(vitscope, kind.__name__) is kind
        assert all(f"`{name}=" in rows[f"vitscope.{kind.__name__}"] for name in kind.model_fields)
    assert "`ks=(10, 20, 100, 200)`" in rows["vitscope.Knn"]


def test_symptoms_are_messages_that_the_program_gives() -> None:
    rows = re.findall(r"^\| (`.*?`)[^|]*\|", (ROOT / "docs/troubleshooting.md").read_text(), re.MULTILINE)
    source = "\n".join(path.read_text() for room in ("src", "tests") for path in (ROOT / room).rglob("*.py"))
    assert len(rows) > 10
    for row in rows:
        for message in re.findall(r"`([^`]+)`", row):
            assert message in source, message


class References(HTMLParser):
    """What a page loads, and where it leads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.leads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name == "src":
                self.loaded.append(value)
            elif value and name == "href":
                (self.leads if tag == "a" else self.loaded).append(value)


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_is_whole(tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    for name in ("demo.html", "explorer.html"):
        (folder / name).write_text("<!doctype html><title>page</title>")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    environment = os.environ | {"SITE_PAGES": str(folder), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(build, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    found = sorted((tmp_path / "site").rglob("*.html"))
    assert len(found) > sum(len(kind.measures) for kind in ANALYSES.values())
    for page in found:
        if page.name == "404.html":  # its links are absolute: it is shown wherever nothing is
            continue
        references = References(page.read_text())
        assert not [link for link in references.loaded if link.startswith(("http:", "https:", "//"))], page
        for link in (*references.loaded, *references.leads):
            target = unquote(link.partition("#")[0].partition("?")[0])
            if target and not re.match(r"[a-z]+:", target):
                assert (page.parent / target).exists(), f"{page.name}: {link}"
