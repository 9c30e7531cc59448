"""Results as a notebook shows them: what to take, a table, and what must be minded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from vitscope.core.results import Results
from vitscope.pipeline.advice import Advice
from vitscope.pipeline.best_layers import BestLayers, Cell, Column
from vitscope.report.table_formats import TIED, heading, interval, of_paper, score

ROWS = 10  # of a study without tasks


def as_html(results: Results, table: BestLayers, advice: Sequence[Advice]) -> str:
    """A fragment of HTML; every name and sentence in it is escaped."""
    parts = [f"<p><b>{escape(results.title)}</b></p>"] if results.title else []
    if table.columns:
        parts.append(_items(f"{one.column.task.title} ({one.column.dataset}): {one.sentence}" for one in advice))
        head = ["model", *(heading(column, "<br>", escape) for column in table.columns)]
        rows = [
            [escape(model), *(_cell(column, cell) for column, cell in table.row(model))] for model, _ in table.models
        ]
        parts.append(_table(head, rows))
        parts.append(f"<p><small>Score (best layer), 95 % interval. Bold: best. ≈: {TIED}.</small></p>")
    else:
        first = results.table.head(ROWS)
        there = [name for name in first.columns if first[name].null_count() < len(first) and name != "provenance"]
        parts.append(_table(there, [[_plain(value) for value in row] for row in first.select(there).rows()]))
        parts.append(f"<p><small>{len(first)} of {len(results.table):,} rows: see .table</small></p>")
    parts.append(_items(_to_mind(results)))
    return "\n".join(part for part in parts if part)


def _to_mind(results: Results) -> Iterable[str]:
    yield from (f"failed: {text}" for text in results.failures)
    yield from (f"note: {text}" for text in results.notes)
    yield from (
        f"incomplete: {part.model} saw {part.seen} of {part.planned} ({part.dataset})"
        for part in results.coverage
        if not part.complete
    )


def _cell(column: Column, cell: Cell | None) -> str:
    if cell is None:
        return "-"
    text = f"<b>{score(column, cell)}</b>" if cell.best else score(column, cell) + (" ≈" if cell.tied else "")
    rest = [interval(column, cell) if not math.isnan(cell.low) else "", of_paper(column, cell)]
    return "<br>".join([text, *(escape(part) for part in rest if part)])


def _plain(value: object) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else escape(str(value))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """head and rows: escaped already."""
    lines = ["".join(f"<th>{cell}</th>" for cell in head)]
    lines += ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _items(texts: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<ul>{items}</ul>" if items else ""
