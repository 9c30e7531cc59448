"""`vitscope run`: a study from its file to its page."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from vitscope.progress import shown
from vitscope.report.figures import draw_figures
from vitscope.report.page import write_page
from vitscope.study.estimate import estimate
from vitscope.study.file import StudyFile, read_study
from vitscope.study.folder import MARK, StudyFolder
from vitscope.study.outcome import StudyOutcome, Verdict
from vitscope.study.plan import make_plan
from vitscope.study.run import run_study


def run(study: Path, /, *, dry_run: bool = False, out: Path | None = None) -> None:
    """Run a study, or go on with it: only what is new is computed.

    Writes to the study's folder: report.html (opens offline), results.parquet and results.csv, maps.safetensors,
    provenance.json, figures/ (PNG, SVG, PDF), log.jsonl (what was computed when), jobs/ (finished work by digest).

    Parameters
    ----------
    study
        The study file (TOML); `vitscope init` writes one.
    dry_run
        Show the plan only: jobs, what is done already, an estimate of time, memory and disk.
    out
        Another folder than the file says.
    """
    described = read_study(study)
    if out is not None:
        described = described.model_copy(update={"out": out.resolve()})
    if dry_run:
        show_plan(described)
        return
    conclude(described)


def conclude(study: StudyFile) -> Path:
    """Run a study, write its page and figures, and say what came of it; returns the page."""
    console = Console()
    outcome = run_study(study, progress=shown)
    page = write_page(outcome, study.out / "report.html")
    for line in [*closing_lines(outcome), f"page: {page}"]:
        console.print(line, highlight=False, soft_wrap=True)
    with console.status("drawing the figures for papers"):
        draw_figures(outcome, study.out / "figures")
    console.print(f"figures: {study.out / 'figures'}", highlight=False, soft_wrap=True)
    return page


def closing_lines(outcome: StudyOutcome) -> list[str]:
    """Findings in a few lines, then everything that limits them."""
    lines = []
    for verdict in Verdict:
        keys = [finding.key for finding in outcome.findings if finding.verdict is verdict]
        if keys:
            lines.append(f"{verdict.value}: {', '.join(keys)}")
    lines += [f"note: {note}" for note in outcome.results.notes]
    for part in outcome.coverage:
        if not part.complete:
            lines.append(f"incomplete: {part.model} saw {part.seen} of {part.planned} ({part.role})")
    return lines


def show_plan(study: StudyFile) -> None:
    """Print the jobs of a study and what they would cost; nothing is written."""
    plan = make_plan(study)
    folder = StudyFolder(study.out, study.title) if (study.out / MARK).exists() else None
    costs = estimate(plan, folder)
    table = Table(title=study.title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column, justify in (("model", "left"), ("data", "left"), ("analyses", "left"), ("pictures", "right")):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    table.add_column("time, about", justify="right")
    for cost in costs:
        job = cost.job
        when = "done" if cost.done else span(cost.seconds)
        table.add_row(job.title, job.role, ", ".join(job.analyses), f"{job.count:,}", when)
    console = Console()
    console.print(table)
    waiting = [cost for cost in costs if not cost.done]
    memory = max((cost.memory for cost in waiting), default=0) / 2**30 + 0.7  # and Python with its libraries
    disk = sum(cost.disk for cost in waiting) / 2**20 + 10  # and the page with its figures
    console.print(
        f"{len(waiting)} of {len(costs)} jobs to do: about {span(sum(c.seconds for c in waiting))}, "
        f"{memory:.1f} GB of memory, {disk:.0f} MB of disk in {study.out}",
        highlight=False,
        soft_wrap=True,
    )


def span(seconds: float) -> str:
    """A rough time in words.

    >>> span(30), span(600), span(9000)
    ('30 s', '10 min', '2.5 h')
    """
    if seconds < 120:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
