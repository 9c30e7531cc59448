"""An analysis: a frozen config that says which data it needs, what watches the network, and which rows it gives.

Its fields *are* its settings and its digest is made of all of them, so that provenance cannot forget one. The pipeline
does the rest: it runs the passes shard by shard, keeps their states, and calls `reduce` once they are complete.

Two kinds of pass lead from data to states:
- a `Stream`: images of a list go by once, and statistics watch; analyses that watch the same stream share its pass;
- a `Drive`: the analysis feeds the network itself (videos, pairs), unit by unit, in its `drive` method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import polars as pl
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from vitscope.core.digest import digest_of
from vitscope.core.statistic import Statistic

if TYPE_CHECKING:
    from vitscope.data.batches import SkippedImages
    from vitscope.data.samples import SampleList
    from vitscope.features.stored import PooledFeatures
    from vitscope.models.backbone import Backbone
    from vitscope.models.shape import ModelShape

PROTOCOLS = ("corrected", "paper")
BATCH = 32  # images traced at a time
EXACT = 64  # up to so many images are traced, and compared with each other, all at once
SHARD = (64, 2560)  # images of the smallest and of the largest shard


def batch_of(count: int, together: int = 1) -> int:
    """Images traced at a time, of a list of so many: it decides float32's last digit, so no engine may choose it.

    together: batches that a device takes at once.
    """
    return count if 0 < count <= EXACT else BATCH * together


def shards_of(count: int) -> list[range]:
    """The shards of a list: sixteen if it can be, whole batches, none too small and none too large to lose.

    They follow from the list alone, never from who does the work.

    >>> [len(shard) for shard in shards_of(200)]
    [64, 64, 64, 8]
    """
    least, most = SHARD
    size = min(max(-(-count // 16), least), most)
    size = -(-size // BATCH) * BATCH
    return [range(start, min(start + size, count)) for start in range(0, count, size)]


@dataclass(frozen=True)
class Measure:
    """A number that an analysis gives, in words: the page, the docs and `--help` read them here."""

    name: str
    title: str
    words: str
    unit: str = ""


@dataclass(frozen=True)
class Headline:
    """What of an analysis stands in the table of best layers.

    score: its name and unit, such as "top-1 %"; variants: which rows of the measure, the first that a model has (a * at
    the end is any number, the largest there is); percent: whether shares are shown as such; unit: what is asked one by
    one, and is drawn anew for intervals; chance: what scores as much without any network, in words.
    """

    measure: str
    score: str
    variants: tuple[str, ...] = ("",)
    percent: bool = False
    unit: str = "image"
    chance: str = ""


@dataclass(frozen=True)
class Watch:
    """A statistic that is to watch a stream, with its settings."""

    statistic: type[Statistic]
    settings: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def by(cls, statistic: type[Statistic], **settings: Any) -> Watch:
        return cls(statistic, tuple(sorted(settings.items())))

    @cached_property
    def digest(self) -> str:
        return digest_of([self.statistic.name, self.settings])

    def make(self, shape: ModelShape) -> Statistic:
        return self.statistic.of(shape, **dict(self.settings))


@dataclass(frozen=True)
class Stream:
    """Images of a list, seen in one geometry, and what watches them."""

    samples: SampleList
    watch: tuple[Watch, ...]
    geometry: str = "crop"
    name: str = "images"  # within its analysis

    @property
    def digest(self) -> str:
        return digest_of([self.samples.digest, self.geometry])

    @property
    def shards(self) -> list[range]:
        return shards_of(len(self.samples))

    def images(self, shard: range) -> int:
        return len(shard)


@dataclass(frozen=True)
class Drive:
    """Units (videos, pairs) that an analysis drives through the network itself.

    sizes: images of each unit; tiles: forward passes per image, about; disk: bytes that all states take, about.
    """

    sizes: tuple[int, ...]
    shards: list[range]
    name: str = "units"
    tiles: int = 1
    disk: float = 0.0

    def images(self, shard: range) -> int:
        return sum(self.sizes[unit] for unit in shard)


Pass = Stream | Drive


class Found(Protocol):
    """What the passes of an analysis left behind, as `reduce` sees it; nothing is read before it is asked for."""

    @property
    def shape(self) -> ModelShape: ...

    @property
    def device(self) -> str:
        """Where heavy arithmetic is to be done."""
        ...

    def statistic(self, name: str, stream: str = "images") -> Any:
        """A statistic that watched a stream, merged over all shards in their order."""

    def features(self, stream: str = "images") -> PooledFeatures:
        """The pooled features of a stream, read in blocks."""
        ...

    def states(self, drive: str = "units") -> Iterator[tuple[range, Mapping[str, Tensor]]]:
        """What each shard of a drive left, in order."""
        ...

    def seen(self, stream: str = "images") -> int:
        """Images of a stream that could be read."""
        ...


@dataclass
class Outcome:
    """What came of an analysis of one model: rows without the columns that say whose they are, maps, and notes.

    In notes `{model}` stands for the model's title. pairs: rows about two sites each, for similarity alone.
    """

    tables: list[pl.DataFrame] = field(default_factory=list)
    maps: dict[str, Tensor] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)  # go into the provenance
    pairs: pl.DataFrame | None = None


@dataclass(frozen=True)
class Member:
    """A model that is compared with others: its title and what its passes left."""

    title: str
    teaching: str
    digest: str
    found: Found


class Analysis(BaseModel, ABC):
    """The base of all analyses. Fields are settings; `protocol` is one of them where the published code has a trap."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str]
    title: ClassVar[str]  # in a sentence: "k-NN classification"
    domain: ClassVar[str]  # how, what or why
    kind: ClassVar[str]  # of dataset: images, masks, labelled, retrieval, video, keypoints, segmentation, conflict
    measures: ClassVar[tuple[Measure, ...]] = ()
    headline: ClassVar[Headline | None] = None  # of a task: larger is better
    asked_for: ClassVar[bool] = False  # done only where it is asked for by name: it costs much more than the others

    @property
    def digest(self) -> str:
        return digest_of([self.name, self.model_dump(mode="json")])

    @property
    def keeps_states(self) -> bool:
        """Whether what passes leave is wanted itself, beside the rows: then it is checked each time, and made anew."""
        return False

    @classmethod
    def has_protocols(cls) -> bool:
        return "protocol" in cls.model_fields

    @abstractmethod
    def passes(self, dataset: Any, shape: ModelShape) -> Sequence[Pass]:
        """What must go through a network of this shape."""

    @abstractmethod
    def reduce(self, dataset: Any, found: Found) -> Outcome:
        """Rows, maps and notes from complete passes; no network is run."""

    def operations(self, dataset: Any, shape: ModelShape) -> float:
        """Multiply-adds beside the forward passes, about: what a study costs is told by them before it runs."""
        return 0.0

    def drive(
        self, backbone: Backbone, dataset: Any, units: range, skipped: SkippedImages
    ) -> Mapping[str, Tensor]:  # pragma: no cover
        """Run some units of a `Drive`; returns named tensors."""
        raise NotImplementedError(f"{self.name} has no drive")

    def compare(self, dataset: Any, members: Sequence[Member]) -> Outcome | None:
        """What models have to do with each other, from what their passes left; rows and maps say whose they are."""
        return None
