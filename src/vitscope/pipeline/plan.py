"""From models, datasets and analyses to jobs: what must run, what the store has already, and who waits for whom.

Nothing is loaded and no image is read: models are known by the digest of their weights, datasets by that of their
files, analyses by that of their settings. A job is one shard of one pass of one model, or the reduction of complete
passes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from vitscope.core.analysis import Analysis, Drive, Pass, Stream, Watch, batch_of
from vitscope.core.device import batches_together, choose_device, compute_dtype
from vitscope.core.digest import digest_of
from vitscope.core.errors import VitscopeError
from vitscope.core.provenance import computing_versions
from vitscope.data.dataset import Dataset
from vitscope.models.spec import Spec
from vitscope.pipeline.store import Store


@dataclass(frozen=True)
class WatchedPass:
    """One pass of one model: everyone who watches it, each with the key under which its states lie."""

    model: int
    dataset: int
    what: Pass
    watch: dict[str, Watch | None]  # key -> statistic; None for a drive, whose analysis watches itself
    analysis: Analysis | None = None  # of a drive

    @property
    def unfused(self) -> bool:
        """Whether somebody watches attention. Fused kernels round differently: all who watch are told by their keys."""
        return any(watch is not None and _wants_attention(watch) for watch in self.watch.values())

    def images(self, shard: int) -> int:
        return self.what.images(self.what.shards[shard])


@dataclass(frozen=True)
class Task:
    """One analysis of one model on one dataset. digest: of everything that decides its rows, which carry it.

    keys: name of each of its passes -> statistic (or "" for a drive) -> (key of its states, number of shards).
    """

    model: int
    dataset: int
    analysis: Analysis
    digest: str
    keys: dict[str, dict[str, tuple[str, int]]]


@dataclass(frozen=True)
class Comparison:
    """An analysis of several models on one dataset that compares them with each other."""

    dataset: int
    analysis: Analysis
    tasks: tuple[int, ...]
    digest: str


@dataclass(frozen=True)
class Job:
    """What one worker does in one go. kind: map (a shard of a pass) or reduce (a task)."""

    number: int
    kind: str
    model: int
    place: int  # of the pass, or of the task
    shard: int = 0
    images: int = 0
    after: frozenset[int] = frozenset()  # numbers of jobs that must be done before


@dataclass(frozen=True)
class Plan:
    models: tuple[Spec, ...]
    datasets: tuple[Dataset, ...]
    passes: tuple[WatchedPass, ...]
    tasks: tuple[Task, ...]
    device: str = "auto"
    skip_limit: int = 50
    workers: int = 0  # processes that decode images for each worker; 0: threads

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        groups: dict[tuple[int, str], list[int]] = {}
        for number, task in enumerate(self.tasks):
            if type(task.analysis).compare is not Analysis.compare:
                groups.setdefault((task.dataset, task.analysis.digest), []).append(number)
        found = []
        for (dataset, _), members in groups.items():
            named = [(self.models[self.tasks[n].model].title, self.tasks[n].digest) for n in members]
            digest = digest_of(["compare", named])
            found.append(Comparison(dataset, self.tasks[members[0]].analysis, tuple(members), digest))
        return tuple(found)

    def jobs(self, store: Store | None) -> list[Job]:
        """What the store does not have yet, in the order of models, each after what it needs."""
        missing = [n for n, task in enumerate(self.tasks) if store is None or not store.has_outcome(task.digest)]
        open_ = [c for c in self.comparisons if store is None or not store.has_outcome(c.digest)]
        wanted = set(missing) | {n for comparison in open_ for n in comparison.tasks}
        wanted |= {n for n, task in enumerate(self.tasks) if task.analysis.keeps_states}
        needed = {key for n in wanted for keys in self.tasks[n].keys.values() for key, _ in keys.values()}
        jobs: list[Job] = []
        makers: dict[str, list[int]] = {}  # key -> numbers of the jobs that make its states
        for place, one in enumerate(self.passes):
            keys = [key for key in one.watch if key in needed]
            there = [store.shards_of(key) if store else set() for key in keys]
            for shard in range(len(one.what.shards) if keys else 0):
                if any(shard not in done for done in there):
                    for key in keys:
                        makers.setdefault(key, []).append(len(jobs))
                    jobs.append(Job(len(jobs), "map", one.model, place, shard, one.images(shard)))
        for n in missing:
            task = self.tasks[n]
            after = {j for keys in task.keys.values() for key, _ in keys.values() for j in makers.get(key, ())}
            jobs.append(Job(len(jobs), "reduce", task.model, n, after=frozenset(after)))
        return sorted(jobs, key=lambda job: (job.model, job.kind, job.number))

    def doing(self, job: Job) -> str:
        """What a job is for, as a progress line says it: which analyses of which model."""
        if job.kind == "reduce":
            return self.describe(job)
        one = self.passes[job.place]
        wanted = {
            task.analysis.name: None
            for task in self.tasks
            if task.model == job.model
            and any(key in one.watch for keys in task.keys.values() for key, _ in keys.values())
        }
        return f"{', '.join(wanted)} of {self.models[job.model].title} on {self.datasets[one.dataset].title}"

    def describe(self, job: Job) -> str:
        """What a job is, in words."""
        title = self.models[job.model].title
        if job.kind == "reduce":
            task = self.tasks[job.place]
            return f"{task.analysis.name} of {title} on {self.datasets[task.dataset].title}"
        one = self.passes[job.place]
        units = one.what.shards[job.shard]
        kind = "image" if isinstance(one.what, Stream) else "unit"
        return f"{title} on {self.datasets[one.dataset].title}, {kind}s {units.start + 1} to {units.stop}"


def make_plan(
    models: Sequence[Spec],
    datasets: Sequence[Dataset],
    analyses: Sequence[Analysis],
    *,
    device: str = "auto",
    skip_limit: int = 50,
    workers: int = 0,
) -> Plan:
    """Every analysis of every model on every dataset of its kind. Analyses that watch one stream share its pass."""
    where = choose_device(device)
    how: dict[str, Any] = {"dtype": str(compute_dtype(where)), "versions": computing_versions()}
    if (together := batches_together(where)) > 1:
        how["batches_together"] = together
    titled = distinct_titles(datasets)
    passes: dict[str, WatchedPass] = {}
    tasks: list[Task] = []
    for m, spec in enumerate(models):
        asked = [(d, dataset, a) for d, dataset in enumerate(titled) for a in analyses if _looks_at(a, dataset)]
        streams = [one for _, dataset, a in asked for one in a.passes(dataset, spec.shape) if isinstance(one, Stream)]
        unfused = {one.digest for one in streams if any(map(_wants_attention, one.watch))}
        tasks += [_task(m, spec, d, dataset, a, how, passes, unfused) for d, dataset, a in asked]
    if not tasks:
        kinds = " and ".join(sorted({dataset.kind for dataset in datasets})) or "no data"
        raise VitscopeError(f"there is nothing to do: none of the analyses asked for takes {kinds}")
    _refuse_repeated(tasks)
    return Plan(tuple(models), titled, tuple(passes.values()), tuple(tasks), device, skip_limit, workers)


def _task(
    m: int,
    spec: Spec,
    d: int,
    dataset: Dataset,
    analysis: Analysis,
    how: dict[str, Any],
    passes: dict[str, WatchedPass],
    unfused: Collection[str],
) -> Task:
    """unfused: digests of the streams of which attention is watched."""
    keys: dict[str, dict[str, tuple[str, int]]] = {}
    for one in analysis.passes(dataset, spec.shape):
        if isinstance(one, Drive):
            key = digest_of([spec.digest, dataset.digest, analysis.digest, one.name, how])
            passes[key] = WatchedPass(m, d, one, {key: None}, analysis)
            keys[one.name] = {"": (key, len(one.shards))}
            continue
        stream = digest_of([spec.digest, one.digest, one.digest in unfused, batch_of(len(one.samples)), how])
        shared = passes.setdefault(stream, WatchedPass(m, d, one, {}))
        keys[one.name] = {}
        for watch in one.watch:
            key = digest_of([stream, watch.digest])
            shared.watch[key] = watch
            keys[one.name][watch.statistic.name] = (key, len(one.shards))
    states = [key for named in keys.values() for key, _ in named.values()]
    return Task(m, d, analysis, digest_of([analysis.digest, dataset.digest, states, how]), keys)


def _looks_at(analysis: Analysis, dataset: Dataset) -> bool:
    return analysis.kind == dataset.kind and (not dataset.only or analysis.name in dataset.only)


def _wants_attention(watch: Watch) -> bool:
    return "attention" in watch.statistic.wants


def _refuse_repeated(tasks: Sequence[Task]) -> None:
    seen: set[tuple[int, int, str]] = set()
    for task in tasks:
        where = (task.model, task.dataset, task.analysis.digest)
        if where in seen:
            raise VitscopeError(f"the analysis '{task.analysis.name}' is asked for twice with the same settings")
        seen.add(where)


def distinct_titles(datasets: Sequence[Dataset]) -> tuple[Dataset, ...]:
    """The same datasets, numbered where two of a kind share a title; the same one given twice counts once."""
    found: list[Dataset] = []
    for dataset in datasets:
        same = [other for other in found if other.kind == dataset.kind]
        if any((other.digest, other.only) == (dataset.digest, dataset.only) for other in same):
            continue
        title, number = dataset.title, 2
        while any(other.title == title for other in same):
            title, number = f"{dataset.title} ({number})", number + 1
        found.append(dataset if title == dataset.title else dataset.titled(title))
    return tuple(found)


@dataclass
class Schedule:
    """Jobs that wait, are ready, or were given away; a lost one is given again, a few times."""

    plan: Plan
    jobs: list[Job]
    tries: int = 3
    failures: list[tuple[Job, BaseException | str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.waiting = {job.number: job for job in self.jobs}
        self.open: set[int] = set(self.waiting)  # not done
        self.lost: dict[int, int] = {}
        self.dropped: set[int] = set()

    @property
    def finished(self) -> bool:
        return not self.open

    def next(self, model: int | None = None) -> Job | None:
        """A job that can be done now, of this model if there is one, so that it is not loaded again."""
        ready = self._ready()
        first = next(ready, None)
        if first is None or first.model == model or model is None:
            chosen = first
        else:
            chosen = next((job for job in ready if job.model == model), first)
        if chosen is not None:
            del self.waiting[chosen.number]
        return chosen

    def _ready(self) -> Iterator[Job]:
        return (job for job in self.waiting.values() if not job.after & self.open)

    def done(self, job: Job) -> None:
        self.open.discard(job.number)

    def give_back(self, job: Job, why: str) -> bool:
        """A worker was lost with its job: it waits again, unless that happened too often. Whether it waits."""
        self.lost[job.number] = self.lost.get(job.number, 0) + 1
        if self.lost[job.number] >= self.tries:
            self.fail(job, f"{self.plan.describe(job)}: {why} {self.tries} times, perhaps for want of memory")
            return False
        self.waiting = {job.number: job, **self.waiting}
        return True

    def given_again(self) -> list[str]:
        """What was lost with its worker and then done by another, in words."""
        return [self.plan.describe(j) for j in self.jobs if j.number in self.lost and j.number not in self.dropped]

    def fail(self, job: Job, error: BaseException | str) -> None:
        """What cannot be done, and with it the rest of its pass and everything that waits for it."""
        self.failures.append((job, error))
        self._drop(job)
        if job.kind == "map":
            for other in [o for o in self.waiting.values() if (o.kind, o.place) == ("map", job.place)]:
                self._drop(other)

    def _drop(self, job: Job) -> None:
        self.open.discard(job.number)
        self.waiting.pop(job.number, None)
        self.dropped.add(job.number)
        for other in [o for o in self.waiting.values() if job.number in o.after]:
            self._drop(other)
