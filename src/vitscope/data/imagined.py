"""A dataset that is not here, as large as its authors say it is: enough to tell what a study of it would cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vitscope.core.errors import BadData
from vitscope.data.dataset import Dataset, ImageSet, LabelledSet, MaskSet
from vitscope.data.davis import VideoSequence, VideoSet
from vitscope.data.keypoints import KeypointPair, KeypointSet
from vitscope.data.official import OfficialDataset
from vitscope.data.revisited import RetrievalQuery, RetrievalSet
from vitscope.data.samples import Annotation, ListedFiles, Sample, SampleList

NOWHERE = Path("not on this machine")
SUPERCATEGORIES = 11  # of PartImageNet
REGIONS = 7  # of an image, about: COCO's
FRAME = (480, 854)  # DAVIS


@dataclass(frozen=True)
class _Unseen(Annotation):
    def decode(self) -> np.ndarray:
        raise BadData("a dataset that is not on this machine has no masks")


def imagine(known: OfficialDataset, limit: int | None = None, per_supercategory: int | None = None) -> Dataset:
    """What `known.open` would give, by its counts alone; nothing in it can be read."""
    whole = _IMAGINED[known.kind](known)
    if per_supercategory is not None and isinstance(whole, ImageSet):
        limit = min(per_supercategory * SUPERCATEGORIES, limit or whole.count)
    return whole if limit is None else whole.limit(limit)


def _files(name: str, count: int, classes: int = 0) -> SampleList:
    names = [f"{name}/{number:07}" for number in range(count)]
    labels = (np.arange(count) * classes // max(count, 1)).tolist() if classes else None
    listed = ListedFiles(NOWHERE, names, ["missing"] * count, labels)
    return SampleList(listed, classes=[f"{number:04}" for number in range(classes)])


def _images(known: OfficialDataset) -> Dataset:
    return ImageSet(known.title, _files(known.name, known.images, known.facts["classes"]))


def _masks(known: OfficialDataset) -> Dataset:
    count = known.facts["categories"]
    regions = [_Unseen(number) for number in range(count)]
    samples = [
        Sample(f"{i:06}", NOWHERE, annotations=tuple(regions[(i + n) % count] for n in range(REGIONS)))
        for i in range(known.images)
    ]
    return MaskSet(known.title, SampleList(samples, categories=[str(number) for number in range(count)]))


def _labelled(known: OfficialDataset) -> Dataset:
    facts = known.facts
    train, test = (_files(part, facts[f"{part} images"], facts["classes"]) for part in ("training", "test"))
    return LabelledSet(known.title, train, test)


def _retrieval(known: OfficialDataset) -> Dataset:
    queries = known.facts["queries"]
    asked = (RetrievalQuery((0,), (), ()),) * queries
    return RetrievalSet(known.title, _files("database", known.facts["database images"]), _files("q", queries), asked)


def _videos(known: OfficialDataset) -> Dataset:
    count, frames = known.facts["videos"], known.facts["frames"]
    lengths = [frames // count + (number < frames % count) for number in range(count)]
    sequences = (
        VideoSequence(str(i), (NOWHERE,) * length, (NOWHERE,) * length, binary=False, size=FRAME)
        for i, length in enumerate(lengths)
    )
    return VideoSet(known.title, tuple(sequences))


def _pairs(known: OfficialDataset) -> Dataset:
    count, categories, each = known.facts["pairs"], known.facts["categories"], known.images // known.facts["categories"]
    nothing = ((0.0, 0.0),)
    pairs = []
    for number in range(count):
        category, turn = number % categories, number // categories
        first = category * each
        source, target = first + turn % each, first + (turn + 1) % each
        pairs.append(KeypointPair(f"{number:06}", f"{category:02}", source, target, nothing, nothing, (0, 0, 1, 1)))
    images = _files(known.name, known.images)
    return KeypointSet(known.title, images, (FRAME,) * known.images, tuple(pairs))


_IMAGINED: dict[str, Callable[[OfficialDataset], Dataset]] = {
    "images": _images,
    "masks": _masks,
    "labelled": _labelled,
    "retrieval": _retrieval,
    "video": _videos,
    "keypoints": _pairs,
}
