"""One job after the other, with the last model kept warm."""

from __future__ import annotations

import gc
from dataclasses import dataclass

from vitscope.core.analysis import Stream
from vitscope.core.device import keep_freed_memory
from vitscope.core.errors import BadData
from vitscope.core.progress import Count, nothing
from vitscope.data.batches import SkippedImages
from vitscope.models.backbone import Backbone
from vitscope.models.observe import observe
from vitscope.pipeline.found import StoredFound
from vitscope.pipeline.plan import Job, Plan, WatchedPass
from vitscope.pipeline.store import Store


@dataclass
class Worker:
    """Does jobs of a plan; used by every engine, in whatever process."""

    plan: Plan
    store: Store
    device: str | None = None

    def __post_init__(self) -> None:
        self._model: tuple[int, Backbone] | None = None
        keep_freed_memory()
        gc.freeze()  # libraries stay: not to be searched by every collection below

    def do(self, job: Job, advance: Count = nothing) -> None:
        """Do a job and write what came of it; it counts as done when its file is there."""
        if job.kind == "map":
            self._map(job, advance)
        else:
            self._reduce(job)

    def backbone(self, number: int) -> Backbone:
        if self._model is None or self._model[0] != number:
            self._model = None
            gc.collect()  # twenty models do not fit in memory together
            self._model = (number, self.plan.models[number].load(self.device or self.plan.device))
        return self._model[1]

    def _map(self, job: Job, advance: Count) -> None:
        one = self.plan.passes[job.place]
        missing = [key for key in one.watch if job.shard not in self.store.shards_of(key)]
        if not missing:
            advance(job.images)
            return
        backbone = self.backbone(job.model)
        skipped = SkippedImages(limit=self.plan.skip_limit)
        before = backbone.images_traced
        if isinstance(one.what, Stream):
            self._stream(job, one, one.what, backbone, missing, skipped, advance)
        else:
            assert one.analysis is not None
            units, dataset = one.what.shards[job.shard], self.plan.datasets[one.dataset]
            state = one.analysis.drive(backbone, dataset, units, skipped)
            about = {"analysis": one.analysis.name, "model": self.plan.models[job.model].name}
            self.store.write_state(missing[0], job.shard, state, skipped=skipped.reasons, about=about)
            advance(job.images)
        self.store.log(
            "traced",
            what=self.plan.describe(job),
            model=self.plan.models[job.model].title,
            dataset=self.plan.datasets[one.dataset].title,
            shard=job.shard,
            images=backbone.images_traced - before,
        )

    def _stream(
        self,
        job: Job,
        one: WatchedPass,
        stream: Stream,
        backbone: Backbone,
        missing: list[str],
        skipped: SkippedImages,
        advance: Count,
    ) -> None:
        watching = {}
        for key in missing:
            watch = one.watch[key]
            assert watch is not None
            watching[key] = watch.make(backbone.shape)
        told = 0

        def tell(n: int) -> None:
            nonlocal told
            told += n
            advance(n)

        observe(
            backbone,
            stream.samples,
            list(watching.values()),
            stretch=stream.shards[job.shard],
            geometry=stream.geometry,
            workers=self.plan.workers,
            unfused=one.unfused,
            skipped=skipped,
            advance=tell,
        )
        for key, statistic in watching.items():
            about = {"statistic": statistic.name, "model": self.plan.models[job.model].name}
            self.store.write_state(key, job.shard, statistic.state(), skipped=skipped.reasons, about=about)
        advance(job.images - told)

    def _reduce(self, job: Job) -> None:
        task = self.plan.tasks[job.place]
        dataset = self.plan.datasets[task.dataset]
        found = StoredFound(self.plan, task, self.store, self.device or self.plan.device)
        self._refuse_unreadable(found)
        outcome = task.analysis.reduce(dataset, found)
        outcome.facts["skipped"] = found.all_skipped()
        self.store.write_outcome(task.digest, outcome)
        self.store.log(
            "reduced",
            what=self.plan.describe(job),
            model=self.plan.models[job.model].title,
            analysis=task.analysis.name,
        )

    def _refuse_unreadable(self, found: StoredFound) -> None:
        for name in found.task.keys:
            skipped = found.skipped(name)
            if len(skipped) > self.plan.skip_limit:
                last = " ".join(list(skipped.items())[-1])
                raise BadData(
                    f"{len(skipped)} images are unusable, more than the {self.plan.skip_limit} that may be (the last: "
                    f"{last}): repair or remove them, or allow more to be skipped"
                )
            mine = {key for key, _ in found.task.keys[name].values()}
            stream = next(one.what for one in self.plan.passes if mine & set(one.watch))
            if isinstance(stream, Stream) and len(skipped) == len(stream.samples):
                reason = " ".join(next(iter(skipped.items()), ("", "the list is empty")))
                raise BadData(f"none of the {len(skipped)} images can be used ({reason})")
