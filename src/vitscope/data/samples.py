"""Which images, in which order, with which labels: the identity of everything that is measured.

The position of a sample in its `SampleList` is its identity in every statistic's state, so lists are immutable and
everything that picks or reorders returns a new list.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vitscope.core.digest import digest_of_strings
from vitscope.core.errors import BadData, printable
from vitscope.core.reading import open_regular
from vitscope.data.decode import decode_image, image_size

LARGEST_TEXT = 1 << 16  # bytes that are read of a text beside an image
MOST_REGIONS = 4096  # of one image: each takes the memory of an image when it is looked at


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
    def size(self) -> tuple[int, int]:
        """(height, width) of the upright picture, from its header alone; raises BadImage."""
        return image_size(self.path)

    @property
    def fingerprint(self) -> str:
        """What tells this image from another of the same name, without reading it."""
        return file_fingerprint(self.path)

    def beside(self, suffix: str) -> bytes:
        """The start of the file of the same name with another suffix, such as ".txt"; nothing if there is none."""
        path = self.path.with_suffix(suffix)
        try:
            if not path.is_file():
                return b""
            with open_regular(path) as file:
                return file.read(LARGEST_TEXT)
        except OSError as error:
            raise BadData(f"{path} cannot be read: {error.strerror}") from error


@dataclass(frozen=True, kw_only=True, eq=False)
class PixelSample(Sample):
    """An image that exists in memory only; its path is a name."""

    pixels: NDArray[np.uint8]  # (h, w, 3)

    def load(self) -> Image.Image:
        return Image.fromarray(self.pixels)

    @property
    def size(self) -> tuple[int, int]:
        return self.pixels.shape[0], self.pixels.shape[1]

    @property
    def fingerprint(self) -> str:
        return hashlib.blake2b(self.pixels.tobytes(), digest_size=8).hexdigest()


def file_fingerprint(path: Path) -> str:
    """Size and time of modification: a file that was replaced by another of the same size is another file."""
    try:
        status = path.stat()
    except OSError:
        return "missing"
    return f"{status.st_size}@{status.st_mtime_ns}"


class ListedFiles(Sequence[Sample]):
    """Files below a folder as samples that are made when they are asked for: a million of them take 150 MB, not 2 GB.

    names: paths relative to the folder; fingerprints: of each file, as it was listed; labels: of each, or None.
    """

    def __init__(
        self, root: Path, names: Sequence[str], fingerprints: Sequence[str], labels: Sequence[int] | None = None
    ) -> None:
        self.root = str(root)
        self.names, self.fingerprints = list(names), list(fingerprints)
        self.labels = None if labels is None else np.asarray(labels, np.int32)

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def ids(self) -> list[str]:
        return [safe_id(name) for name in self.names]

    def __getitem__(self, index: Any) -> Any:
        name = self.names[index]
        label = None if self.labels is None else int(self.labels[index])
        return Sample(safe_id(name), Path(self.root, name), label)


def safe_id(path: Path | str) -> str:
    """A relative path as printable text with forward slashes, whatever bytes file names are made of.

    >>> safe_id(Path("cats") / "tom\\x1b.jpg")
    'cats/tom\\\\x1b.jpg'
    """
    text = str(path)
    if text.isascii() and text.isprintable():  # nearly always
        return text.replace(os.sep, "/")
    with suppress(UnicodeEncodeError):  # half a character, as JSON can spell it and no file system can
        text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return printable(text.replace(os.sep, "/"))


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
        positions: np.ndarray | None = None,
    ) -> None:
        """positions: which of `samples`, in which order; all of them if not given."""
        self.base: Sequence[Sample] = samples if isinstance(samples, ListedFiles) else tuple(samples)
        self.positions = positions
        self.classes = tuple(classes)
        self.categories = tuple(categories)
        self.origin = origin
        self.notes = tuple(notes)
        self.annotation_digest = annotation_digest

    def __len__(self) -> int:
        return len(self.base) if self.positions is None else len(self.positions)

    def __iter__(self) -> Iterator[Sample]:
        return (self.base[i] for i in self._places())

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> SampleList: ...
    def __getitem__(self, index: int | slice) -> Sample | SampleList:
        if isinstance(index, slice):
            return self.select(range(len(self))[index])
        return self.base[index if self.positions is None else int(self.positions[index])]

    def _places(self) -> Iterable[int]:
        return range(len(self.base)) if self.positions is None else self.positions.tolist()

    def __repr__(self) -> str:
        return f"SampleList({len(self)} images of {self.origin or 'unknown origin'})"

    @property
    def labels(self) -> tuple[int | None, ...]:
        if isinstance(self.base, ListedFiles):
            if self.base.labels is None:
                return (None,) * len(self)
            chosen = self.base.labels if self.positions is None else self.base.labels[self.positions]
            return tuple(chosen.tolist())
        return tuple(sample.label for sample in self)

    @property
    def ids(self) -> list[str]:
        if isinstance(self.base, ListedFiles):
            ids = self.base.ids
            return ids if self.positions is None else [ids[i] for i in self._places()]
        return [sample.id for sample in self]

    @property
    def is_labelled(self) -> bool:
        return bool(len(self)) and None not in self.labels

    @cached_property
    def digest(self) -> str:
        """Digest of the ids, labels and fingerprints in order, and of the annotations.

        Fingerprints are in it because ids are relative: two folders of `00000.jpg ...` are not the same images.
        """
        if isinstance(self.base, ListedFiles):
            prints: Iterable[str] = (self.base.fingerprints[i] for i in self._places())
        else:
            prints = (sample.fingerprint for sample in self)
        classes = {label: self._class_name(label) for label in set(self.labels)}
        names = (f"{i}|{classes[k]}|{p}" for i, k, p in zip(self.ids, self.labels, prints, strict=True))
        return digest_of_strings(chain(names, [self.annotation_digest], self.categories))

    def select(self, positions: Iterable[int]) -> SampleList:
        """The samples at these positions, in this order."""
        chosen = np.fromiter(positions, np.int64)
        return SampleList(
            self.base,
            classes=self.classes,
            categories=self.categories,
            origin=self.origin,
            notes=self.notes,
            annotation_digest=self.annotation_digest,
            positions=chosen if self.positions is None else self.positions[chosen],
        )

    def limit(self, n: int, seed: int = 0) -> SampleList:
        """A seeded subset of n samples, in the order of this list; the list itself if it has no more than n.

        With labels the classes are represented equally as far as they reach (round robin over the classes).
        Subsets of one seed are nested: limit(100) holds all of limit(50), so a study can be extended.
        """
        if n < 1:
            raise BadData(f"a limit of {n} images leaves nothing to look at: use 1 or more")
        return self if n >= len(self) else self.select(sorted(self.limit_positions(n, seed)))

    def limit_positions(self, n: int, seed: int = 0) -> list[int]:
        """The positions of `limit` in this list, the most wanted first."""
        return self._balanced_order(seed)[:n]

    def shuffled(self, seed: int = 0) -> SampleList:
        """All samples in a seeded order that depends on each sample's id alone."""
        return self.select(self.shuffled_positions(seed))

    def shuffled_positions(self, seed: int = 0) -> list[int]:
        """The positions of `shuffled` in this list."""
        ranks = [seeded_rank(name, seed) for name in self.ids]
        return sorted(range(len(ranks)), key=ranks.__getitem__)

    def _balanced_order(self, seed: int) -> list[int]:
        groups: dict[int | None, list[int]] = defaultdict(list)
        for position, label in enumerate(self.labels):
            groups[label].append(position)
        ranks = [seeded_rank(name, seed) for name in self.ids]
        order = []
        for label, members in groups.items():
            members.sort(key=ranks.__getitem__)
            # every class's first sample before any class's second; classes in a seeded order of their own
            order += [(turn, seeded_rank(str(label), seed), position) for turn, position in enumerate(members)]
        return [position for _, _, position in sorted(order)]

    def _class_name(self, label: int | None) -> str:
        if label is None:
            return ""
        return self.classes[label] if label < len(self.classes) else str(label)


def seeded_rank(name: str, seed: int) -> bytes:
    """A pseudo-random key: the same on every machine and in every version, whatever else is in the list."""
    return hashlib.blake2b(f"{seed}|{name}".encode(), digest_size=16).digest()
