"""A study from file to outcome: plan, jobs, joined results, findings."""

from __future__ import annotations

import json

import polars as pl

from vitscope.features.comparison import compare_models
from vitscope.progress import Progress, silent
from vitscope.results import Results
from vitscope.study.engines import run_plan
from vitscope.study.file import StudyFile
from vitscope.study.findings import evaluate_findings
from vitscope.study.folder import StudyFolder
from vitscope.study.outcome import Coverage, StudyOutcome
from vitscope.study.plan import Plan, make_plan
from vitscope.study.roles import record_of


def run_study(study: StudyFile, *, progress: Progress = silent) -> StudyOutcome:
    """Run what is not done yet and gather everything; also writes the joined results into the study's folder."""
    plan = make_plan(study)
    folder = StudyFolder(study.out, study.title)
    with folder.locked():
        run_plan(plan, folder, progress=progress)
        outcome = gather(plan, folder)
        outcome.results.save(folder.root)
    return outcome


def gather(plan: Plan, folder: StudyFolder) -> StudyOutcome:
    """Join the results of all finished jobs; what is not finished is told by the coverage."""
    results, coverage = Results(), []
    for job in plan.jobs:
        where = folder.job(job.digest)
        if not folder.is_done(job.digest):
            coverage.append(Coverage(job.title, job.role, 0, job.count))
            continue
        results.join(Results.load(where))
        about = json.loads((where / "done.json").read_text())
        coverage.append(Coverage(job.title, job.role, about["seen"], about["planned"], about["skipped"]))
    compare(plan, folder, results)
    results.notes += alarms(results)
    settings = plan.study.model_dump(mode="json", exclude={"out", "engine", "processes"})
    return StudyOutcome(plan.study.title, results, evaluate_findings(results), coverage, settings)


def compare(plan: Plan, folder: StudyFolder, results: Results) -> None:
    """Add the similarity of all models to each other, from what their passes left: no model is run."""
    done = [job for job in plan.of("images") if "features" in job.analyses and folder.is_done(job.digest)]
    if done:
        records = [record_of(job, folder.job(job.digest)) for job in done]
        between = Results()
        compare_models(records, between)
        between.table = between.table.with_columns(dataset=pl.lit("images"))
        results.join(between)


def alarms(results: Results) -> list[str]:
    """Two different models with bit-identical numbers are almost certainly one model under two names."""
    rows = results.table.filter(results.table["value"].is_not_nan())
    prints: dict[int, str] = {}
    notes = []
    for title in rows["model"].unique(maintain_order=True):
        mine = rows.filter(rows["model"] == title).select("layer", "head", "measure", "variant", "protocol", "value")
        key = hash(tuple(mine.sort(mine.columns).hash_rows(seed=0).to_list()))
        if key in prints:
            notes.append(f"{title} and {prints[key]} gave bit-identical results: are they the same weights?")
        prints[key] = title
    return notes
