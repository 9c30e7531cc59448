"""The analysis of attention: every statistic of it watches one pass together; their numbers as rows and maps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl
import torch
from torch import Tensor

from vitscope.attention.aligned import AlignedStatistic, group_of
from vitscope.attention.dispersion import DispersionStatistic
from vitscope.attention.distance import DistanceStatistic
from vitscope.attention.examples import ExampleStatistic
from vitscope.attention.head_kinds import HeadKinds, head_kinds
from vitscope.attention.kinds import KINDS, LATE_KINDS
from vitscope.attention.maps import MapStatistic
from vitscope.attention.patterns import Patterns, PatternStatistic
from vitscope.attention.pool import PoolStatistic
from vitscope.attention.rollout import RolloutStatistic
from vitscope.attention.sinks import MEASURES as SINK_MEASURES
from vitscope.attention.sinks import SinkStatistic, sink_map, sink_tables
from vitscope.attention.view import AttentionPart, AttentionStatistic, AttentionView, SweepingStatistic
from vitscope.core.analysis import Analysis, Found, Measure, Outcome, Stream, Watch
from vitscope.core.bootstrap import MANY
from vitscope.core.results import NOBODY, tidy, tidy_mean
from vitscope.core.statistic import Positions, Statistic
from vitscope.models.layout import TokenLayout

if TYPE_CHECKING:
    from vitscope.data.batches import Batch
    from vitscope.data.dataset import ImageSet
    from vitscope.models.shape import ModelShape


class AllAttention(SweepingStatistic):
    """All attention statistics of one model, watching one pass together and sharing what they compute."""

    name = "attention"

    def __init__(self, layout: TokenLayout, depth: int, patch: tuple[int, int]) -> None:
        super().__init__(layout)
        self.maps = MapStatistic(layout, depth)
        self.aligned = AlignedStatistic(layout, depth)
        self.distance = DistanceStatistic(layout, depth, patch)
        self.dispersion = DispersionStatistic(layout, depth)
        self.patterns = PatternStatistic(layout, depth)
        self.rollout = RolloutStatistic(layout, depth)
        self.sinks = SinkStatistic(layout, depth)
        self.examples = ExampleStatistic(layout, depth)

    @classmethod
    def of(cls, shape: ModelShape, **settings: Any) -> AllAttention:
        return cls(shape.layout, shape.depth, shape.patch, **settings)

    @property
    def parts(self) -> list[AttentionStatistic]:
        parts = [self.maps, self.aligned, self.distance, self.dispersion, self.patterns, self.rollout]
        return [*parts, self.sinks, self.examples]

    def begin(self, batch: Batch) -> None:
        super().begin(batch)
        for part in self.parts:
            part.begin(batch)

    def stream(self, layer: int, part: AttentionPart) -> None:
        for one in self.parts:
            one.stream(layer, part)

    def see(self, layer: int, view: AttentionView) -> None:
        for part in self.parts:
            part.see(layer, view)

    def end(self) -> None:
        for part in self.parts:
            part.end()
        super().end()

    def state(self) -> dict[str, Tensor]:
        return {
            "indices": self.indices,
            **{f"{part.name}.{key}": value for part in self.parts for key, value in part.state().items()},
        }

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self.seen = Positions(state["indices"])
        for part in self.parts:
            part.load_state(_Part(state, f"{part.name}."))

    def merge(self, other: Statistic) -> None:
        assert isinstance(other, AllAttention)
        super().merge(other)
        for mine, theirs in zip(self.parts, other.parts, strict=True):
            mine.merge(theirs)

    def kinds(self) -> HeadKinds:
        """Their stability is told by resampling images; of very many, the groups that they were dealt into."""
        groups = group_of(self.indices.sort().values)
        if self.count <= MANY:
            prefix_mass, patterns = self.dispersion.result().prefix_mass, self.patterns.result()
            return head_kinds(self.aligned.result(), prefix_mass, patterns, groups)
        sizes = groups.bincount()

        def means(statistic: Statistic, name: str) -> Tensor:
            return group_sums(statistic.blocks_of(name), groups) / sizes.view(-1, 1, 1)

        patterns = Patterns(**{name: means(self.patterns, name) for name in Patterns.__dataclass_fields__})
        prefix_mass = means(self.dispersion, "prefix_mass")
        return head_kinds(self.aligned.result(), prefix_mass, patterns, torch.arange(len(sizes)), sizes=sizes)

    def result(self) -> AllAttention:
        """Its parts have results of their own."""
        return self


def group_sums(blocks: Iterable[Tensor], groups: Tensor) -> Tensor:
    """Sums of rows (m, ...) that come in blocks, by the group of each: (G, ...) float64. groups: (n,)."""
    total: Tensor | None = None
    first = 0
    for block in blocks:
        if total is None:
            total = torch.zeros(int(groups.max()) + 1, *block.shape[1:], dtype=torch.float64)
        total.index_add_(0, groups[first : first + len(block)], block.double())
        first += len(block)
    assert total is not None, "no rows"
    return total


class _Part(Mapping[str, Tensor]):
    """The part of a state whose names have a common start; what lies on disk stays there until it is asked for."""

    def __init__(self, state: Mapping[str, Tensor], start: str) -> None:
        self.state, self.start = state, start

    def __getitem__(self, name: str) -> Tensor:
        return self.state[self.start + name]

    def __iter__(self) -> Iterator[str]:
        return (name[len(self.start) :] for name in self.state if name.startswith(self.start))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Attention(Analysis):
    """Where heads look, how far, how widely, and what kind of head each is."""

    name = "attention"
    title = "attention"
    domain = "how"
    kind = "images"
    measures = (
        Measure(
            "attention_distance", "attention distance", "how far patch tokens look, in units of the longer grid edge"
        ),
        Measure("prefix_mass", "mass on prefix tokens", "share of patch tokens' attention on CLS and registers"),
        Measure("entropy", "entropy", "how widely a token's attention is spread", "nats"),
        Measure("head_deviation", "deviation over heads", "how differently the heads of a layer look"),
        Measure("position_deviation", "deviation over positions", "how much a map depends on the token that looks"),
        Measure("gini", "sparsity", "Gini coefficient of each image's map: 0 even, 1 all on one token"),
        Measure("top_share", "mass of the top five tokens", "share of a map's mass on its five strongest tokens"),
        Measure("centre_lift", "mass near the centre", "mass of a map near the centre, relative to an even map"),
        Measure("compactness", "compactness", "how far the strongest tokens of a map hang together"),
        Measure("repetition", "repetition", "mean correlation of a late map with the other late maps of the image"),
        Measure(
            "repetition_in_layer", "repetition in a layer", "mean correlation of a map with those of the layer's heads"
        ),
        Measure(
            "repetition_across_images", "repetition across images", "mean correlation of a head's maps of two images"
        ),
        Measure("offset", "offset", "centre of mass of attention relative to the token that looks"),
        Measure("head_kind", "kind of head", "local, offset, axial, global or bound to CLS; 1 for heads of the kind"),
        Measure("late_kind", "kind of late map", "sparse repeating, object-centred or diverse"),
        *SINK_MEASURES,
    )

    def passes(self, dataset: ImageSet, shape: ModelShape) -> Sequence[Stream]:
        watch = [Watch.by(AllAttention)]
        if "pool" in shape.signals:
            watch.append(Watch.by(PoolStatistic))
        return [Stream(dataset.shuffled, tuple(watch))]

    def reduce(self, dataset: ImageSet, found: Found) -> Outcome:
        seen: AllAttention = found.statistic("attention")
        kinds = seen.kinds()
        outcome = Outcome(attention_tables(seen, kinds), attention_maps(seen, kinds), notes_on(seen))
        if "pool" in found.shape.signals:
            pool: PoolStatistic = found.statistic("pool")
            outcome.tables += pool.tables()
            outcome.maps["pool"] = pool.result().float()
        return outcome


def notes_on(seen: AllAttention) -> list[str]:
    """What a reader must know before trusting a row, or missing one."""
    notes = []
    if not seen.layout.has_cls:
        notes.append("{model} has no CLS token: it has no CLS rows; patterns use the mean over spatial sources")
    if nulls := int(seen.maps.result().nulls.sum()):
        notes.append(f"{{model}}: {nulls} source tokens attended to prefix tokens only; their rows count as zero")
    return notes


def attention_tables(seen: AllAttention, kinds: HeadKinds) -> list[pl.DataFrame]:
    """Measure by measure and block by block: no more than one block of per-image rows is in memory."""
    rows = [
        tidy_mean(NOBODY, "attention_distance", seen.distance.blocks(unit), variant=unit)
        for unit in ("grid", "patch_free", "pixels")
    ]
    spread = seen.dispersion.blocks_of
    rows += [
        tidy_mean(NOBODY, "prefix_mass", spread("prefix_mass")),
        tidy_mean(NOBODY, "entropy", spread("entropy")),
        tidy_mean(NOBODY, "head_deviation", spread("head_deviation"), axes=("layer",)),
        tidy_mean(NOBODY, "position_deviation", spread("position_deviation")),
    ]
    if seen.layout.has_cls:  # the published measure, which reads the top-left patch
        rows.append(tidy_mean(NOBODY, "prefix_mass", spread("first_spatial_mass"), protocol="paper"))
    source = "cls" if seen.layout.has_cls else "spatial"
    for name in Patterns.__dataclass_fields__:
        rows.append(tidy_mean(NOBODY, name, seen.patterns.blocks_of(name), variant=source))
    alike = seen.patterns.across_images()
    options: dict[str, Any] = {"n": seen.count, "variant": source}
    rows.append(tidy(NOBODY, "repetition_across_images", alike.mean, low=alike.low, high=alike.high, **options))
    aligned = seen.aligned.result()
    for protocol in ("corrected", "paper"):
        offset = aligned.offset(protocol)
        for axis, name in enumerate(("down", "across")):
            rows.append(tidy(NOBODY, "offset", offset[..., axis], variant=name, n=seen.count, protocol=protocol))
    rows += sink_tables(seen.sinks, seen.dispersion)
    rows += kind_tables(kinds, seen.count)
    return [row.filter(pl.col("value").is_not_nan()) for row in rows]


def kind_tables(kinds: HeadKinds, n: int) -> list[pl.DataFrame]:
    shape = kinds.shape
    numbers = {
        "peak": shape.peak, "peak_down": shape.offset[..., 0], "peak_across": shape.offset[..., 1],
        "self_attention": shape.itself, "near_mass": shape.near, "wide_mass": shape.wide,
        "row_mass": shape.row, "column_mass": shape.column, "anisotropy": shape.anisotropy,
    }  # fmt: skip
    rows = [tidy(NOBODY, name, value, n=n) for name, value in numbers.items()]
    for index, name in enumerate(KINDS):  # 1 for the heads of this kind; its stability beside it
        rows.append(tidy(NOBODY, "head_kind", (kinds.kind == index).double(), variant=name, n=n))
    for index, name in enumerate(LATE_KINDS):
        late = (kinds.late == index).double().masked_fill(kinds.late < 0, torch.nan)
        rows.append(tidy(NOBODY, "late_kind", late, variant=name, n=n))
    rows.append(tidy(NOBODY, "head_kind_stability", kinds.stability, n=n))
    rows.append(tidy(NOBODY, "late_kind_stability", kinds.late_stability, n=n))
    return rows


def attention_maps(seen: AllAttention, kinds: HeadKinds) -> dict[str, Tensor]:
    mean, aligned = seen.maps.result(), seen.aligned.result()
    maps = {
        "all": mean.all, "spatial": mean.spatial, "pure": mean.pure, "prefix": mean.prefix, "nulls": mean.nulls,
        "aligned.paper": aligned.paper, "aligned.corrected": aligned.corrected, "rollout": seen.rollout.result(),
        "kind": kinds.kind, "kind.stability": kinds.stability, "kind.late": kinds.late,
        "sinks": sink_map(seen.sinks),
        "kind.offset": kinds.shape.offset, "kind.axis": (kinds.shape.column > kinds.shape.row).long(),
    }  # fmt: skip
    if mean.cls is not None:
        maps["cls"] = mean.cls
    maps |= {f"from.{name}": found for name, found in mean.places.items()}
    maps |= {f"cells.{name}": found for name, found in mean.cells.items() if found.shape[-1]}
    if examples := seen.examples.result():
        maps |= {"examples": examples.maps, "examples.images": examples.images}
    return {name: value.float() if value.is_floating_point() else value for name, value in maps.items()}
