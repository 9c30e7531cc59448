"""`vitscope results`: the numbers of a finished run, for other programs and for papers."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import polars as pl

from vitscope.core.errors import VitscopeError, shorten
from vitscope.core.results import Results, plain_cells
from vitscope.pipeline.advice import advise
from vitscope.report.table_formats import latex, markdown, to_csv, to_latex, to_markdown


def results(
    run: Path,
    /,
    *,
    format: Literal["csv", "md", "latex"] = "csv",
    measure: str | None = None,
    best: bool = False,
) -> None:
    """Print the results of a run: all rows, one measure, or the table of best layers.

    Columns: model, teaching, dataset, layer and head (from 1; empty where there is none), measure, variant, protocol,
    value, ci_low and ci_high (95 % bootstrap interval), n, provenance (digest; see provenance.json of the run).

    Parameters
    ----------
    run
        Folder of a run: of `vitscope run`, `attention`, `features` or `tasks`.
    format
        csv, md (Markdown) or latex.
    measure
        Only rows of this measure, such as attention_distance.
    best
        The best layer of every model for every task, instead of all rows: as fractions in csv, and in md and latex in
        per cent where the heading says so.
    """
    found = Results.load(run)
    if best:
        table, _ = advise(found)
        if not table.columns:
            raise VitscopeError(f"{run} holds no downstream tasks, so there is no table of best layers")
        print({"csv": to_csv, "md": to_markdown, "latex": to_latex}[format](table), end="")
        return
    rows = found.table
    if measure is not None:
        rows = rows.filter(pl.col("measure") == measure)
        if rows.is_empty():
            there = ", ".join(sorted(found.table["measure"].unique()))
            raise VitscopeError(f"{run} has no measure '{shorten(measure)}': there is {there}")
    text = plain_cells(rows).write_csv() if format == "csv" else (as_markdown if format == "md" else as_latex)(rows)
    print(text, end="")


def as_markdown(table: pl.DataFrame) -> str:
    lines = [" | ".join(table.columns), " | ".join("---" for _ in table.columns)]
    lines += [" | ".join(markdown(_cell(value)) for value in row) for row in table.rows()]
    return "".join(f"| {line} |\n" for line in lines)


def as_latex(table: pl.DataFrame) -> str:
    rows = [[latex(_cell(value)) for value in row] for row in ([*table.columns], *table.rows())]
    body = [" & ".join(row) + r" \\" for row in rows]
    spec = "".join("r" if kind.is_numeric() else "l" for kind in table.dtypes)
    return "\n".join([rf"\begin{{tabular}}{{{spec}}}", body[0], r"\hline", *body[1:], r"\end{tabular}", ""])


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
