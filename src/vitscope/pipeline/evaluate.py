"""The one function: models, datasets and analyses become results; what the store has is not computed again."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from multiprocessing import current_process
from pathlib import Path
from typing import Any

import polars as pl

from vitscope.core.analysis import Analysis, Member, Outcome, batch_of
from vitscope.core.device import batches_together, choose_device, compute_dtype
from vitscope.core.errors import BadData, VitscopeError
from vitscope.core.files import Damaged, discard
from vitscope.core.progress import Progress, silent
from vitscope.core.provenance import versions
from vitscope.core.results import SCHEMA, Coverage, Results
from vitscope.data.dataset import Dataset
from vitscope.data.openers import open_dataset
from vitscope.models.several import distinct
from vitscope.models.spec import Named, Spec, resolve
from vitscope.pipeline.engines import Engine, Local
from vitscope.pipeline.found import StoredFound
from vitscope.pipeline.plan import Plan, Schedule, Task, make_plan
from vitscope.pipeline.registry import default_analyses
from vitscope.pipeline.store import Store
from vitscope.tasks.units import PREFIX

REPAIRS = 3  # times that a damaged file is made anew
Export = Callable[[Plan, Store], None]


def evaluate(
    models: Sequence[Named] | Named,
    on: Sequence[Dataset | Path | str] | Dataset | Path | str,
    analyses: Sequence[Analysis] | None = None,
    *,
    store: Path | str | None = None,
    engine: Engine | None = None,
    protocols: Sequence[str] = ("corrected",),
    title: str = "",
    device: str = "auto",
    seed: int = 0,
    download: bool = False,
    skip_limit: int = 50,
    workers: int = 0,
    settings: dict[str, Any] | None = None,
    export: Export | None = None,
    progress: Progress = silent,
) -> Results:
    """Evaluate models on datasets: `evaluate(["zoo/dino"], on=[images("photos")], store="runs/mine").table`.

    models: names (`vitscope models` lists them), model cards, weights files, `Spec`s, or networks in memory.
    on: datasets (`vitscope.images("photos")` and the like), or paths, whose layout is recognised.
    analyses: such as `Knn(ks=(20,))`; all that the data allow if not given, under each of `protocols`.
    store: a folder; the same one again computes only what is missing. Without it nothing is kept.
    engine: `Local(processes=2)` or `Ray()`; this process if not given.
    skip_limit: so many unreadable images are passed over, counted and named; more are an error.
    workers: processes that decode images, for each process that runs a network; 0: a few threads.
    export: is shown the plan and the store at the end, to write what results do not hold.
    What could not be done is in `failures` (an error if nothing could).
    """
    if getattr(current_process(), "_inheriting", False):
        raise SystemExit  # a script that a starting worker reads, and that calls us again: its parent tells
    specs = list(distinct([resolve(m, seed=seed, download=download) for m in _several(models)]))
    if not specs:
        raise VitscopeError("name at least one model: `vitscope models` lists them")
    datasets = [d if isinstance(d, Dataset) else open_dataset(d, seed=seed) for d in _several(on)]
    if not datasets:
        raise BadData("say what to look at: a folder of images, or a dataset")
    chosen = list(analyses) if analyses is not None else default_analyses({d.kind for d in datasets}, protocols)
    plan = make_plan(specs, datasets, chosen, device=device, skip_limit=skip_limit, workers=workers)
    with ExitStack() as stack:
        if store is None:
            store = stack.enter_context(tempfile.TemporaryDirectory(prefix="vitscope-"))
        home = Store(store, title)
        stack.enter_context(home.locked())
        results = run(plan, home, engine or Local(), progress, export)
        results.title, results.settings, results.datasets = title, settings or {}, list(plan.datasets)
    return results


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]


def run(plan: Plan, store: Store, engine: Engine, progress: Progress = silent, export: Export | None = None) -> Results:
    """Do what is missing and join everything; damaged files are noticed, told and made anew."""
    remarks: list[str] = list(store.notes)
    times: Counter[Path] = Counter()
    while True:
        jobs = plan.jobs(store)
        check_weights(plan, {job.model for job in jobs if job.kind == "map"})
        schedule = Schedule(plan, jobs)
        if jobs:
            engine.run(schedule, store, progress)
        remarks += [f"a worker was lost ({what}): what it had begun was done again" for what in schedule.given_again()]
        done, found = read_outcomes(plan, store)
        found += [error for _, error in schedule.failures if isinstance(error, Damaged)]
        if not found:
            try:
                results = join(plan, store, schedule, done, progress)
                if export is not None:
                    export(plan, store)
            except Damaged as error:
                found = [error]
            else:
                _add_notes(results, remarks)
                return results
        for damaged in {error.path: error for error in found}.values():
            times[damaged.path] += 1
            if times[damaged.path] > REPAIRS:
                raise VitscopeError(f"{damaged.path} is damaged again and again ({damaged.why}): check the disk")
            remarks.append(forget(plan, store, damaged))


def forget(plan: Plan, store: Store, damaged: Damaged) -> str:
    """Take a damaged file away, so that the next plan makes it anew; returns what is to be told of it."""
    discard(damaged.path)
    key = damaged.path.parent.name
    for task in plan.tasks:  # of a state: whoever has been reduced from it, or nobody would ask for it again
        if any(key == known for keys in task.keys.values() for known, _ in keys.values()):
            store.outcome_path(task.digest).unlink(missing_ok=True)
    inside = damaged.path.is_relative_to(store.root)
    name = damaged.path.relative_to(store.root) if inside else damaged.path.name
    store.log("repaired", file=str(name), why=damaged.why)
    return f"a file of the store was damaged and made anew ({name}: {damaged.why})"


def check_weights(plan: Plan, models: set[int]) -> None:
    """Open the weights of every model that is to run, names and shapes, before the first one runs."""
    for number in sorted(models):
        plan.models[number].check()


def read_outcomes(plan: Plan, store: Store) -> tuple[dict[int, Outcome], list[Damaged]]:
    """The outcomes of all tasks that are done, by number, and what is damaged of them and of states that are kept."""
    done: dict[int, Outcome] = {}
    damaged: list[Damaged] = []
    for number, task in enumerate(plan.tasks):
        if store.has_outcome(task.digest):
            try:
                done[number] = store.read_outcome(task.digest)
            except Damaged as error:
                damaged.append(error)
            if task.analysis.keeps_states:
                damaged += StoredFound(plan, task, store).check()
    return done, damaged


def join(plan: Plan, store: Store, schedule: Schedule, done: dict[int, Outcome], progress: Progress) -> Results:
    """The outcomes of all tasks as one table; what is not done is told by coverage and failures."""
    results = Results()
    tables = []
    if not done:
        _raise_first(schedule)
    for number, outcome in done.items():
        task = plan.tasks[number]
        tables += [_owned(plan, task, table) for table in outcome.tables]
        _add_maps(plan, task, outcome, results)
        title = plan.models[task.model].title
        _add_notes(results, [note.replace("{model}", title) for note in outcome.notes])
        results.provenance.append(provenance(plan, task, outcome))
    results.table = pl.concat([results.table, *tables]) if tables else results.table
    for spec in plan.models:
        _add_notes(results, spec.notes)
    for dataset in plan.datasets:
        _add_notes(results, dataset.notes)
    results.coverage = coverage(plan, done)
    for part in results.coverage:
        results.skipped |= {f"{part.dataset}/{name}": why for name, why in part.skipped.items()}
    for comparison in plan.comparisons:
        if all(number in done for number in comparison.tasks):
            compare(plan, store, comparison, results, progress)
    results.notes += alarms(results)
    results.failures = _sentences(plan, schedule)
    return results


def _raise_first(schedule: Schedule) -> None:
    for _, error in schedule.failures:
        if isinstance(error, BaseException):
            raise error
        raise VitscopeError(error)


def _sentences(plan: Plan, schedule: Schedule) -> list[str]:
    found = []
    for job, error in schedule.failures:
        if isinstance(error, BaseException) and not isinstance(error, VitscopeError):
            raise error
        found.append(error if isinstance(error, str) else f"{plan.describe(job)}: {error}")
    return found


def _owned(plan: Plan, task: Task, table: pl.DataFrame) -> pl.DataFrame:
    """Rows with the columns that say whose they are."""
    spec = plan.models[task.model]
    owner = {
        "model": spec.title,
        "teaching": spec.teaching,
        "dataset": plan.datasets[task.dataset].title,
        "provenance": task.digest,
    }
    return table.with_columns(**{name: pl.lit(value) for name, value in owner.items()}).select(list(SCHEMA))


def map_name(model: str, name: str, protocol: str = "corrected", dataset: str = "") -> str:
    """The name of an array: "MODEL/name"; if it is of `paper`, or of a further dataset, with that."""
    return f"{model}/{name}" + (".paper" if protocol == "paper" else "") + (f"@{dataset}" if dataset else "")


def _add_maps(plan: Plan, task: Task, outcome: Outcome, results: Results) -> None:
    title, protocol = plan.models[task.model].title, getattr(task.analysis, "protocol", "corrected")
    first = next(t for t in plan.tasks if t.model == task.model and t.analysis.digest == task.analysis.digest)
    dataset = "" if first.dataset == task.dataset else plan.datasets[task.dataset].title
    for name, value in outcome.maps.items():
        whose = plan.datasets[task.dataset].title if name.startswith(PREFIX) else dataset
        results.maps[map_name(title, name, protocol, whose)] = value


def _add_notes(results: Results, notes: Sequence[str]) -> None:
    results.notes += [note for note in notes if note not in results.notes]


def provenance(plan: Plan, task: Task, outcome: Outcome) -> dict[str, Any]:
    """Where the rows of a task came from: everything that decides them, and one digest of it all."""
    spec, dataset = plan.models[task.model], plan.datasets[task.dataset]
    device = choose_device(plan.device)
    return {
        "digest": task.digest,
        "title": spec.title,
        "model": spec.name,
        "architecture": spec.architecture,
        "weights": spec.weights_digest,
        "taught_on": spec.taught_on.model_dump() if spec.taught_on else None,
        "preprocessing": spec.preprocessing.digest,
        "input_size": list(spec.preprocessing.size),
        "dataset": dataset.title,
        "kind": dataset.kind,
        "layout": dataset.layout,
        "samples": dataset.digest,
        "count": dataset.count,
        "seen": dataset.count - len(outcome.facts.get("skipped", {})),
        "measure": task.analysis.name,
        "settings": task.analysis.model_dump(mode="json"),
        "dtype": str(compute_dtype(device)).removeprefix("torch."),
        "device": device.type,
        "batch": batch_of(dataset.count, batches_together(device)),
        "versions": versions(),
        **{key: value for key, value in outcome.facts.items() if key != "skipped"},
    }


def coverage(plan: Plan, done: dict[int, Outcome]) -> list[Coverage]:
    """How much of every model on every dataset was done."""
    found = []
    for d, dataset in enumerate(plan.datasets):
        for m, spec in enumerate(plan.models):
            mine = [number for number, task in enumerate(plan.tasks) if (task.model, task.dataset) == (m, d)]
            if not mine:
                continue
            skipped: dict[str, str] = {}
            for number in mine:
                if number in done:
                    skipped |= done[number].facts.get("skipped", {})
            complete = all(number in done for number in mine)
            seen = dataset.count - len(skipped) if complete else 0
            found.append(Coverage(spec.title, dataset.title, dataset.kind, seen, dataset.count, skipped))
    return found


def compare(plan: Plan, store: Store, comparison: Any, results: Results, progress: Progress) -> None:
    """Add what an analysis says of models beside each other; from states alone, no model is run."""
    dataset = plan.datasets[comparison.dataset]
    if store.has_outcome(comparison.digest):
        outcome = store.read_outcome(comparison.digest)
    else:
        members = []
        for number in comparison.tasks:
            task = plan.tasks[number]
            spec = plan.models[task.model]
            members.append(Member(spec.title, spec.teaching, task.digest, StoredFound(plan, task, store)))
        with progress(f"comparing {len(members)} models", 1) as advance:
            outcome = comparison.analysis.compare(dataset, members) or Outcome()
            advance(1)
        store.write_outcome(comparison.digest, outcome)
    tables = [table.with_columns(dataset=pl.lit(dataset.title)).select(list(SCHEMA)) for table in outcome.tables]
    results.table = pl.concat([results.table, *tables])
    first = next(c for c in plan.comparisons if c.analysis.digest == comparison.analysis.digest)
    suffix = "" if first.dataset == comparison.dataset else f"@{dataset.title}"
    protocol = ".paper" if getattr(comparison.analysis, "protocol", "") == "paper" else ""
    results.maps |= {f"{name}{protocol}{suffix}": value for name, value in outcome.maps.items()}
    _add_notes(results, outcome.notes)
    if outcome.pairs is not None:
        pairs = outcome.pairs.with_columns(dataset=pl.lit(dataset.title))
        results.pairs = pairs if results.pairs.is_empty() else pl.concat([results.pairs, pairs])


def alarms(results: Results) -> list[str]:
    """Two different models with bit-identical numbers are almost certainly one model under two names."""
    rows = results.table.filter(results.table["value"].is_not_nan() & results.table["other_model"].is_null())
    prints: dict[int, str] = {}
    notes = []
    columns = ["layer", "head", "measure", "variant", "protocol", "dataset", "value"]
    for title in rows["model"].unique(maintain_order=True):
        mine = rows.filter(rows["model"] == title).select(columns)
        key = hash(tuple(mine.sort(mine.columns).hash_rows(seed=0).to_list()))
        if key in prints:
            notes.append(f"{title} and {prints[key]} gave bit-identical results: are they the same weights?")
        prints[key] = title
    return notes


def specs_of(models: Sequence[Named], **options: Any) -> list[Spec]:
    """What names stand for, each once, with titles that tell them apart."""
    return list(distinct([resolve(model, **options) for model in models]))
