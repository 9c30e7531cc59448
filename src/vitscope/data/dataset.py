"""A dataset: typed, named, and able to say what it is, without a single image having been read.

Kinds: images, masks, labelled, retrieval, video, keypoints, segmentation, conflict. One opener per official layout
makes each of them, and `open_dataset` recognises which is meant. A study may have several of one kind; titles tell
them apart.
"""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, TypeVar

import torch
from torch import Tensor

from vitscope.core.digest import digest_of
from vitscope.core.errors import BadData, shorten
from vitscope.data.samples import SampleList

Self = TypeVar("Self", bound="Dataset")
EXAMPLES = 6  # images of a study that people look at, one by one
PARTS = "PartImageNet"  # its masks are of parts; other masks are taken to be of objects


@dataclass(frozen=True)
class Dataset(ABC):
    """What all kinds have. title: what tables and pages call it; notes: what was left out, in sentences.

    only: names of the analyses that look at it; all of its kind if there are none.
    """

    title: str
    only: tuple[str, ...] = field(default=(), kw_only=True)

    kind: ClassVar[str]

    @property
    @abstractmethod
    def digest(self) -> str:
        """The identity of everything in it; titles and places of files aside."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Images that go through a network."""

    @abstractmethod
    def limit(self: Self, n: int, seed: int = 0) -> Self:
        """A seeded part of it."""

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    @property
    def layout(self) -> str:
        """The official layout, where that says what the annotations are: parts, for one."""
        return ""

    def titled(self: Self, title: str) -> Self:
        return replace(self, title=title)

    def for_analyses(self: Self, names: Sequence[str]) -> Self:
        """The same data, for these analyses alone."""
        return replace(self, only=tuple(names))


@dataclass(frozen=True)
class ImageSet(Dataset):
    """Images, perhaps with classes. seed: of the order in which streams show them.

    first: positions of the images that are shown before all others, and so are the examples that people look at.
    """

    samples: SampleList
    seed: int = 0
    first: tuple[int, ...] = ()

    kind: ClassVar[str] = "images"

    @cached_property
    def shuffled(self) -> SampleList:
        """One seeded order for all models: minibatch CKA compares images within blocks of it."""
        return self.samples.select(self.order.tolist())

    @cached_property
    def order(self) -> Tensor:
        """Where each image of `shuffled` stands in `samples`, (n,) int64."""
        chosen = set(self.first)
        others = (place for place in self.samples.shuffled_positions(self.seed) if place not in chosen)
        return torch.tensor([*self.first, *others], dtype=torch.int64)

    @property
    def digest(self) -> str:
        return digest_of([self.samples.digest, *self.first]) if self.first else self.samples.digest

    @property
    def count(self) -> int:
        return len(self.samples)

    @property
    def notes(self) -> tuple[str, ...]:
        return self.samples.notes

    @property
    def layout(self) -> str:
        return PARTS if self.samples.origin.startswith(PARTS) else ""

    def limit(self: ImageSelf, n: int, seed: int = 0) -> ImageSelf:
        """Chosen examples are among those that stay."""
        if n >= self.count or not self.first:
            return replace(self, samples=self.samples.limit(n, seed))
        chosen = self.first[:n]
        rest = [place for place in self.samples.limit_positions(n, seed) if place not in chosen]
        kept = sorted([*chosen, *rest[: n - len(chosen)]])
        return replace(self, samples=self.samples.select(kept), first=tuple(kept.index(place) for place in chosen))

    def with_examples(self: ImageSelf, names: Sequence[str]) -> ImageSelf:
        """The same images, of which these are looked at one by one. names: ids, or their ends, such as file names."""
        if len(names) > EXAMPLES:
            raise BadData(f"examples: {len(names)} images are too many to look at one by one; name at most {EXAMPLES}")
        ids = self.samples.ids
        found = []
        for name in names:
            wanted = name.replace("\\", "/").lstrip("/")
            places = [i for i, one in enumerate(ids) if one == wanted or one.endswith(f"/{wanted}")]
            if len(places) != 1:
                near = difflib.get_close_matches(wanted, ids, n=1, cutoff=0.5)
                hint = f"; did you mean '{shorten(near[0])}'?" if near and not places else ""
                many = f"{len(places)} images are" if places else "no image is"
                raise BadData(f"examples: {many} called '{shorten(name)}' in {self.title}{hint}")
            found += places
        return replace(self, first=tuple(dict.fromkeys(found)))


ImageSelf = TypeVar("ImageSelf", bound=ImageSet)


@dataclass(frozen=True)
class MaskSet(ImageSet):
    """Images with annotated regions: objects or parts."""

    kind: ClassVar[str] = "masks"

    def __post_init__(self) -> None:
        if not any(sample.annotations for sample in self.samples):
            raise BadData(f"{self.title} has no masks: there is nothing to compare attention or features with")


@dataclass(frozen=True)
class LabelledSet(Dataset):
    """Two lists with the same classes: `train` is what is known, `test` what is asked."""

    train: SampleList
    test: SampleList
    remarks: tuple[str, ...] = ()

    kind: ClassVar[str] = "labelled"

    @property
    def digest(self) -> str:
        return digest_of([self.train.digest, self.test.digest])

    @property
    def count(self) -> int:
        return len(self.train) + len(self.test)

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self.remarks, *self.train.notes, *self.test.notes)

    def limit(self: LabelledSelf, n: int, seed: int = 0) -> LabelledSelf:
        """At most n images in each of the two lists, balanced over the classes."""
        if n < len(self.train.classes):
            raise BadData(
                f"{n} images cannot show the {len(self.train.classes)} classes of {self.title}: use a limit of that "
                "many or more"
            )
        title = self.title
        if n < max(len(self.train), len(self.test)) and not title.endswith("(part)"):
            title = f"{title} (part)"
        return replace(self, title=title, train=self.train.limit(n, seed), test=self.test.limit(n, seed))


LabelledSelf = TypeVar("LabelledSelf", bound=LabelledSet)
