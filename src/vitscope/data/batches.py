"""Samples to batches of pixels, decoded while the network is busy with the batch before.

The order, the indices and the bytes are the same whatever `workers` is. Batches are consecutive stretches of the
list; a broken image leaves its batch one smaller and moves nothing else.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from vitscope.core.errors import BadData
from vitscope.data.decode import BadImage
from vitscope.data.preprocessing import Preprocessing, cells_paper, central
from vitscope.data.samples import Sample, SampleList

BATCHES_AHEAD = 2  # decoded in the background beyond the one in use
DECODING_THREADS = min(4, os.cpu_count() or 1)


@dataclass
class SkippedImages:
    """Broken images by id, with the reason. More than `limit` of them stop the work."""

    limit: int = 50
    reasons: dict[str, str] = field(default_factory=dict)

    def add(self, id: str, reason: str) -> None:
        self.reasons[id] = reason
        if len(self.reasons) > self.limit:
            raise BadData(
                f"more than {self.limit} images are unusable (the last: {id} {reason}): repair or remove them, "
                f"or allow more to be skipped"
            )

    def __len__(self) -> int:
        return len(self.reasons)


@dataclass
class BatchAnnotations:
    """The annotated regions of one image, seen as the network sees the image."""

    categories: Tensor  # int64 (n,): positions in SampleList.categories
    coverage: Tensor  # uint8 (n, h, w): 0..255, the share of each pixel's area that the region covers
    published: Tensor  # uint8 (n, *grid): the same of each token's cell, reduced as published


@dataclass
class Batch:
    images: Tensor  # uint8 (B, 3, h, w): after the geometry, not normalised
    indices: Tensor  # int64 (B,): positions in the SampleList
    ids: list[str]
    labels: Tensor | None  # int64 (B,)
    annotations: list[BatchAnnotations] | None  # one per image

    def __len__(self) -> int:
        return len(self.ids)


@dataclass
class Prepared:
    """One image ready for its batch; or, with a reason, one that is not."""

    index: int
    image: Tensor | None = None  # uint8 (3, h, w)
    annotations: BatchAnnotations | None = None
    reason: str = ""


def batches(
    samples: SampleList,
    preprocessing: Preprocessing,
    *,
    batch_size: int,
    skipped: SkippedImages,
    stretch: range | None = None,
    workers: int = 0,
    grid: tuple[int, int] | None = None,
    pinned: bool = False,
) -> Generator[Batch, None, None]:
    """Every usable sample of a stretch of the list (or all of it) once, in order; broken ones go to `skipped`.

    workers: 0 decodes in a few threads of this process (Pillow releases the interpreter lock), two batches ahead of
    the consumer; n > 0 starts n processes. grid: of tokens; with it annotated regions come along. pinned: images lie in
    memory from which a GPU can copy them without anybody waiting.
    """
    if batch_size < 1:
        raise BadData(f"a batch size of {batch_size} is not possible: use 1 or more")
    stretch = range(len(samples)) if stretch is None else stretch
    prepare = Preparation(samples, preprocessing, grid, stretch)
    stretches = _in_processes(prepare, batch_size, workers) if workers else _in_threads(prepare, batch_size)
    with closing(stretches):
        for items in stretches:
            for item in items:
                if item.image is None:
                    skipped.add(samples[item.index].id, item.reason)
            good = [item for item in items if item.image is not None]
            if good:
                batch = _collate(samples, good)
                batch.images = batch.images.pin_memory() if pinned else batch.images
                yield batch


class Preparation(Dataset[Prepared]):
    """Index to decoded, cropped pixels and masks: what threads and worker processes do."""

    def __init__(
        self, samples: SampleList, preprocessing: Preprocessing, grid: tuple[int, int] | None, stretch: range
    ) -> None:
        self.samples = samples
        self.preprocessing = preprocessing
        self.grid = grid
        self.stretch = stretch

    def __len__(self) -> int:
        return len(self.stretch)

    def __getitem__(self, place: int) -> Prepared:
        index = self.stretch[place]
        sample = self.samples[index]
        try:
            upright = sample.load()
            image = torch.from_numpy(np.array(self.preprocessing.geometry(upright))).permute(2, 0, 1)
            size = (upright.height, upright.width)
            regions = annotate(sample, size, self.preprocessing, self.grid) if self.grid else None
        except BadImage as error:
            return Prepared(index, reason=error.reason)
        return Prepared(index, image, regions)


def annotate(
    sample: Sample, size: tuple[int, int], preprocessing: Preprocessing, grid: tuple[int, int]
) -> BatchAnnotations:
    """A sample's regions under the geometry of its image. size: (height, width) of the original image."""
    coverage = np.empty((len(sample.annotations), *preprocessing.size), np.uint8)
    published = np.empty((len(sample.annotations), *grid), np.uint8)
    for row, cells, annotation in zip(coverage, published, sample.annotations, strict=True):
        region = annotation.decode()  # bool (H, W)
        if region.shape != size:
            raise BadImage(sample.path, f"is {size[1]}x{size[0]} but its mask is {region.shape[1]}x{region.shape[0]}")
        mask = Image.fromarray(region.view(np.uint8) * np.uint8(255))
        row[:] = np.asarray(preprocessing.geometry(mask, Image.Resampling.BOX))
        cells[:] = cells_paper(central(region, preprocessing.size), grid)
    categories = torch.tensor([annotation.category for annotation in sample.annotations], dtype=torch.int64)
    return BatchAnnotations(categories, torch.from_numpy(coverage), torch.from_numpy(published))


def _in_threads(prepare: Preparation, batch_size: int) -> Generator[list[Prepared], None, None]:
    pool = ThreadPoolExecutor(DECODING_THREADS, thread_name_prefix="decode")
    try:
        waiting: deque[list[Future[Prepared]]] = deque()
        for start in range(0, len(prepare), batch_size):
            stretch = range(start, min(start + batch_size, len(prepare)))
            waiting.append([pool.submit(prepare.__getitem__, index) for index in stretch])
            if len(waiting) > BATCHES_AHEAD:
                yield [future.result() for future in waiting.popleft()]
        while waiting:
            yield [future.result() for future in waiting.popleft()]
    finally:  # also when the consumer stops early
        pool.shutdown(wait=False, cancel_futures=True)


def _in_processes(prepare: Preparation, batch_size: int, workers: int) -> Generator[list[Prepared], None, None]:
    loader = DataLoader(prepare, batch_size, num_workers=workers, collate_fn=_as_list, prefetch_factor=BATCHES_AHEAD)
    yield from loader


def _as_list(items: list[Prepared]) -> list[Prepared]:
    return items


def _collate(samples: SampleList, items: Sequence[Prepared]) -> Batch:
    members = [samples[item.index] for item in items]
    labels = [sample.label for sample in members]
    regions = [item.annotations for item in items if item.annotations is not None]
    return Batch(
        images=torch.stack([item.image for item in items if item.image is not None]),
        indices=torch.tensor([item.index for item in items], dtype=torch.int64),
        ids=[sample.id for sample in members],
        labels=torch.tensor(labels, dtype=torch.int64) if all(label is not None for label in labels) else None,
        annotations=regions or None,
    )
