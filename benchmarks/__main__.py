"""`make bench`: every speed and memory target as a ratio measured here and now.

`python -m benchmarks features tasks` runs some suites only; `--quick` measures everything on small sizes, to see that
it works: targets are not judged then. Rows are shown and kept in `last.json` as soon as they are measured.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path

import torch
from rich.console import Console

from benchmarks.timing import Row

SUITES = (
    "attention",
    "features",
    "same_pass",
    "tasks",
    "engines",
    "scale",
)  # modules of this folder with `rows(quick)`
LAST = Path(__file__).parent / "last.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen suites; a crash in one is told and the others go on. Returns the exit status."""
    parser = ArgumentParser("python -m benchmarks", description="Speed and memory, as ratios measured in one run.")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"some of {', '.join(SUITES)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="small sizes and one round: targets are not judged")
    options = parser.parse_args(arguments)
    if unknown := set(options.suites) - set(SUITES):
        parser.error(f"no such suite: {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    threads = os.cpu_count() or 1
    torch.set_num_threads(threads)
    console = Console(soft_wrap=True, highlight=False)
    console.print(f"vitscope bench, {threads} threads, torch {torch.__version__}{', quick' * options.quick}")
    rows: list[dict[str, object]] = []
    crashed: dict[str, str] = {}
    for suite in options.suites or SUITES:
        console.print(f"\n[bold]{suite}[/]")
        try:
            for row in import_module(f"benchmarks.{suite}").rows(quick=options.quick):
                row = replace(row, target=None) if options.quick else row
                show(row, console)
                rows.append({"suite": suite, **asdict(row), "met": row.met})
                keep(threads, options.quick, rows, crashed)
        except Exception as error:
            traceback.print_exc()
            crashed[suite] = f"{type(error).__name__}: {error}"
    keep(threads, options.quick, rows, crashed)
    for suite, reason in crashed.items():
        print(f"{suite} crashed: {reason}", file=sys.stderr)
    return 1 if crashed else 0


def show(row: Row, console: Console) -> None:
    number = f"{row.value:.3f} {row.unit}" if abs(row.value) < 100 else f"{row.value:.0f} {row.unit}"
    sign = "<=" if row.better == "smaller" else ">="
    target = "" if row.target is None else f"{sign} {row.target:g} {row.unit}"
    verdict = "" if row.met is None else "[green]met[/]" if row.met else "[red]missed[/]"
    console.print(f"{row.name:<78} {number:>10} {target:>10} {verdict}")
    if row.note:
        console.print(f"  {row.note}", style="dim")


def keep(threads: int, quick: bool, rows: list[dict[str, object]], crashed: dict[str, str]) -> None:
    about = {"torch": torch.__version__, "threads": threads, "quick": quick}
    LAST.write_text(json.dumps({**about, "rows": rows, "crashed": crashed}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
