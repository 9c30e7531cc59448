"""What is written for other programs: no name in it is a formula, a command or markup to them; no place is told."""

from __future__ import annotations

import csv
import io
import stat
from pathlib import Path

import polars as pl
import pytest
import torch
from matplotlib.figure import Figure

from tests.conftest import make_photos
from tests.support.commands import run_command
from vitscope.commands.results import as_latex, as_markdown
from vitscope.core.results import Label, Results, plain_cells, tidy
from vitscope.report.style import styled
from vitscope.report.table_formats import latex, markdown


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_cell_is_a_formula(name: str, tmp_path: Path) -> None:
    Results(tidy(Label(name, "dino", "ok", "d"), "m", torch.tensor([-1.5]), axes=["layer"])).save(tmp_path / "run")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "run/results.csv").read_bytes().decode(), newline="")))
    assert rows[0]["model"] == f"'{name}"
    assert rows[0]["dataset"] == "ok"
    assert float(rows[0]["value"]) == -1.5
    assert Results.load(tmp_path / "run").table["model"].to_list() == [name]


def test_an_ordinary_table_stays_as_it_is() -> None:
    table = pl.DataFrame({"model": ["zoo/dino", None, ""], "value": [-1.0, None, 2.0]})
    assert plain_cells(table).equals(table)


def test_special_characters_of_latex() -> None:
    assert latex(r"a\b^c~d_e%f&g#h$i{j}k<l>") == (
        r"a\textbackslash{}b\textasciicircum{}c\textasciitilde{}d\_e\%f\&g\#h\$i\{j\}k\textless{}l\textgreater{}"
    )
    assert latex("\\input{/etc/passwd}") == r"\textbackslash{}input\{/etc/passwd\}"
    assert r"\textbackslash{}input" in as_latex(pl.DataFrame({"model": ["\\input{x}"]}))


def test_special_characters_of_markdown() -> None:
    assert markdown("a|b\nc") == "a\\|b c"
    assert markdown("<script>[x](y)`*_") == "\\<script\\>\\[x\\](y)\\`\\*\\_"
    assert as_markdown(pl.DataFrame({"model": ["a|b"]})).splitlines()[2] == "| a\\|b |"


def test_names_are_no_mathematics(tmp_path: Path) -> None:
    with styled():
        figure = Figure()
        figure.suptitle("$\\frac{$")
        figure.savefig(tmp_path / "a.png")


def test_results_tell_no_place_of_this_machine(tmp_path: Path) -> None:
    make_photos(tmp_path / "photos", count=6)
    words = ["attention", "random:zoo/dino", "--images", tmp_path / "photos", "--out", tmp_path / "out"]
    assert run_command(words).status == 0
    for name in ("report.html", "provenance.json", "results.csv", "log.jsonl", "maps.safetensors"):
        file = tmp_path / "out" / name
        assert str(tmp_path).encode() not in file.read_bytes(), name
        assert stat.S_IMODE(file.stat().st_mode) == stat.S_IMODE((tmp_path / "out/results.parquet").stat().st_mode)
