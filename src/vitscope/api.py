"""What people call: `vitscope.evaluate(...)`, whose results know findings, the table of best layers and the page."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from vitscope.core.progress import Progress, silent
from vitscope.core.results import Results
from vitscope.findings import evaluate_findings
from vitscope.findings.outcome import Finding, StudyOutcome
from vitscope.pipeline.advice import Advice, advise
from vitscope.pipeline.best_layers import BestLayers
from vitscope.pipeline.engines import Engine, Local, Ray
from vitscope.pipeline.evaluate import evaluate as run_evaluation
from vitscope.pipeline.needs import needs_of
from vitscope.pipeline.study import Study
from vitscope.report.figures import draw_figures
from vitscope.report.notebook import as_html
from vitscope.report.page import write_page
from vitscope.report.style import Width


class StudyResults(Results):
    """Results with what can be said of them.

    `.table` (tidy polars table), `["knn_top1"]` (rows of a measure), `.maps`, `.coverage`, `.notes`, `.failures`.
    """

    @classmethod
    def of(cls, results: Results) -> StudyResults:
        return cls(**{field.name: getattr(results, field.name) for field in fields(Results)})

    def best_layers(self) -> BestLayers:
        """The best layer of every model for every task."""
        return advise(self)[0]

    def advice(self) -> list[Advice]:
        """What to take for each task: a sentence each, and the decision behind it."""
        return advise(self)[1]

    def _repr_html_(self) -> str:
        """What a notebook shows: advice, the table of best layers or the first rows, and everything to be minded."""
        return as_html(self, *advise(self))

    def findings(self) -> list[Finding]:
        """The paper's findings, checked on these results."""
        return evaluate_findings(self)

    def outcome(self) -> StudyOutcome:
        return StudyOutcome(self, self.findings())

    def write_report(self, path: Path | str, *, images: bool = True) -> Path:
        """Write the page: one HTML file that opens offline. images: what answers and features look like, too."""
        return write_page(self.outcome(), Path(path), images=images)

    def write_figures(self, folder: Path | str, width: Width | None = None) -> list[Path]:
        """Draw every figure that the results allow, as PNG, SVG and PDF. width: "column" or "page" of a paper."""
        return draw_figures(self, Path(folder), width)


def evaluate(*arguments: Any, **options: Any) -> StudyResults:
    return StudyResults.of(run_evaluation(*arguments, **options))


evaluate.__doc__ = run_evaluation.__doc__
evaluate.__wrapped__ = run_evaluation  # type: ignore[attr-defined]  # its signature is the one that counts


def run_study(study: Study, *, download: bool = False, progress: Progress = silent) -> StudyResults:
    """Run what a study file asks for and is not done yet; results are saved in the study's folder."""
    engine: Engine = (
        Ray(study.processes if study.processes > 1 else None) if study.engine == "ray" else Local(study.processes)
    )
    needs = needs_of(study, download=download)
    needs.require()
    results = run_evaluation(
        needs.specs,
        needs.datasets,
        study.chosen(),
        store=study.out,
        engine=engine,
        title=study.title,
        device=study.device,
        seed=study.seed,
        skip_limit=study.skip_limit,
        workers=study.workers,
        settings=study.settings(),
        progress=progress,
    )
    results.save(study.out)
    return StudyResults.of(results)


def load_results(folder: Path | str) -> StudyResults:
    """The results that a command or study wrote."""
    return StudyResults.of(Results.load(folder))
