"""The table of best layers for a terminal, a spreadsheet, Markdown and LaTeX.

The highest score is bold; what the advice cannot tell from the best is marked (`pipeline/advice.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from vitscope.core.results import plain_cells
from vitscope.core.teachings import teaching
from vitscope.pipeline.best_layers import BestLayers, Cell, Column

TIED = "not clearly worse than the best, unit by unit"
NAME_WIDTH, CELL_WIDTH = 24, 18  # characters, in a terminal
LATEX = str.maketrans({character: f"\\{character}" for character in "&%_#${}"})
LATEX |= str.maketrans({"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"})
LATEX |= str.maketrans({"<": r"\textless{}", ">": r"\textgreater{}", "\n": " "})
MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|#!~"} | {"\n": " "})


def to_terminal(table: BestLayers, width: int = 80) -> Group:
    """For a rich console of so many characters: as many tables as it takes for nothing to be cut off."""
    names = min(max(len(title) for title, _ in table.models), NAME_WIDTH)
    fit = max((width - names - 2) // (CELL_WIDTH + 2), 1)
    caption = Text(f"score (best layer), 95 % interval; bold: best; shaded: {TIED}", style="dim")
    parts = []
    for protocol in dict.fromkeys(column.protocol for column in table.columns):
        some = [i for i, column in enumerate(table.columns) if column.protocol == protocol]
        title = "Best layers" + ("" if protocol == "corrected" else f", {protocol} protocol")
        parts += [_terminal_table(table, some[i : i + fit], title) for i in range(0, len(some), fit)]
    return Group(*parts, caption)


def _terminal_table(table: BestLayers, columns: list[int], title: str) -> Table:
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    drawn.add_column("model", overflow="fold", max_width=NAME_WIDTH)
    for position in columns:
        drawn.add_column("\n".join(words(table.columns[position])), justify="right", max_width=CELL_WIDTH)
    for model, key in table.models:
        row = [_terminal_cell(table.columns[i], table.cells.get((model, i))) for i in columns]
        drawn.add_row(Text(model, style=teaching(key).colour), *row)
    return drawn


def _terminal_cell(column: Column, cell: Cell | None) -> Text:
    if cell is None:
        return Text("-", style="dim")
    text = Text(score(column, cell), style=("bold " if cell.best else "") + ("black on grey85" if cell.tied else ""))
    if not math.isnan(cell.low):
        text.append(f"\n{interval(column, cell)}", style="dim not bold" if not cell.tied else "not bold")
    if paper := of_paper(column, cell):
        text.append(f"\n{paper}", style="italic not bold")
    return text


def to_csv(table: BestLayers) -> str:
    """One line per model and task, as numbers."""
    return plain_cells(table.frame()).write_csv()


def to_markdown(table: BestLayers) -> str:
    lines = [
        "| model | " + " | ".join(heading(column, "<br>", markdown) for column in table.columns) + " |",
        "|---" * (len(table.columns) + 1) + "|",
    ]
    for model, _ in table.models:
        cells = [_markdown_cell(column, cell) for column, cell in table.row(model)]
        lines.append(f"| {markdown(model)} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", f"Score (best layer) and 95 % interval. **Bold**: best. ≈: {TIED}.", ""])


def _markdown_cell(column: Column, cell: Cell | None) -> str:
    if cell is None:
        return "-"
    text = f"**{score(column, cell)}**" if cell.best else score(column, cell) + (" ≈" if cell.tied else "")
    rest = [interval(column, cell) if not math.isnan(cell.low) else "", of_paper(column, cell)]
    return "<br>".join([text, *(part for part in rest if part)])


def to_latex(table: BestLayers) -> str:
    r"""A tabular for booktabs and \usepackage[table]{xcolor}."""
    newline = r" \\ "
    head = " & ".join(rf"\makecell[r]{{{heading(column, newline, latex)}}}" for column in table.columns)
    lines = [
        rf"% needs booktabs, makecell and xcolor with option table; shaded: {TIED}",
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
        rf"model & {head} \\",
        r"\midrule",
    ]
    for model, _ in table.models:
        cells = [_latex_cell(column, cell) for column, cell in table.row(model)]
        lines.append(rf"{latex(model)} & {' & '.join(cells)} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _latex_cell(column: Column, cell: Cell | None) -> str:
    if cell is None:
        return "--"
    text = rf"\textbf{{{score(column, cell)}}}" if cell.best else score(column, cell)
    paper = of_paper(column, cell)
    beside = rf" {{\scriptsize\color{{gray}}{paper}}}" if paper else ""
    return (r"\cellcolor{gray!18}" if cell.tied else "") + text + beside


def heading(column: Column, newline: str, escape: Callable[[str], str]) -> str:
    """Task, dataset and score; and the protocol if it is not the usual one."""
    protocol = "" if column.protocol == "corrected" else f", {column.protocol} protocol"
    return newline.join(map(escape, words(column))) + escape(protocol)


def words(column: Column) -> tuple[str, str, str]:
    return column.task.title, column.dataset, column.score


def score(column: Column, cell: Cell) -> str:
    """The paper's form: 83.79 (12)."""
    return f"{column.task.show(cell.value)} ({cell.layer})"


def interval(column: Column, cell: Cell) -> str:
    return f"{column.task.show(cell.low)}–{column.task.show(cell.high)}"


def of_paper(column: Column, cell: Cell) -> str:
    if cell.paper is None:
        return ""
    value, layer = cell.paper
    return f"paper {column.task.show(value)}" + (f" ({layer})" if layer else "")


def latex(text: str) -> str:
    r"""
    >>> print(latex("50 % of a_b^c"))
    50 \% of a\_b\textasciicircum{}c
    """
    return text.translate(LATEX)


def markdown(text: str) -> str:
    r"""
    >>> print(markdown("a|b <script>"))
    a\|b \<script\>
    """
    return text.translate(MARKDOWN)
