"""Menagerie as training data: rendered once into a file that is mapped into memory, and its two test sets."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from numpy.lib.format import open_memmap
from torch import Tensor

from vitscope.core.digest import digest_of, digest_of_tensors
from vitscope.core.files import write_atomically, write_text
from vitscope.menagerie import SPECIES, World, shelf
from vitscope.teaching.images import StoredImages
from vitscope.teaching.monitor import Monitor

PIECE = 256  # images rendered at a time
PROBE = 32  # images whose pixels are part of the digest, so that a changed renderer is noticed
TESTS = {
    "NAT": ("nat", None),
    "UNC": ("unc", 0.0),
}  # split, and how species correlate with appearance (None: default)


def rendered(folder: Path, split: str, count: int, size: int, correlation: float | None = None) -> StoredImages:
    """`count` labelled, captioned images of a split; rendered on the first call, found in `folder` on the next."""
    world = World() if correlation is None else World(correlation=correlation)
    probe = shelf(world, split, range(PROBE), size=size)
    looks = digest_of_tensors({"images": torch.from_numpy(np.ascontiguousarray(probe.images))})
    digest = digest_of(["menagerie", split, count, size, world.correlation, looks, list(probe.captions)])
    pixels, said = folder / f"{split}-{digest}.npy", folder / f"{split}-{digest}.json"
    if not (pixels.exists() and said.exists()):
        render_into(pixels, said, world, split, count, size)
    known = json.loads(said.read_text(encoding="utf-8"))
    return StoredImages(
        np.load(pixels, mmap_mode="r"),
        labels=torch.tensor(known["labels"]),
        classes=[species.name for species in SPECIES],
        captions=[(caption,) for caption in known["captions"]],
        digest=digest,
    )


def render_into(pixels: Path, said: Path, world: World, split: str, count: int, size: int) -> None:
    """Write images (N, 3, size, size), labels and captions; complete or not at all."""
    pixels.parent.mkdir(parents=True, exist_ok=True)
    labels: list[int] = []
    captions: list[str] = []

    def write(to: Path) -> None:
        array = open_memmap(to, "w+", np.uint8, (count, 3, size, size))
        starts = range(0, count, PIECE)
        pieces = [range(start, min(count, start + PIECE)) for start in starts]
        with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
            for start, piece in zip(starts, pool.map(partial(shelf, world, split, size=size), pieces), strict=True):
                array[start : start + len(piece.images)] = piece.images.transpose(0, 3, 1, 2)
                labels.extend(piece.labels.tolist())
                captions.extend(piece.captions)
        array.flush()

    write_atomically(pixels, write)
    write_text(said, json.dumps({"labels": labels, "captions": captions}))


def monitor(folder: Path, train: StoredImages, size: int, bank: int = 2000, queries: int = 1008) -> Monitor:
    """k-NN of test images among training images: NAT (nature-like) and UNC (appearance-free)."""
    some = list(range(min(bank, len(train))))
    tests = {name: rendered(folder, split, queries, size, dial) for name, (split, dial) in TESTS.items()}
    return Monitor(
        train.take(some),
        _labels(train)[: len(some)],
        {name: (test.take(range(len(test))), _labels(test)) for name, test in tests.items()},
    )


def _labels(images: StoredImages) -> Tensor:
    assert images.labels is not None
    return images.labels
