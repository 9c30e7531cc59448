"""What one model's pass over pictures leaves behind: pooled features and statistics, in one folder named by digest.

Models are compared from their records alone, so that a model added next week is run once and the others not again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from vitscope.data.samples import SampleList
from vitscope.errors import BadData, UnsupportedModel
from vitscope.features.dense_regions import DenseRegionStatistic
from vitscope.features.extract import MakeStatistics, describe, extract, merged_statistics
from vitscope.features.gram_statistic import Grams, GramStatistic, NormGramStatistic
from vitscope.features.objects import Regions, RegionStatistic
from vitscope.features.pooling import check_poolings
from vitscope.features.residual import Residual, ResidualStatistic
from vitscope.features.store import FeatureStore, StoreContents, read_contents
from vitscope.models.backbone import Backbone
from vitscope.models.layout import TokenLayout
from vitscope.models.trace import trace
from vitscope.progress import Progress, silent
from vitscope.provenance import provenance_of
from vitscope.results import Label, make_folder, write_atomically
from vitscope.statistic import Statistic

PROTOCOLS = ("corrected", "paper")
BLOCKS = {"corrected": 32, "paper": 8}  # pictures that CKA compares with each other
EXACT = 64  # up to so many pictures the full Gram is taken: one block (`corrected`)
POOLINGS = ("cls", "mean")


@dataclass(frozen=True)
class Plan:
    """What is observed, the same for all models that are to be compared."""

    protocol: str
    block: int
    regions: str  # "" (no masks), "crop" or "dense"
    dtype: str = "float32"

    @property
    def batch_size(self) -> int:
        """Whole blocks; enough pictures to keep the matrix products of the network efficient."""
        return self.block * max(1, BLOCKS["corrected"] // self.block)


def plan_for(samples: SampleList, protocol: str, *, dense: bool = False) -> Plan:
    """The plan follows from the pictures and the protocol, never from the model."""
    if protocol not in PROTOCOLS:
        raise BadData(f"there is no protocol '{protocol}': choose {' or '.join(PROTOCOLS)}")
    block = BLOCKS[protocol]
    if protocol == "corrected" and len(samples) <= EXACT:
        block = len(samples)
    masks = any(sample.annotations for sample in samples)
    return Plan(protocol, block, ("dense" if dense else "crop") if masks else "")


def observe_model(
    backbone: Backbone,
    samples: SampleList,
    folder: Path,
    plan: Plan,
    *,
    watching: MakeStatistics = tuple,
    workers: int = 0,
    skip_limit: int = 50,
    progress: Progress = silent,
) -> ModelRecord:
    """Run a model over the pictures once, or find that it was run before; its record is a folder within `folder`.

    watching: makes further statistics that watch the same pass; `ModelRecord.watched` gives them back.
    """
    signals = visible_signals(backbone)
    settings = _settings(backbone.layout, plan, signals)

    def make() -> list[Statistic]:
        own = _statistics(backbone.layout, backbone.depth, settings, dense=(backbone, samples))
        return [*own, *watching()]

    names = {"statistics": [statistic.name for statistic in make()], **settings}
    poolings = check_poolings(POOLINGS, backbone.layout, backbone.name)
    contents = describe(backbone, samples, poolings, plan.dtype, plan.batch_size, None, names)
    home = folder / contents.digest
    make_folder(home)
    about = provenance_of(backbone, samples, "features", {"protocol": plan.protocol, "block": plan.block}).as_dict()
    text = json.dumps(about, indent=1, default=str)
    write_atomically(home / "provenance.json", lambda path: path.write_text(text))
    extract(
        backbone,
        samples,
        home,
        poolings=poolings,
        dtype=plan.dtype,
        statistics=make,
        settings=settings,
        batch_size=plan.batch_size,
        workers=workers,
        skip_limit=skip_limit,
        progress=progress,
    )
    return ModelRecord(home, title=backbone.title, teaching=backbone.teaching)


def visible_signals(backbone: Backbone) -> tuple[str, ...]:
    """Which of "norms" and "branches" a model shows; not all variants of the ViT have both."""
    blank = torch.zeros(1, 3, *backbone.preprocessing.size)
    seen = []
    for signal in ("norms", "branches"):
        try:
            trace(backbone.module, blank.to(backbone.device), [_Blind(frozenset({signal}))], layout=backbone.layout)
        except UnsupportedModel:
            continue
        seen.append(signal)
    return tuple(seen)


class _Blind:
    """An observer that wants signals and looks at none."""

    def __init__(self, wants: frozenset[str]) -> None:
        self.wants = wants

    def attention(self, *_: Any) -> None: ...

    def tokens(self, *_: Any) -> None: ...

    def norms(self, *_: Any) -> None: ...

    def branches(self, *_: Any) -> None: ...


def _settings(layout: TokenLayout, plan: Plan, signals: Sequence[str]) -> dict[str, Any]:
    return {
        "protocol": plan.protocol,
        "block": plan.block,
        "regions": plan.regions,
        "signals": list(signals),
        "grid": list(layout.grid),
        "prefix": layout.prefix,
        "has_cls": layout.has_cls,
    }


def _statistics(
    layout: TokenLayout, depth: int, settings: dict[str, Any], dense: tuple[Backbone, SampleList] | None = None
) -> list[Statistic]:
    """The statistics of a pass, empty. Without `dense`, only for reading states."""
    block, scaled = settings["block"], settings["protocol"] == "paper"
    statistics: list[Statistic] = [GramStatistic(layout, depth, block=block, scaled=scaled)]
    if "norms" in settings["signals"]:
        statistics.append(NormGramStatistic(layout, depth, block=block, scaled=scaled))
    if "branches" in settings["signals"]:
        statistics.append(ResidualStatistic(layout, depth, block=block, scaled=scaled))
    if settings["regions"] == "dense" and dense:
        statistics.append(DenseRegionStatistic(*dense))
    elif settings["regions"]:
        statistics.append(RegionStatistic(layout))
    return statistics


class ModelRecord:
    """The stored results of one model's pass, read back as they are asked for.

    title, teaching: of the model asked for; the same weights may have been run before under another name.
    """

    def __init__(self, folder: Path, *, title: str = "", teaching: str = "") -> None:
        self.folder = folder
        self.contents: StoreContents = read_contents(folder)
        self.store = FeatureStore(folder)
        self.title = title or self.contents.title
        self.teaching = teaching or self.contents.teaching
        try:
            self.provenance: dict[str, Any] = json.loads((folder / "provenance.json").read_text())
            self.settings = self.contents.settings
            height, width = self.settings["grid"]
            self.layout = TokenLayout((height, width), self.settings["prefix"], self.settings["has_cls"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadData(f"{folder} is not the record of a feature study ({error}): run the study again") from None

    @property
    def depth(self) -> int:
        return self.contents.layers

    @property
    def label(self) -> Label:
        return Label(self.title, self.teaching, self.contents.samples_origin, self.provenance["digest"])

    @cached_property
    def _merged(self) -> dict[str, Statistic]:
        def make() -> list[Statistic]:
            return _statistics(self.layout, self.depth, self.settings)

        return {statistic.name: statistic for statistic in merged_statistics(self.folder, self.contents, make)}

    def watched(self, make: MakeStatistics) -> list[Statistic]:
        """The further statistics that `make` made when the model was observed, merged over the whole pass."""
        return merged_statistics(self.folder, self.contents, make)

    @cached_property
    def grams(self) -> Grams:
        """Of block outputs, and after norm1 and norm2 where the model has them."""
        grams: Grams = self._merged["grams"].result()
        if "norm_grams" not in self._merged:
            return grams
        norms: Grams = self._merged["norm_grams"].result()
        packed = {kind: torch.cat([grams.packed[kind], norms.packed[kind]], dim=1) for kind in grams.packed}
        return Grams(grams.size, grams.numbers, grams.members, grams.sites + norms.sites, packed, grams.unused)

    @cached_property
    def residual(self) -> Residual | None:
        return self._merged["residual"].result() if "residual" in self._merged else None

    @cached_property
    def regions(self) -> Regions | None:
        return self._merged["regions"].result() if "regions" in self._merged else None


def check_comparable(records: Sequence[ModelRecord]) -> None:
    """All models saw the same pictures in the same order under the same protocol, or an error that says who did not."""
    first = records[0]
    for other in records[1:]:
        a, b, who = first.contents, other.contents, f"{first.title} and {other.title}"
        if a.samples != b.samples:
            raise BadData(
                f"{who} were shown different pictures ({a.count} of {a.samples_origin}, list {a.samples}; {b.count} of "
                f"{b.samples_origin}, list {b.samples}): run both on the same ones"
            )
        for key in ("protocol", "block"):
            if (mine := first.settings[key]) != (theirs := other.settings[key]):
                raise BadData(f"{who} were observed with different settings ({key} {mine} and {theirs}): run one again")
        if not torch.equal(first.store.indices, other.store.indices):
            missing = set(first.store.indices.tolist()) ^ set(other.store.indices.tolist())
            raise BadData(
                f"{who} could not use the same pictures, {len(missing)} were read for one of them only: run both again"
            )
