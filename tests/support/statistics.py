"""The registry of statistics: every one that vitscope has, as analyses watch with it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import vitscope
from tests.support.signals import COUNT, SHAPES
from vitscope.attention.analysis import AllAttention
from vitscope.core.analysis import PROTOCOLS, Stream, Watch
from vitscope.core.statistic import Statistic
from vitscope.data.conflict import ConflictSet
from vitscope.data.dataset import Dataset, ImageSet, LabelledSet, MaskSet
from vitscope.data.davis import VideoSet
from vitscope.data.keypoints import KeypointSet
from vitscope.data.revisited import RetrievalSet
from vitscope.data.samples import Annotation, Sample, SampleList
from vitscope.data.segmentation import SegmentationSet
from vitscope.features.extraction import Extraction
from vitscope.features.regions import Regions
from vitscope.pipeline.registry import ANALYSES, in_protocols
from vitscope.tasks.keypoints import KeypointStatistic
from vitscope.tasks.labelled_patches import Patches

PASSED_ON = {KeypointStatistic}  # hands what it sees to the matcher of a drive: it has no state, and is never merged


@dataclass(frozen=True)
class Whole(Annotation):
    def decode(self) -> np.ndarray:
        return np.ones((1, 1), bool)


def _samples() -> SampleList:
    return SampleList(Sample(f"{i}.png", Path(f"{i}.png"), i % 2, (Whole(0),)) for i in range(COUNT))


def _categorised() -> SampleList:
    return SampleList(_samples(), categories=("first", "second"))


DATASETS: dict[str, Dataset] = {  # of every kind; nothing in them is read
    "images": ImageSet("images", _samples()),
    "masks": MaskSet("masks", _samples()),
    "labelled": LabelledSet("labelled", _samples(), _samples()),
    "retrieval": RetrievalSet("retrieval", _samples(), _samples(), ()),
    "video": VideoSet("video", ()),
    "keypoints": KeypointSet("keypoints", _samples(), (), ()),
    "conflict": ConflictSet("conflict", _samples(), _samples()),
    "segmentation": SegmentationSet("segmentation", _categorised(), _categorised()),
}


def all_statistics() -> set[type[Statistic]]:
    """Every concrete statistic in the source, whether or not an analysis knows it."""
    for module in pkgutil.walk_packages(vitscope.__path__, "vitscope."):
        if module.name.split(".")[1] in ("attention", "features", "tasks"):
            importlib.import_module(module.name)

    def below(kind: type[Any]) -> Iterator[type[Statistic]]:
        for child in kind.__subclasses__():
            yield child
            yield from below(child)

    ours = {kind for kind in below(Statistic) if kind.__module__.startswith("vitscope.")}
    return {kind for kind in ours if not inspect.isabstract(kind)}


def watches() -> list[Watch]:
    """What all analyses watch with, under both protocols, each once."""
    found: dict[str, Watch] = {}
    analyses = [a for kind in ANALYSES.values() for a in in_protocols(kind, PROTOCOLS)]
    for analysis in (*analyses, Extraction(poolings=("cls", "mean", "max", "tokens"))):
        for one in analysis.passes(DATASETS[analysis.kind], SHAPES["CLS"]):
            found |= {watch.digest: watch for watch in (one.watch if isinstance(one, Stream) else ())}
    return list(found.values())


def cases() -> list[Watch]:
    """The same, and statistics that only watch as parts of others."""
    watched = watches()
    known = {watch.statistic for watch in watched} | PASSED_ON
    rest = sorted(all_statistics() - known, key=lambda kind: kind.name)
    return [*watched, *(Watch.by(kind) for kind in rest)]


def title(watch: Watch) -> str:
    settings = [f"{name}={value}" for name, value in watch.settings]
    return " ".join([watch.statistic.name, *settings])


def flatten(result: Any, name: str = "") -> dict[str, Tensor]:
    """All numbers of a result, by name."""
    if isinstance(result, Tensor):
        return {name: result}
    if isinstance(result, int | float):
        return {name: torch.tensor(result)}
    if result is None or isinstance(result, str):
        return {}
    if isinstance(result, AllAttention):
        parts = {part.name: part.result() for part in result.parts} | {"kinds": result.kinds()}
    elif isinstance(result, Regions):
        parts = {key: getattr(result, key) for key in ("features", "category", "image", "outside")}
    elif isinstance(result, Patches):
        parts = {key: getattr(result, key) for key in ("image", "classes", "counts")}
        parts |= {"layers": torch.stack(list(result.layers))} if len(result.image) else {}
    elif is_dataclass(result):
        parts = {field.name: getattr(result, field.name) for field in fields(result)}
    elif isinstance(result, Mapping):
        parts = {str(key): value for key, value in result.items()}
    elif isinstance(result, tuple):
        parts = {str(i): value for i, value in enumerate(result)}
    else:
        pytest.fail(f"nobody here knows how to compare a {type(result).__name__}")
    joined = f"{name}." if name else ""
    return {key: value for part, inner in parts.items() for key, value in flatten(inner, f"{joined}{part}").items()}
