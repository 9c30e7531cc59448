"""Which images, in which order, with which labels: the identity of everything that is measured.

The position of a sample in its `SampleList` is its identity in every statistic's state, so lists are immutable and
everything that picks or reorders returns a new list.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import overload

import numpy as np
from PIL import Image

from vitscope.data.decode import decode_image
from vitscope.digest import digest_of_strings
from vitscope.errors import BadData


@dataclass(frozen=True)
class Annotation(ABC):
    """One annotated region of an image. category: position in `SampleList.categories`."""

    category: int

    @abstractmethod
    def decode(self) -> np.ndarray:
        """The region, bool (H, W), in the size of the upright original image."""


@dataclass(frozen=True)
class Sample:
    """One image. id: path relative to the dataset, with forward slashes; label: position in `SampleList.classes`."""

    id: str
    path: Path
    label: int | None = None
    annotations: tuple[Annotation, ...] = ()

    def load(self) -> Image.Image:
        """The upright RGB picture; raises BadImage."""
        return decode_image(self.path)

    @property
    def fingerprint(self) -> str:
        """What tells this image from another of the same name, cheaply: the size of its file in bytes."""
        try:
            return str(self.path.stat().st_size)
        except OSError:
            return "missing"


class SampleList(Sequence[Sample]):
    """An immutable list of samples with the names of labels and categories.

    origin: where it came from, for people. notes: what was left out while reading, in sentences for the report.
    annotation_digest: digest of the annotation files, so that edited masks are not mistaken for the old ones.
    """

    def __init__(
        self,
        samples: Iterable[Sample],
        *,
        classes: Sequence[str] = (),
        categories: Sequence[str] = (),
        origin: str = "",
        notes: Sequence[str] = (),
        annotation_digest: str = "",
    ) -> None:
        self.samples = tuple(samples)
        self.classes = tuple(classes)
        self.categories = tuple(categories)
        self.origin = origin
        self.notes = tuple(notes)
        self.annotation_digest = annotation_digest

    def __len__(self) -> int:
        return len(self.samples)

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.samples)

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> SampleList: ...
    def __getitem__(self, index: int | slice) -> Sample | SampleList:
        if isinstance(index, slice):
            return self._with(self.samples[index])
        return self.samples[index]

    def __repr__(self) -> str:
        return f"SampleList({len(self)} images of {self.origin or 'unknown origin'})"

    @property
    def labels(self) -> tuple[int | None, ...]:
        return tuple(sample.label for sample in self.samples)

    @property
    def is_labelled(self) -> bool:
        return bool(self.samples) and all(sample.label is not None for sample in self.samples)

    @cached_property
    def digest(self) -> str:
        """Digest of the ids, labels and file sizes in order, and of the annotations.

        File sizes are in it because ids are relative: two folders of `00000.jpg ...` are not the same images.
        """
        names = (f"{s.id}|{self._class_name(s)}|{s.fingerprint}" for s in self.samples)
        return digest_of_strings([*names, self.annotation_digest, *self.categories])

    def select(self, positions: Iterable[int]) -> SampleList:
        """The samples at these positions, in this order."""
        return self._with(self.samples[i] for i in positions)

    def limit(self, n: int, seed: int = 0) -> SampleList:
        """A seeded subset of n samples, in the order of this list; the list itself if it has no more than n.

        With labels the classes are represented equally as far as they reach (round robin over the classes).
        Subsets of one seed are nested: limit(100) holds all of limit(50), so a study can be extended.
        """
        if n < 1:
            raise BadData(f"a limit of {n} images leaves nothing to look at: use 1 or more")
        if n >= len(self):
            return self
        return self.select(sorted(self._balanced_order(seed)[:n]))

    def shuffled(self, seed: int = 0) -> SampleList:
        """All samples in a seeded order that depends on each sample's id alone."""
        return self.select(sorted(range(len(self)), key=lambda i: seeded_rank(self.samples[i].id, seed)))

    def _balanced_order(self, seed: int) -> list[int]:
        groups: dict[int | None, list[int]] = defaultdict(list)
        for position, sample in enumerate(self.samples):
            groups[sample.label].append(position)
        order = []
        for label, members in groups.items():
            members.sort(key=lambda i: seeded_rank(self.samples[i].id, seed))
            # every class's first sample before any class's second; classes in a seeded order of their own
            order += [(turn, seeded_rank(str(label), seed), position) for turn, position in enumerate(members)]
        return [position for _, _, position in sorted(order)]

    def _class_name(self, sample: Sample) -> str:
        if sample.label is None:
            return ""
        return self.classes[sample.label] if sample.label < len(self.classes) else str(sample.label)

    def _with(self, samples: Iterable[Sample]) -> SampleList:
        return SampleList(
            samples,
            classes=self.classes,
            categories=self.categories,
            origin=self.origin,
            notes=self.notes,
            annotation_digest=self.annotation_digest,
        )


def seeded_rank(name: str, seed: int) -> bytes:
    """A pseudo-random key: the same on every machine and in every version, whatever else is in the list."""
    return hashlib.blake2b(f"{seed}|{name}".encode(), digest_size=16).digest()
