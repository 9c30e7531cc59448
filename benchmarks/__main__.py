"""`make bench`: every speed and memory target as a ratio measured here and now.

`python -m benchmarks features tasks` runs some suites only; `--quick` measures everything on small sizes, to see that
it works: targets are not judged then. Rows are shown and kept in `last.json` as soon as they are measured.
`--keep` writes them to `results.json`, which is committed: the last run on quiet cores, with machine and versions.
`make bench-check` (`--check`) compares ratios with it and names what got worse by more than a tenth.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import traceback
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from benchmarks.timing import Row
from vitscope import __version__

SUITES = (
    "whole_pass",
    "attention",
    "features",
    "same_pass",
    "tasks",
    "teaching",
    "engines",
    "scale",
)  # modules of this folder with `rows(quick)`
LAST = Path(__file__).parent / "last.json"
RESULTS = Path(__file__).parent / "results.json"
WORSE = 1.1  # times what was kept: beyond, a ratio got worse


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen suites; a crash in one is told and the others go on. Returns the exit status."""
    parser = ArgumentParser("python -m benchmarks", description="Speed and memory, as ratios measured in one run.")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"some of {', '.join(SUITES)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="small sizes and one round: targets are not judged")
    parser.add_argument("--keep", action="store_true", help=f"write {RESULTS.name}: only on quiet cores")
    parser.add_argument(
        "--check", action="store_true", help=f"compare with {RESULTS.name}; exit 1 if a ratio got worse"
    )
    options = parser.parse_args(arguments)
    if options.quick and (options.keep or options.check):
        parser.error("small sizes tell nothing about speed: leave out --quick")
    if unknown := set(options.suites) - set(SUITES):
        parser.error(f"no such suite: {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    if options.check and not RESULTS.exists():
        parser.error(f"there is no {RESULTS.name} to compare with: --keep writes it")
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
    slower = worse(json.loads(RESULTS.read_text())["rows"], rows) if options.check else []
    for line in slower:
        print(line, file=sys.stderr)
    if options.keep and not crashed:
        keep_results(json.loads(LAST.read_text()))
    return 1 if crashed or slower else 0


def keep_results(found: dict[str, Any]) -> None:
    """Write results.json; rows of suites that were not run now stay as they were."""
    measured = {row["suite"] for row in found["rows"]}
    before = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []
    rows = [row for row in before if row["suite"] not in measured] + found["rows"]
    found["rows"] = sorted(rows, key=lambda row: SUITES.index(row["suite"]))
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


def worse(kept: Sequence[dict[str, Any]], found: Sequence[dict[str, Any]]) -> list[str]:
    """A sentence for each ratio that is more than a tenth worse than the one that was kept.

    Rows are known by suite, name and turn: one name may be measured in wall and in CPU time. Seconds and megabytes of
    another machine are not compared.
    """

    def by_turn(rows: Sequence[dict[str, Any]]) -> dict[tuple[str, str, int], dict[str, Any]]:
        turns: Counter[tuple[str, str]] = Counter()
        numbered = {}
        for row in rows:
            key = row["suite"], row["name"]
            numbered[row["suite"], row["name"], turns[key]] = row
            turns[key] += 1
        return numbered

    before, told = by_turn(kept), []
    for key, row in by_turn(found).items():
        if key not in before or row["unit"] != "x":
            continue
        old, new = before[key]["value"], row["value"]
        if (new / old if row["better"] == "smaller" else old / new) > WORSE:
            told.append(f"worse: {row['suite']}, {row['name']}: {new:.3f} x, {old:.3f} x was kept")
    return told


def show(row: Row, console: Console) -> None:
    number = f"{row.value:.3f} {row.unit}" if abs(row.value) < 100 else f"{row.value:.0f} {row.unit}"
    sign = "<=" if row.better == "smaller" else ">="
    target = "" if row.target is None else f"{sign} {row.target:g} {row.unit}"
    verdict = "" if row.met is None else "[green]met[/]" if row.met else "[red]missed[/]"
    console.print(f"{row.name:<78} {number:>10} {target:>10} {verdict}")
    if row.note:
        console.print(f"  {row.note}", style="dim")


def keep(threads: int, quick: bool, rows: list[dict[str, object]], crashed: dict[str, str]) -> None:
    about = {"torch": torch.__version__, "threads": threads, "quick": quick, "machine": processor()}
    about |= {"python": platform.python_version(), "vitscope": __version__}
    LAST.write_text(json.dumps({**about, "rows": rows, "crashed": crashed}, indent=1) + "\n")


def processor() -> str:
    """The name of the processor, as Linux knows it."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


if __name__ == "__main__":
    sys.exit(main())
