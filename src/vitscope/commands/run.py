"""`vitscope run`: a study from its file to its page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from vitscope.commands.options import DRAWN, FigureWidth, conclude
from vitscope.core.say import Figures, say

if TYPE_CHECKING:
    from rich.table import Table

    from vitscope.pipeline.estimate import Costs
    from vitscope.pipeline.needs import Needs
    from vitscope.pipeline.study import Study


def run(
    study: Path,
    /,
    *,
    dry_run: bool = False,
    out: Path | None = None,
    figures: Annotated[Figures | None, Parameter(help=f"{DRAWN} Otherwise as the file says.")] = None,
    width: FigureWidth = None,
    download: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Run a study, or go on with it: only what is new is computed.

    Writes to the study's folder: report.html (opens offline), results.parquet and results.csv, maps.safetensors,
    provenance.json, log.jsonl (what was computed when), states/ and outcomes/ (what is done), and figures/ if asked.

    Parameters
    ----------
    study
        The study file (TOML); `vitscope init` writes one.
    dry_run
        Show the plan only: every dataset and weights file that is needed, here or not, and how to get it; what is done
        already; an estimate of time, memory and disk. What is missing is counted as large as it is published.
    out
        Another folder than the file says.
    download
        Fetch missing weights from the hub. Nothing is fetched otherwise, and never a dataset.
    """
    from vitscope.pipeline.study import read_study

    described = read_study(study)
    given = {"out": out and out.resolve(), "figures": figures, "width": width}
    described = described.model_copy(update={key: value for key, value in given.items() if value is not None})
    if dry_run:
        show_plan(described)
    else:
        run_and_conclude(described, download=download)


def run_and_conclude(study: Study, *, download: bool = False) -> None:
    """Run a study, write its page and figures, and say what came of it."""
    from vitscope.api import run_study
    from vitscope.core.progress import shown
    from vitscope.findings.outcome import Verdict

    results = run_study(study, download=download, progress=shown)
    lines = []
    findings = results.findings()
    for verdict in Verdict:
        keys = [finding.key for finding in findings if finding.verdict is verdict]
        if keys:
            lines.append(f"{verdict.value}: {', '.join(keys)}")
    conclude(results, study.out, lines, page=True, figures=study.figures, width=study.width)


def show_plan(study: Study) -> None:
    """Print what a study needs, what it has to do and what that would cost; nothing is written or fetched."""
    from rich.console import Console

    from vitscope.core.files import MARK
    from vitscope.pipeline.estimate import estimate
    from vitscope.pipeline.needs import needs_of
    from vitscope.pipeline.plan import make_plan
    from vitscope.pipeline.store import Store

    console = Console(markup=False, highlight=False)
    needs = needs_of(study, check=True)
    console.print(_needs_table(needs, study.title))
    if not needs.specs or not needs.datasets:
        say("what that would cost cannot be told: nothing is known of what is missing")
        return
    store = Store(study.out, study.title) if (study.out / MARK).exists() else None
    plan = make_plan(needs.specs, needs.datasets, study.chosen(), device=study.device)
    costs = estimate(plan, store)
    console.print(_costs_table(costs))
    if needs.missing:
        say(f"missing: {len(needs.missing)} of {len(needs.rows)}; what has a name is counted all the same")
    say(
        f"{costs.jobs} jobs to do: about {span(costs.seconds / study.processes)}, {costs.memory / 2**30:.1f} GB of "
        f"memory in each of {study.processes} processes, {amount(costs.disk)} of disk in {study.out}"
    )


def _needs_table(needs: Needs, title: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("needs", "kind", "", "where, or how to get it"):
        table.add_column(column, overflow="fold")
    told: set[str] = set()
    for need in needs.rows:
        words = "as above" if need.words in told else need.words
        told.add(need.words)
        table.add_row(need.name, need.kind, "present" if need.here else "MISSING", words)
    return table


def _costs_table(costs: Costs) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("model", "data", "analyses"):
        table.add_column(column)
    for column in ("images", "time, about", "disk"):
        table.add_column(column, justify="right")
    for cost in costs.rows:
        when = "done" if not cost.jobs else span(cost.seconds)
        images, disk = f"{cost.images:,}", amount(cost.disk)
        table.add_row(cost.model, cost.dataset, ", ".join(cost.analyses), images, when, disk)
    return table


def span(seconds: float) -> str:
    """A rough time in words.

    >>> span(30), span(600), span(9000), span(864000)
    ('30 s', '10 min', '2.5 h', '10 days')
    """
    if seconds < 120:
        return f"{max(seconds, 1):.0f} s"
    if seconds > 3 * 86400:
        return f"{seconds / 86400:.0f} days"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def amount(size: float) -> str:
    """
    >>> amount(12e6), amount(9.4e10)
    ('11 MB', '87.5 GB')
    """
    return f"{size / 2**20:.0f} MB" if size < 2**30 else f"{size / 2**30:.1f} GB"
