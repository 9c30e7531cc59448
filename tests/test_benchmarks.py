"""The bench: what it measured is never lost, whatever happens to a suite."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import __main__ as bench
from benchmarks.timing import Row
from tests.support.releases import since


@pytest.fixture
def last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(bench, "LAST", tmp_path / "last.json")
    return tmp_path / "last.json"


def give_suites(monkeypatch: pytest.MonkeyPatch, *names: str) -> list[tuple[str, bool]]:
    """Suites of two rows each, "broken" with a crash between them; returns what was asked of them."""
    asked: list[tuple[str, bool]] = []
    for name in names:

        def rows(quick: bool = False, name: str = name) -> Iterator[Row]:
            asked.append((name, quick))
            yield Row(f"first of {name}", 1.0, 1.1)
            if name == "broken":
                raise RuntimeError("out of luck")
            yield Row(f"second of {name}", 2.0, 1.1)

        module = ModuleType(f"benchmarks.{name}")
        module.rows = rows  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, f"benchmarks.{name}", module)
    monkeypatch.setattr(bench, "SUITES", names)
    return asked


@since("numpy", 2)  # for which today's faiss is built
def test_every_suite_has_rows() -> None:
    assert all(callable(import_module(f"benchmarks.{suite}").rows) for suite in bench.SUITES)


def test_a_crash_loses_neither_rows_nor_the_other_suites(
    last: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give_suites(monkeypatch, "broken", "sound")
    assert bench.main([]) == 1
    said = capsys.readouterr()
    assert all(line in said.out for line in ("first of broken", "first of sound", "second of sound"))
    assert "broken crashed: RuntimeError: out of luck" in said.err
    kept = json.loads(last.read_text())
    assert [row["name"] for row in kept["rows"]] == ["first of broken", "first of sound", "second of sound"]
    assert [row["met"] for row in kept["rows"]] == [True, True, False]
    assert kept["crashed"] == {"broken": "RuntimeError: out of luck"}


def test_rows_are_shown_and_kept_as_they_are_measured(last: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("benchmarks.killed")

    def rows(quick: bool = False) -> Iterator[Row]:
        yield Row("measured before", 1.0, None)
        raise KeyboardInterrupt

    module.rows = rows  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "benchmarks.killed", module)
    monkeypatch.setattr(bench, "SUITES", ("killed",))
    with pytest.raises(KeyboardInterrupt):
        bench.main([])
    assert [row["name"] for row in json.loads(last.read_text())["rows"]] == ["measured before"]


def test_suites_are_chosen_by_name_and_quick_judges_nothing(last: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = give_suites(monkeypatch, "one", "two", "three")
    assert bench.main(["three", "one", "--quick"]) == 0
    assert asked == [("three", True), ("one", True)]
    assert {row["met"] for row in json.loads(last.read_text())["rows"]} == {None}


def test_an_unknown_suite_is_told_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        bench.main(["published_cka"])
    assert "no such suite: published_cka; there are whole_pass, attention, features" in capsys.readouterr().err


def test_only_ratios_that_got_worse_by_more_than_a_tenth_are_named() -> None:
    def row(name: str, value: float, better: str = "smaller", unit: str = "x") -> dict[str, object]:
        return {"suite": "s", "name": name, "value": value, "better": better, "unit": unit}

    kept = [row("pass", 1.0), row("pass", 2.0), row("k-NN", 1.0, "larger"), row("memory", 100, unit="MB")]
    same = [row("pass", 1.09), row("pass", 1.0), row("k-NN", 0.92, "larger"), row("memory", 900, unit="MB")]
    assert bench.worse(kept, [*same, row("new", 9.0)]) == []
    slow = [row("pass", 1.0), row("pass", 2.3), row("k-NN", 0.9, "larger")]
    assert bench.worse(kept, slow) == [
        "worse: s, pass: 2.300 x, 2.000 x was kept",
        "worse: s, k-NN: 0.900 x, 1.000 x was kept",
    ]


def test_what_is_kept_is_what_was_measured_and_is_checked(
    last: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "RESULTS", tmp_path / "results.json")
    give_suites(monkeypatch, "one")
    assert bench.main(["--keep"]) == 0
    kept = json.loads((tmp_path / "results.json").read_text())
    assert len(kept["rows"]) == 2
    assert {"machine", "python", "torch", "vitscope", "threads"} <= kept.keys()
    assert bench.main(["--check"]) == 0
    kept["rows"][1]["value"] = 1.5
    (tmp_path / "results.json").write_text(json.dumps(kept))
    assert bench.main(["--check"]) == 1
    assert "worse: one, second of one: 2.000 x, 1.500 x was kept" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        bench.main(["--check", "--quick"])


def test_what_is_kept_of_suites_that_were_not_run_stays(
    last: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = last.with_name("results.json")
    monkeypatch.setattr(bench, "RESULTS", results)
    give_suites(monkeypatch, "one", "two")
    with pytest.raises(SystemExit):
        bench.main(["one", "--check"])
    assert "there is no results.json to compare with" in capsys.readouterr().err
    for suite in ("two", "one", "two"):
        assert bench.main([suite, "--keep"]) == 0
    assert [row["suite"] for row in json.loads(results.read_text())["rows"]] == ["one", "one", "two", "two"]
