"""`make bench`: every speed and memory target as a ratio measured here and now. Give names to run only some."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.timing import Row

SUITES = [path.stem for path in sorted(Path(__file__).parent.glob("[a-z]*.py")) if path.stem != "timing"]
COLUMNS = {"measure": "left", "value": "right", "target": "right", "": "center", "note": "left"}


def main() -> None:
    threads = os.cpu_count() or 1
    torch.set_num_threads(threads)
    chosen = sys.argv[1:] or SUITES
    table = Table(title=f"vitscope bench, {threads} threads, torch {torch.__version__}", title_justify="left")
    for column, justify in COLUMNS.items():
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    for suite in chosen:
        print(f"running {suite} ...", file=sys.stderr, flush=True)
        for row in import_module(f"benchmarks.{suite}").rows():
            table.add_row(*_cells(row))
    Console(width=150).print(table)


def _cells(row: Row) -> tuple[str, str, str, str, str]:
    number = f"{row.value:.3f} {row.unit}" if abs(row.value) < 100 else f"{row.value:.0f} {row.unit}"
    sign = "<=" if row.better == "smaller" else ">="
    target = "" if row.target is None else f"{sign} {row.target:g} {row.unit}"
    verdict = "" if row.met is None else "[green]met[/]" if row.met else "[red]missed[/]"
    return row.name, number, target, verdict, row.note


if __name__ == "__main__":
    main()
