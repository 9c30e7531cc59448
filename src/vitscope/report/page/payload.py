"""Everything the page holds, gathered once: what the text says and what the scripts draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from vitscope.core.results import Coverage
from vitscope.data.openers import OPENERS
from vitscope.findings.outcome import StudyOutcome
from vitscope.report.growing_up import growing_rows
from vitscope.report.page.answers import answer_data, feature_pictures, growing_picture, importance_pictures
from vitscope.report.page.charts import HOW, WHAT, WHY
from vitscope.report.page.cite import bibtex
from vitscope.report.page.curves import CurveChart, curve_data
from vitscope.report.page.facts import facts
from vitscope.report.page.findings import FindingCard, beyond, finding_cards, findings_sentence
from vitscope.report.page.heads import head_data, kinds
from vitscope.report.page.methods import (
    CoverageTable,
    Job,
    coverage_table,
    incomplete,
    jobs,
    settings_text,
    shortfall,
    versions,
)
from vitscope.report.page.models import Chip, PageModel, legend, models_of
from vitscope.report.page.similarity import similarity_data
from vitscope.report.page.spaces import space_data
from vitscope.report.page.tasks import TaskColumn, headline, task_columns
from vitscope.report.page.words import count


@dataclass
class Page:
    """What the template reads; `data` goes to the scripts as JSON."""

    title: str
    subtitle: str
    headline: str
    models: list[PageModel]
    legend: list[Chip]
    columns: list[TaskColumn]
    facts: list[tuple[int, str]]  # (position of a model, what is told of it) where no task was asked
    cards: list[FindingCard]
    tested: list[FindingCard]  # those that hold or fail here
    findings: str
    beyond: str  # why findings about teachings cannot be tested here; "" if they can
    jobs_planned: int
    coverage: CoverageTable
    incomplete: list[Coverage]
    failures: list[str]
    shortfalls: dict[str, str]  # role -> what is missing of it, in words; "" if nothing is
    skipped: list[tuple[str, str]]
    notes: list[str]
    jobs: list[Job]
    versions: list[tuple[str, str]]
    settings: str
    citation: str  # BibTeX
    growing: str  # an image of series over steps; "" if there are none
    importance: list[str]  # heat maps of how much heads matter, as images
    pictures: list[dict[str, str]]  # mosaics of features: title, image
    curves: dict[str, list[dict[str, Any]]]  # chapter -> charts, with what is missing below each
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def described(self) -> str:
        """The study in a sentence or two, for those who see a link to it."""
        return f"{self.subtitle} {self.headline}".strip()


def gather(outcome: StudyOutcome, *, images: bool = True) -> Page:
    results = outcome.results
    models = models_of(results)
    numbers = results.table.filter(pl.col("value").is_finite())
    columns, tasks = task_columns(replace(results, table=numbers), models)
    curves = {
        "how": _charts(HOW, numbers, models, outcome.coverage),
        "what": _charts(WHAT, numbers, models, outcome.coverage),
        "why": _charts(WHY, numbers, models, outcome.coverage),
    }
    heads, pictures = head_data(results, models)
    similarity = similarity_data(results, models)
    cards = finding_cards(outcome.findings, _chart_of_measure(curves, columns, similarity, any(heads)))
    lacking = beyond({model.teaching.kind for model in models}) if cards else ""
    data = {
        "models": [model.as_dict() for model in models],
        "curves": {chart["key"]: chart for charts in curves.values() for chart in charts},
        "tasks": tasks,
        "heads": heads,
        "pictures": pictures,
        "similarity": similarity,
        "spaces": space_data(results, models),
        "answers": answer_data(results) if images else [],
        "growing": growing_rows(results),
        **kinds(),
    }
    return Page(
        title=outcome.title,
        subtitle=_subtitle(models, len(numbers)),
        headline=headline(columns),
        models=models,
        legend=legend(models),
        columns=columns,
        facts=[] if columns else facts(numbers, models),
        cards=cards,
        tested=[] if lacking else [card for card in cards if card.css != "untestable"],
        beyond=lacking,
        findings=findings_sentence(cards),
        jobs_planned=len(outcome.coverage),
        coverage=coverage_table(outcome.coverage),
        incomplete=incomplete(outcome.coverage),
        failures=list(results.failures),
        shortfalls={role: shortfall(outcome.coverage, [role]) for role in ("", *OPENERS)},
        skipped=sorted(results.skipped.items()),
        notes=list(results.notes),
        jobs=jobs(results.provenance),
        versions=versions(results.provenance),
        settings=settings_text(outcome.settings),
        citation=bibtex(results),
        growing=growing_picture(results) if images else "",
        importance=importance_pictures(results) if images else [],
        pictures=feature_pictures(results) if images else [],
        curves=curves,
        data=data,
    )


def _charts(
    charts: Sequence[CurveChart], table: pl.DataFrame, models: Sequence[PageModel], coverage: Sequence[Coverage]
) -> list[dict[str, Any]]:
    found = [(chart, curve_data(chart, table, models)) for chart in charts]
    return [data | {"short": shortfall(coverage, chart.roles)} for chart, data in found if data]


def _chart_of_measure(
    curves: dict[str, list[dict[str, Any]]],
    columns: Sequence[TaskColumn],
    similarity: dict[str, Any] | None,
    heads: bool,
) -> dict[str, str]:
    """measure -> id of the chart that shows it."""
    charts = [chart for several in curves.values() for chart in several]
    where = {measure: f"chart-{chart['key']}" for chart in charts for measure in chart["measures"]}
    where |= {column.measure: "chart-tasks" for column in columns}
    if "gini" in where:
        where["late_kind"] = where["gini"]
    if heads:
        where["head_kind"] = "atlas"
    if similarity and similarity["last"]:
        where["cka"] = "chart-similarity"
    if similarity and similarity["depth"]:
        where["cka_depth"] = "chart-depth"
    return where


def _subtitle(models: Sequence[PageModel], numbers: int) -> str:
    if not models:
        return "This study has no results yet."
    taught = [model.teaching.key for model in models if model.teaching.key != "none"]
    untrained = len(models) - len(taught)
    depths = sorted({model.depth for model in models})
    layers = f"{depths[0]} layers" if len(depths) == 1 else f"{depths[0]} to {depths[-1]} layers"
    if not taught:
        return f"{count(untrained, 'untrained network')}, {layers} each; {count(numbers, 'number')} measured."
    parts = [count(len(taught), "model")]
    if len(set(taught)) > 1:
        parts.append(f"taught in {count(len(set(taught)), 'way')}")
    parts.append(layers if len(taught) == 1 else f"{layers} each")
    beside = f", beside {count(untrained, 'untrained network')}" if untrained else ""
    return f"{', '.join(parts)}{beside}; {count(numbers, 'number')} measured."
