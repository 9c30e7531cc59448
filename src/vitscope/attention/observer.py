"""All attention statistics of one model, watching one pass together, and their numbers as tables and maps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
from vitscope.attention.patterns import PatternStatistic
from vitscope.attention.rollout import RolloutStatistic
from vitscope.attention.saliency import Saliency, SaliencyStatistic, best_heads
from vitscope.attention.view import AttentionStatistic, AttentionView
from vitscope.data.batches import Batch
from vitscope.models.backbone import Backbone
from vitscope.results import Label, tidy, tidy_mean
from vitscope.statistic import Statistic


class AttentionStudy(Statistic):
    """All attention statistics of one model, watching one pass together and sharing what they compute."""

    name = "attention"
    wants = frozenset({"attention"})

    def __init__(self, backbone: Backbone, *, saliency: bool = False) -> None:
        super().__init__()
        layout, depth = backbone.layout, backbone.depth
        self.layout = layout
        self.maps = MapStatistic(layout, depth)
        self.aligned = AlignedStatistic(layout, depth)
        self.distance = DistanceStatistic(layout, depth, backbone.patch)
        self.dispersion = DispersionStatistic(layout, depth)
        self.patterns = PatternStatistic(layout, depth)
        self.rollout = RolloutStatistic(layout, depth)
        self.examples = ExampleStatistic(layout, depth)
        self.saliency = SaliencyStatistic(layout, depth) if saliency else None
        self.needs_annotations = saliency

    @property
    def parts(self) -> list[AttentionStatistic]:
        parts = [self.maps, self.aligned, self.distance, self.dispersion, self.patterns, self.rollout]
        parts.append(self.examples)
        return [*parts, self.saliency] if self.saliency else parts

    def begin(self, batch: Batch) -> None:
        super().begin(batch)
        for part in self.parts:
            part.begin(batch)

    def attention(self, layer: int, probs: Tensor) -> None:
        view = AttentionView(probs, self.layout)
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

    def load_state(self, state: Any) -> None:
        self._indices = [state["indices"]]
        for part in self.parts:
            start = f"{part.name}."
            part.load_state({key[len(start) :]: value for key, value in state.items() if key.startswith(start)})

    def merge(self, other: Statistic) -> None:
        assert isinstance(other, AttentionStudy)
        super().merge(other)
        for mine, theirs in zip(self.parts, other.parts, strict=True):
            mine.merge(theirs)

    def kinds(self) -> HeadKinds:
        order = self.indices.sort().values
        return head_kinds(
            self.aligned.result(), self.dispersion.result().prefix_mass, self.patterns.result(), group_of(order)
        )

    def result(self) -> AttentionResult:
        return AttentionResult(self)


@dataclass
class AttentionResult:
    """The study's numbers as tidy tables and its maps as arrays."""

    study: AttentionStudy

    def tables(self, label: Label) -> list[pl.DataFrame]:
        study = self.study
        distance, dispersion, patterns = study.distance.result(), study.dispersion.result(), study.patterns.result()
        aligned, kinds = study.aligned.result(), study.kinds()
        n = study.count
        rows = [
            tidy_mean(label, "attention_distance", distance.grid, variant="grid"),
            tidy_mean(label, "attention_distance", distance.patch_free, variant="patch_free"),
            tidy_mean(label, "attention_distance", distance.pixels, variant="pixels"),
            tidy_mean(label, "prefix_mass", dispersion.prefix_mass),
            tidy_mean(label, "entropy", dispersion.entropy),
            tidy_mean(label, "head_deviation", dispersion.head_deviation, axes=("layer",)),
            tidy_mean(label, "position_deviation", dispersion.position_deviation),
        ]
        if study.layout.has_cls:  # the published measure, which reads the top-left patch
            rows.append(tidy_mean(label, "prefix_mass", dispersion.first_spatial_mass, protocol="paper"))
        source = "cls" if study.layout.has_cls else "spatial"
        rows += [
            tidy_mean(label, name, getattr(patterns, name), variant=source) for name in patterns.__dataclass_fields__
        ]
        for protocol in ("corrected", "paper"):
            offset = aligned.offset(protocol)
            for axis, name in enumerate(("down", "across")):
                rows.append(tidy(label, "offset", offset[..., axis], variant=name, n=n, protocol=protocol))
        rows += self._kind_tables(label, kinds)
        if study.saliency:
            rows += saliency_tables(label, study.saliency.result())
        return [row.filter(pl.col("value").is_not_nan()) for row in rows]

    def _kind_tables(self, label: Label, kinds: HeadKinds) -> list[pl.DataFrame]:
        n, shape = self.study.count, kinds.shape
        numbers = {
            "peak": shape.peak, "peak_down": shape.offset[..., 0], "peak_across": shape.offset[..., 1],
            "self_attention": shape.itself, "near_mass": shape.near, "row_mass": shape.row,
            "column_mass": shape.column, "anisotropy": shape.anisotropy,
        }  # fmt: skip
        rows = [tidy(label, name, value, n=n) for name, value in numbers.items()]
        for index, name in enumerate(KINDS):  # 1 for the heads of this kind; its stability beside it
            rows.append(tidy(label, "head_kind", (kinds.kind == index).double(), variant=name, n=n))
        for index, name in enumerate(LATE_KINDS):
            late = (kinds.late == index).double().masked_fill(kinds.late < 0, torch.nan)
            rows.append(tidy(label, "late_kind", late, variant=name, n=n))
        rows.append(tidy(label, "head_kind_stability", kinds.stability, n=n))
        rows.append(tidy(label, "late_kind_stability", kinds.late_stability, n=n))
        return rows

    def maps(self) -> dict[str, Tensor]:
        study, kinds = self.study, self.study.kinds()
        mean, aligned = study.maps.result(), study.aligned.result()
        maps = {
            "all": mean.all, "spatial": mean.spatial, "pure": mean.pure, "prefix": mean.prefix, "nulls": mean.nulls,
            "aligned.paper": aligned.paper, "aligned.corrected": aligned.corrected, "rollout": study.rollout.result(),
            "kind": kinds.kind, "kind.stability": kinds.stability, "kind.late": kinds.late,
            "kind.offset": kinds.shape.offset, "kind.axis": (kinds.shape.column > kinds.shape.row).long(),
        }  # fmt: skip
        if mean.cls is not None:
            maps["cls"] = mean.cls
        if examples := study.examples.result():
            maps |= {"examples": examples.maps, "examples.pictures": examples.pictures}
        return {name: value.float() if value.is_floating_point() else value for name, value in maps.items()}


def saliency_tables(label: Label, saliency: Saliency) -> list[pl.DataFrame]:
    rows = []
    for (source, protocol), values in saliency.heads.items():
        options: dict[str, Any] = {"variant": source, "protocol": protocol}
        best, which = best_heads(values, protocol)
        rows.append(tidy_mean(label, "saliency_iou", values, **options))
        rows.append(tidy_mean(label, "saliency_best_head", best, axes=("layer",), **options))
        number = (which + 1).double()
        rows.append(tidy(label, "saliency_best_head_name", number, axes=("layer",), n=saliency.n, **options))
        rows.append(tidy_mean(label, "saliency_merged", saliency.merged[source, protocol], axes=("layer",), **options))
    return rows
