"""What the passes of one analysis of one model left in the store, as `reduce` and `compare` see it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import Tensor

from vitscope.core.analysis import Stream
from vitscope.core.files import Damaged
from vitscope.core.statistic import Statistic
from vitscope.features.stored import PooledFeatures
from vitscope.models.shape import ModelShape
from vitscope.pipeline.plan import Plan, Task
from vitscope.pipeline.store import Store


@dataclass(frozen=True)
class StoredFound:
    """Reads states as they are asked for; merged statistics are kept, since several measures ask for one."""

    plan: Plan
    task: Task
    store: Store
    device: str = "cpu"

    @property
    def shape(self) -> ModelShape:
        return self.plan.models[self.task.model].shape

    @cached_property
    def _merged(self) -> dict[tuple[str, str], Statistic]:
        return {}

    def statistic(self, name: str, stream: str = "images") -> Any:
        if (stream, name) not in self._merged:
            key, shards = self.task.keys[stream][name]
            watch = self._watch(key)
            merged = watch.make(self.shape)
            for shard in range(shards):
                part = watch.make(self.shape)
                part.load_state(self.store.read_state(key, shard))
                merged.merge(part)
            self._merged[stream, name] = merged
        return self._merged[stream, name]

    def _watch(self, key: str) -> Any:
        return next(one.watch[key] for one in self.plan.passes if key in one.watch)

    def features(self, stream: str = "images") -> PooledFeatures:
        key, shards = self.task.keys[stream]["pooled"]
        return PooledFeatures.of([self.store.read_state(key, shard) for shard in range(shards)], self.shape.depth)

    def states(self, drive: str = "units") -> Iterator[tuple[range, Mapping[str, Tensor]]]:
        key, _ = self.task.keys[drive][""]
        one = next(one for one in self.plan.passes if key in one.watch)
        for shard, units in enumerate(one.what.shards):
            yield units, self.store.read_state(key, shard)

    def seen(self, stream: str = "images") -> int:
        key, _ = next(iter(self.task.keys[stream].values()))
        one = next(one for one in self.plan.passes if key in one.watch)
        assert isinstance(one.what, Stream)
        return len(one.what.samples) - len(self.skipped(stream))

    def check(self) -> Iterator[Damaged]:
        """Read everything; gives what is damaged."""
        for key, shards in (place for named in self.task.keys.values() for place in named.values()):
            for shard in range(shards):
                try:
                    for _tensor in self.store.read_state(key, shard).values():
                        pass
                except Damaged as error:
                    yield error

    def skipped(self, stream: str) -> dict[str, str]:
        """Images of a pass that could not be read, with the reason."""
        found: dict[str, str] = {}
        for key, shards in list(self.task.keys[stream].values())[:1]:
            for shard in range(shards):
                found |= self.store.read_state(key, shard).about["skipped"]
        return found

    def all_skipped(self) -> dict[str, str]:
        """The same of all passes; images of two lists that share a name (`cat/0.png` to learn from, and to be asked)
        are two."""
        found: dict[str, str] = {}
        for stream in self.task.keys:
            for name, reason in self.skipped(stream).items():
                found[f"{stream}/{name}" if name in found else name] = reason
        return found
