"""An exam for people: all figures side by side, and the targets with what was reached."""

from __future__ import annotations

from collections.abc import Mapping

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from vitscope.core.teachings import teaching
from zoo.exam.baselines import TITLES
from zoo.exam.marks import CHOICE, Figure
from zoo.exam.measures import MEASURES
from zoo.exam.record import Exam

SCORES = {"unc": "UNC", "nat": "NAT", "pck": "PCK", "jf": "J&F", "purity": "parts", "nmi": "NMI", "iou": "IoU"}
LOOKS = {"local": "local", "offset": "offset", "nearest": "nearest", "mixed": "mixed", "rise": "rise"}


def report(exam: Exam) -> Group:
    notes = "; ".join(f"{heading}: {MEASURES[name]}" for name, heading in (SCORES | LOOKS).items())
    how = f"Means and 95 % intervals over {exam.sizes.seeds} seeds of held-out renders. Layer: {CHOICE}."
    tables = figures_table(exam, "What the zoo can do", SCORES), figures_table(exam, "How it attends", LOOKS)
    return Group(*tables, Text(f"{notes}.\n{how}\n", style="dim"), targets_table(exam))


def figures_table(exam: Exam, title: str, headings: Mapping[str, str]) -> Table:
    """A row per network and baseline, a column per measure; below each mean half its interval."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("network", no_wrap=True)
    for heading in headings.values():
        table.add_column(heading, justify="right", no_wrap=True)
    for key, figures in exam.figures.items():
        name = Text(teaching(key).title, style=teaching(key).colour)
        table.add_row(name, *(_mean(figures.get(measure)) for measure in headings))
    table.add_section()
    for baseline, words in TITLES.items():
        found = [exam.baselines.get(measure, {}).get(baseline) for measure in headings]
        if any(found):
            table.add_row(Text(words, style="dim"), *(_mean(value) for value in found))
    return table


def targets_table(exam: Exam) -> Table:
    table = Table(title="Targets", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("target")
    table.add_column("figure", no_wrap=True)
    table.add_column("asked")
    table.add_column("beside it", no_wrap=True)
    table.add_column("", no_wrap=True)
    for verdict in exam.verdicts:
        value = verdict.figure
        shown = Text(f"{value.mean:.3f}\n{value.low:.3f}-{value.high:.3f}")
        others = exam.beside(verdict.target.measure).items()
        beside = "\n".join(f"{other.mean:.3f} {name}" for name, other in others)
        table.add_row(
            Text(verdict.target.name),
            Text.assemble(shown, f"\n{value.at}"),
            Text("; ").join(Text(words, style="" if holds else "red") for words, holds in verdict.conditions),
            Text(beside),
            Text("met", style="green") if verdict.met else Text("not met", style="bold red"),
        )
    return table


def _mean(value: Figure | None) -> Text:
    if value is None:
        return Text("-", style="dim")
    return Text.assemble(f"{value.mean:.3f}", (f"\n±{(value.high - value.low) / 2:.3f}", "dim"))
