"""`vitscope run`: a study from its file to its page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vitscope.commands.options import conclude
from vitscope.core.say import say

if TYPE_CHECKING:
    from vitscope.pipeline.study import Study


def run(study: Path, /, *, dry_run: bool = False, out: Path | None = None, figures: bool = True) -> None:
    """Run a study, or go on with it: only what is new is computed.

    Writes to the study's folder: report.html (opens offline), results.parquet and results.csv, maps.safetensors,
    provenance.json, figures/ (PNG, SVG, PDF), log.jsonl (what was computed when), states/ and outcomes/ (what is done).

    Parameters
    ----------
    study
        The study file (TOML); `vitscope init` writes one.
    dry_run
        Show the plan only: jobs, what is done already, an estimate of time, memory and disk.
    out
        Another folder than the file says.
    figures
        Draw the figures for papers too, after the page.
    """
    from vitscope.pipeline.study import read_study

    described = read_study(study)
    if out is not None:
        described = described.model_copy(update={"out": out.resolve()})
    if dry_run:
        show_plan(described)
    else:
        run_and_conclude(described, figures=figures)


def run_and_conclude(study: Study, *, figures: bool = True) -> None:
    """Run a study, write its page and figures, and say what came of it."""
    from vitscope.api import run_study
    from vitscope.core.progress import shown
    from vitscope.findings.outcome import Verdict

    results = run_study(study, progress=shown)
    lines = []
    findings = results.findings()
    for verdict in Verdict:
        keys = [finding.key for finding in findings if finding.verdict is verdict]
        if keys:
            lines.append(f"{verdict.value}: {', '.join(keys)}")
    conclude(results, study.out, lines, page=True, figures=figures)


def show_plan(study: Study) -> None:
    """Print what a study has to do and what that would cost; nothing is written."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from vitscope.pipeline.estimate import estimate
    from vitscope.pipeline.plan import make_plan
    from vitscope.pipeline.store import MARK, Store

    store = Store(study.out, study.title) if (study.out / MARK).exists() else None
    plan = make_plan(study.specs(), study.datasets(), study.chosen(), device=study.device)
    costs = estimate(plan, store)
    table = Table(title=study.title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column, justify in (("model", "left"), ("data", "left"), ("analyses", "left"), ("images", "right")):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    table.add_column("time, about", justify="right")
    for cost in costs.rows:
        when = "done" if not cost.jobs else span(cost.seconds)
        table.add_row(cost.model, cost.dataset, ", ".join(cost.analyses), f"{cost.images:,}", when)
    Console(markup=False, highlight=False).print(table)
    say(
        f"{costs.jobs} jobs to do: about {span(costs.seconds / study.processes)}, {costs.memory / 2**30:.1f} GB of "
        f"memory in each of {study.processes} processes, {amount(costs.disk)} of disk in {study.out}"
    )


def span(seconds: float) -> str:
    """A rough time in words.

    >>> span(30), span(600), span(9000)
    ('30 s', '10 min', '2.5 h')
    """
    if seconds < 120:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def amount(size: float) -> str:
    """
    >>> amount(12e6), amount(9.4e10)
    ('11 MB', '87.5 GB')
    """
    return f"{size / 2**20:.0f} MB" if size < 2**30 else f"{size / 2**30:.1f} GB"
