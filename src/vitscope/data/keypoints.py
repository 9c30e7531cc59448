"""Pairs of images with points that correspond, over a list in which every image stands once."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vitscope.data.decode import BadImage, image_size
from vitscope.data.folders import safe_id
from vitscope.data.samples import Sample, SampleList, seeded_rank
from vitscope.digest import digest_of
from vitscope.errors import BadData

Point = tuple[float, float]
Box = tuple[float, float, float, float]


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
class KeypointSet:
    """Pairs over a list in which every image stands once; sizes: (height, width) of each."""

    images: SampleList
    sizes: tuple[tuple[int, int], ...]
    pairs: tuple[KeypointPair, ...]
    notes: tuple[str, ...] = ()

    @property
    def categories(self) -> tuple[str, ...]:
        return tuple(sorted({pair.category for pair in self.pairs}))

    @property
    def digest(self) -> str:
        points = [(pair.id, pair.source_points, pair.target_points, pair.target_box) for pair in self.pairs]
        return digest_of([self.images.digest, points])

    def limit(self, per_category: int, seed: int = 0) -> KeypointSet:
        """A seeded choice of at most this many pairs of each category, without repetition, and their images."""
        if per_category < 1:
            raise BadData(f"a limit of {per_category} pairs leaves nothing to look at: use 1 or more")
        groups: dict[str, list[KeypointPair]] = defaultdict(list)
        for pair in sorted(self.pairs, key=lambda pair: seeded_rank(pair.id, seed)):
            groups[pair.category].append(pair)
        chosen = {pair.id for group in groups.values() for pair in group[:per_category]}
        pairs = [pair for pair in self.pairs if pair.id in chosen]
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

    def __init__(self, root: Path) -> None:
        self.root = root
        self.position: dict[str, int] = {}
        self.sizes: list[tuple[int, int] | None] = []
        self.pairs: list[KeypointPair] = []
        self.counts: Counter[str] = Counter()

    def add(
        self,
        id: str,
        category: str,
        source: str,
        target: str,
        source_points: Any,
        target_points: Any,
        box: Any,
    ) -> None:
        here, there = self._image(source), self._image(target)
        size_here, size_there = self.sizes[here], self.sizes[there]
        if size_here is None or size_there is None:
            self.counts["pairs were left out: an image is missing or unreadable"] += 1
            return
        both = zip(_points(source_points), _points(target_points), strict=True)
        inside = [(a, b) for a, b in both if _within(a, size_here) and _within(b, size_there)]
        self.counts["points were left out: they lie outside their image"] += len(source_points) - len(inside)
        if not inside:
            self.counts["pairs were left out: they have no points"] += 1
            return
        corners = (0.0, 0.0, float(size_there[1]), float(size_there[0])) if box is None else tuple(map(float, box))
        if len(corners) != 4 or not (corners[2] > corners[0] and corners[3] > corners[1]):
            raise ValueError(f"the target box {box} is not x1, y1, x2, y2")
        points_here, points_there = zip(*inside, strict=True)
        self.pairs.append(KeypointPair(id, category, here, there, points_here, points_there, corners))

    def build(self, origin: str, categories: Iterable[str]) -> KeypointSet:
        notes = [f"{n} {what}" for what, n in self.counts.items() if n]
        if not self.pairs:
            raise BadData(f"{origin} holds no usable pairs: {'; '.join(notes) or 'the list is empty'}")
        if empty := sorted(set(categories) - {pair.category for pair in self.pairs}):
            notes.append(f"there are no pairs of {', '.join(empty)}")
        samples = [Sample(safe_id(name), self.root / name) for name in self.position]
        sizes = [size or (0, 0) for size in self.sizes]
        everything = KeypointSet(SampleList(samples, origin=origin), tuple(sizes), tuple(self.pairs), tuple(notes))
        return everything.limit(len(self.pairs))  # drops the images of no pair

    def _image(self, name: str) -> int:
        if name not in self.position:
            self.position[name] = len(self.sizes)
            try:
                self.sizes.append(image_size(self.root / name))
            except BadImage:
                self.sizes.append(None)
        return self.position[name]


def _points(values: Any) -> list[Point]:
    points = [(float(x), float(y)) for x, y in values]
    if not all(math.isfinite(c) for point in points for c in point):
        raise ValueError("points must be finite numbers")
    return points


def _within(point: Point, size: tuple[int, int]) -> bool:
    return 0 <= point[0] <= size[1] and 0 <= point[1] <= size[0]
