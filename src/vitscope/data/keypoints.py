"""Pairs of images with points that correspond, over a list in which every image stands once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from vitscope.core.digest import digest_of
from vitscope.core.errors import BadData, shorten
from vitscope.core.reading import number, path_inside
from vitscope.data.dataset import Dataset
from vitscope.data.decode import BadImage, image_size
from vitscope.data.samples import Sample, SampleList, safe_id, seeded_rank

OFFICIAL, SPAIR_PAIRS = "SPair-71k test", 12234
Point = tuple[float, float]
Box = tuple[float, float, float, float]
MOST_POINTS = 10_000  # of one pair


@dataclass(frozen=True)
class KeypointPair:
    """Points in a source image, and where they are in a target image."""

    id: str
    category: str
    source: int  # positions in KeypointSet.images
    target: int
    source_points: tuple[Point, ...]  # (x, y) in pixels
    target_points: tuple[Point, ...]
    target_box: Box  # x1, y1, x2, y2 in pixels: PCK's tolerance is a share of its longer side


@dataclass(frozen=True)
class KeypointSet(Dataset):
    """Pairs over a list in which every image stands once; sizes: (height, width) of each."""

    images: SampleList
    sizes: tuple[tuple[int, int], ...]
    pairs: tuple[KeypointPair, ...]
    remarks: tuple[str, ...] = ()

    kind: ClassVar[str] = "keypoints"

    @property
    def notes(self) -> tuple[str, ...]:
        return self.remarks

    @property
    def count(self) -> int:
        return len(self.images)

    @property
    def categories(self) -> tuple[str, ...]:
        return tuple(sorted({pair.category for pair in self.pairs}))

    @cached_property
    def digest(self) -> str:
        points = [(pair.id, pair.source_points, pair.target_points, pair.target_box) for pair in self.pairs]
        return digest_of([self.images.digest, points])

    def limit(self, n: int, seed: int = 0) -> KeypointSet:
        """A seeded choice of at most n pairs of each category, without repetition, and their images."""
        if n < 1:
            raise BadData(f"a limit of {n} pairs leaves nothing to look at: use 1 or more")
        groups: dict[str, list[KeypointPair]] = defaultdict(list)
        for pair in sorted(self.pairs, key=lambda pair: seeded_rank(pair.id, seed)):
            groups[pair.category].append(pair)
        chosen = {pair.id for group in groups.values() for pair in group[:n]}
        kept = self.part([number for number, pair in enumerate(self.pairs) if pair.id in chosen])
        whole = len(kept.pairs) == len(self.pairs)
        return kept if whole else replace(kept, title=f"{self.title} ({len(kept.pairs)} pairs)")

    def part(self, numbers: Iterable[int]) -> KeypointSet:
        """Some of the pairs, and the images they need."""
        pairs = [self.pairs[number] for number in numbers]
        used = sorted({position for pair in pairs for position in (pair.source, pair.target)})
        new = {position: i for i, position in enumerate(used)}
        return replace(
            self,
            images=self.images.select(used),
            sizes=tuple(self.sizes[i] for i in used),
            pairs=tuple(replace(pair, source=new[pair.source], target=new[pair.target]) for pair in pairs),
        )


class KeypointBuilder:
    """Collects pairs, gives every image one position, and counts what cannot be used."""

    def __init__(self, root: Path, annotations: Path) -> None:
        self.root, self.annotations = root, annotations
        self.position: dict[str, int] = {}
        self.sizes: list[tuple[int, int] | None] = []
        self.pairs: list[KeypointPair] = []
        self.counts: Counter[str] = Counter()

    def add(
        self,
        id: str,
        category: str,
        source: Any,
        target: Any,
        source_points: Any,
        target_points: Any,
        box: Any,
    ) -> None:
        here, there = self._image(source), self._image(target)
        size_here, size_there = self.sizes[here], self.sizes[there]
        if size_here is None or size_there is None:
            self.counts["pairs were left out: an image is missing or unreadable"] += 1
            return
        points, partners = _points(source_points), _points(target_points)
        if len(points) != len(partners):
            raise ValueError(f"{len(points)} source points but {len(partners)} target points")
        both = zip(points, partners, strict=True)
        inside = [(a, b) for a, b in both if _within(a, size_here) and _within(b, size_there)]
        self.counts["points were left out: they lie outside their image"] += len(source_points) - len(inside)
        if not inside:
            self.counts["pairs were left out: they have no points"] += 1
            return
        corners = self._box(box, size_there)
        if corners is None:
            self.counts["pairs were left out: their target box lies outside its image"] += 1
            return
        points_here, points_there = zip(*inside, strict=True)
        self.pairs.append(KeypointPair(id, category, here, there, points_here, points_there, corners))

    def build(self, origin: str, categories: Iterable[str]) -> KeypointSet:
        notes = [f"{n} {what}" for what, n in self.counts.items() if n]
        if not self.pairs:
            raise BadData(f"{origin} holds no usable pairs: {'; '.join(notes) or 'the list is empty'}")
        if empty := sorted(set(categories) - {pair.category for pair in self.pairs}):
            notes.append(f"there are no pairs of {', '.join(empty)}")
        samples = [Sample(safe_id(name), self._path(name)) for name in self.position]
        sizes = [size or (0, 0) for size in self.sizes]
        images = SampleList(samples, origin=origin)
        complete = origin.startswith(OFFICIAL) and len(self.pairs) == SPAIR_PAIRS
        title = OFFICIAL if complete else Path(origin.rpartition(" of ")[2]).resolve().name
        everything = KeypointSet(title, images, tuple(sizes), tuple(self.pairs), tuple(notes))
        return everything.limit(len(self.pairs))  # drops the images of no pair

    def _image(self, name: Any) -> int:
        if not isinstance(name, str) or name not in self.position:
            path = self._path(name)
            self.position[name] = len(self.sizes)
            try:
                self.sizes.append(image_size(path))
            except BadImage:
                self.sizes.append(None)
        return self.position[name]

    def _path(self, name: str) -> Path:
        return path_inside(self.root, name, source=self.annotations)

    def _box(self, box: Any, size: tuple[int, int]) -> Box | None:
        """The box as far as it lies in the image of `size`, None if nothing of it does.

        The tolerance of PCK is a share of it: with a box of a thousand images every match would be right.
        """
        height, width = float(size[0]), float(size[1])
        if box is None:
            return (0.0, 0.0, width, height)
        corners = [number(corner) for corner in box]
        if len(corners) != 4 or not (corners[2] > corners[0] and corners[3] > corners[1]):
            raise ValueError(f"the target box {shorten(box, 60)} is not x1, y1, x2, y2")
        left, top, right, bottom = corners
        inside = (max(left, 0.0), max(top, 0.0), min(right, width), min(bottom, height))
        if not (inside[2] > inside[0] and inside[3] > inside[1]):
            return None
        self.counts["target boxes were cut at the border of their image"] += inside != (left, top, right, bottom)
        return inside


def _points(values: Any) -> list[Point]:
    if not isinstance(values, list) or len(values) > MOST_POINTS:
        raise ValueError(f"points are not a list of at most {MOST_POINTS} pairs x, y")
    return [(number(x), number(y)) for x, y in values]


def _within(point: Point, size: tuple[int, int]) -> bool:
    return 0 <= point[0] <= size[1] and 0 <= point[1] <= size[0]
