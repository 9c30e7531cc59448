"""What a notebook shows of results: a table, the advice, everything to be minded, and no markup of others."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

from tests.pipeline.test_advice import study
from vitscope.api import StudyResults
from vitscope.core.results import Coverage

EVIL = '<img src=x onerror="alert(1)">'


class Reader(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def test_advice_table_and_notes_are_shown() -> None:
    results = StudyResults.of(study({"A": ("dino", 0.8), "B": ("mae", 0.3), "Z": ("none", 0.1)}))
    results.notes, results.failures = ["mind the gap"], ["B on beasts: lost"]
    results.coverage = [Coverage("B", "beasts", "labelled", 3, 9)]
    shown = results._repr_html_()
    assert "Take A at layer 3 of 3: " in shown
    for text in ("note: mind the gap", "failed: B on beasts: lost", "incomplete: B saw 3 of 9 (beasts)"):
        assert f"<li>{text}</li>" in shown
    head, *rows = Reader(shown).rows
    assert head == ["model", "k-NNbeaststop-1 %"]
    assert [row[0] for row in rows] == ["A", "B", "Z"]
    best = results.best_layers().cells["A", 0].value
    assert rows[0][1].startswith(f"{100 * best:.2f} (3)")


def test_results_without_tasks_show_their_first_rows() -> None:
    results = StudyResults.of(study({"A": ("dino", 0.8)}))
    results.table = results.table.with_columns(measure=results.table["measure"].str.replace("knn_top1", "distance"))
    head, *rows = Reader(results._repr_html_()).rows
    assert {"model", "layer", "measure", "value"} <= set(head)
    assert "head" not in head  # there is none
    assert len(rows) == 3


def test_names_and_notes_are_text_not_markup() -> None:
    results = StudyResults.of(study({EVIL: ("dino", 0.8), "Z": ("none", 0.1)}))
    results.title, results.notes, results.failures = EVIL, [EVIL], [EVIL]
    results.coverage = [replace(Coverage(EVIL, EVIL, "labelled", 3, 9))]
    results.table = results.table.with_columns(results.table["protocol"].str.replace("corrected", "paper" + EVIL))
    for table in (results.table, results.table.with_columns(measure=results.table["measure"].str.replace("knn", EVIL))):
        results.table = table
        assert set(Reader(results._repr_html_()).tags) <= {
            *("p", "b", "ul", "li", "table", "tr", "th", "td", "br"),
            "small",
        }
        assert "&lt;img" in results._repr_html_()
