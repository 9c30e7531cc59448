"""Retrieval: ROxford5k and RParis6k in their official layout, `gnd_roxford5k.pkl` and `jpg/`.

The pickle holds `imlist` and `qimlist` (names without extension) and `gnd`: for each query its box `bbx`
(x1, y1, x2, y2) and the positions of easy, hard and junk images in `imlist`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from PIL import Image

from vitscope.core.digest import digest_of
from vitscope.core.errors import BadData
from vitscope.core.reading import number, path_inside, told, user_path, whole
from vitscope.data.dataset import Dataset
from vitscope.data.decode import BadImage, check_size
from vitscope.data.layouts import expect, found_in
from vitscope.data.safe_pickle import Numbers, read_plain_pickle
from vitscope.data.samples import Sample, SampleList, safe_id, seeded_rank

Box = tuple[float, float, float, float]
GROUND_TRUTH = "gnd_*.pkl"
DATASETS = ("roxford5k", "rparis6k")


@dataclass(frozen=True)
class BoxedSample(Sample):
    """An image of which only a box (x1, y1, x2, y2, pixels) is looked at."""

    box: Box = (0.0, 0.0, 1.0, 1.0)

    def load(self) -> Image.Image:
        picture = super().load()
        left, top, right, bottom = (round(corner) for corner in self.box)
        inside = (max(left, 0), max(top, 0), min(right, picture.width), min(bottom, picture.height))
        try:
            check_size(max(inside[2] - inside[0], 0), max(inside[3] - inside[1], 0))
        except ValueError as error:
            raise BadImage(self.path, f"has an unusable box: {error}") from None
        return picture.crop(inside)

    @property
    def fingerprint(self) -> str:
        return f"{super().fingerprint}|{self.box}"


@dataclass(frozen=True)
class RetrievalQuery:
    """Positions in the database of the images that count (easy, hard) and of those to be ignored (junk).

    position: where the query image itself is in the database, if it is one of its images.
    """

    easy: tuple[int, ...]
    hard: tuple[int, ...]
    junk: tuple[int, ...]
    position: int | None = None


@dataclass(frozen=True)
class RetrievalSet(Dataset):
    """query_images[i] is the image of queries[i]; it may be a box of a photograph."""

    database: SampleList
    query_images: SampleList
    queries: tuple[RetrievalQuery, ...]
    remarks: tuple[str, ...] = ()

    kind: ClassVar[str] = "retrieval"

    @cached_property
    def digest(self) -> str:
        truth = [(query.easy, query.hard, query.junk) for query in self.queries]
        return digest_of([self.database.digest, self.query_images.digest, truth])

    @property
    def count(self) -> int:
        return len(self.database) + len(self.query_images)

    @property
    def notes(self) -> tuple[str, ...]:
        return self.remarks

    def limit(self, n: int, seed: int = 0) -> RetrievalSet:
        """A seeded choice of at most n queries; the database stays whole, since a smaller one would be easier."""
        if n < 1:
            raise BadData(f"a limit of {n} queries leaves nothing to look for: use 1 or more")
        if n >= len(self.queries):
            return self
        ranked = sorted(range(len(self.queries)), key=lambda i: seeded_rank(str(i), seed))
        chosen = sorted(ranked[:n])
        return replace(
            self,
            title=f"{self.title} ({n} queries)",
            query_images=self.query_images.select(chosen),
            queries=tuple(self.queries[i] for i in chosen),
        )


OFFICIAL = {"roxford5k": ("ROxford5k", 70, 4993), "rparis6k": ("RParis6k", 70, 6322)}  # queries, database


def title_of(name: str, queries: int, database: int) -> str:
    """The official name where all of it is there, so that scores may stand beside published ones."""
    title, *whole = OFFICIAL.get(name, (name, queries, database))
    return title if whole == [queries, database] else f"{title} (part)"


def open_revisited(root: Path | str) -> RetrievalSet:
    """root: the folder with `gnd_*.pkl` and `jpg/`, or the one that holds it as `roxford5k/` or `rparis6k/`."""
    root = user_path(root)
    if not list(root.glob(GROUND_TRUTH)):
        inner = [root / name for name in DATASETS if (root / name).is_dir()]
        if len(inner) > 1:
            raise BadData(f"{root} holds {' and '.join(DATASETS)}: give one of them")
        root = inner[0] if inner else root
    truths = sorted(root.glob(GROUND_TRUTH))
    if not truths:
        raise BadData(
            f"{root} is not ROxford5k or RParis6k: expected gnd_roxford5k.pkl or gnd_rparis6k.pkl and jpg/; "
            f"found {found_in(root) if root.exists() else 'nothing'}"
        )
    if len(truths) > 1:
        raise BadData(f"{root} holds several ground truths ({', '.join(t.name for t in truths)}): keep one")
    expect(root, "a revisited retrieval benchmark", [truths[0].name, "jpg/"])
    return _assemble(root, truths[0])


def _assemble(root: Path, truth: Path) -> RetrievalSet:
    content = read_plain_pickle(truth)
    with told(f"{truth} is not a revisited ground truth (imlist, qimlist, gnd)"):
        names, query_names, records = (list(content[key]) for key in ("imlist", "qimlist", "gnd"))
        database = SampleList(_samples(root, names, truth), origin=str(root))
        if len(set(names)) < len(names):
            raise ValueError("it lists an image of the database twice")
        if len(records) != len(query_names) or not records:
            raise ValueError(f"{len(query_names)} queries but {len(records)} answers")
        boxes = [_box(record["bbx"]) for record in records]
        queries = tuple(_query(record, len(names)) for record in records)
        if not any(query.easy or query.hard for query in queries):
            raise ValueError("no query has an image that should be found")
        query_images = [
            BoxedSample(f"{sample.id}#{number}", sample.path, box=box)
            for number, (sample, box) in enumerate(zip(_samples(root, query_names, truth), boxes, strict=True))
        ]
    _check_present(root, [*database, *query_images])
    title = title_of(truth.stem.removeprefix("gnd_"), len(queries), len(database))
    return RetrievalSet(title, database, SampleList(query_images, origin=str(root)), queries)


def _samples(root: Path, names: Sequence[Any], source: Path) -> list[Sample]:
    samples = []
    for name in names:
        path_inside(root, name, source=source)  # before an ending is put to it, or "" would pass
        path = path_inside(root / "jpg", f"{name}.jpg", source=source)
        samples.append(Sample(safe_id(path.relative_to(root)), path))
    return samples


def _query(record: Any, count: int) -> RetrievalQuery:
    """The answer to one query: an image that is named twice would be counted twice, or both right and ignored."""
    easy, hard, junk = (_positions(record[kind], count) for kind in ("easy", "hard", "junk"))
    if twice := [place for place, times in Counter([*easy, *hard, *junk]).items() if times > 1]:
        raise ValueError(f"image {twice[0]} of the database stands twice among easy, hard and junk of one query")
    return RetrievalQuery(easy, hard, junk)


def _check_present(root: Path, samples: Sequence[Sample]) -> None:
    """Scores of an incomplete database would look better than they are, so every image must be there."""
    missing = [sample for sample in samples if not sample.path.is_file()]
    if missing:
        raise BadData(
            f"{len(missing)} of the {len(samples)} images of {root} are missing (first: {missing[0].path}): "
            f"complete the dataset"
        )


def _numbers(value: Any) -> list[float]:
    """A flat list of numbers, from a list, a tuple or an array, of numbers or scalars."""
    if isinstance(value, Numbers):
        if value.values is None:
            raise ValueError("an array without content")
        return [float(v) for v in value.values.reshape(-1)]
    return [number(v.values.item() if isinstance(v, Numbers) and v.values is not None else v) for v in value]


def _positions(value: Any, count: int) -> tuple[int, ...]:
    places = tuple(map(whole, _numbers(value)))
    if any(not 0 <= place < count for place in places):
        raise ValueError(f"a position is not one of the {count} images")
    return places


def _box(value: Any) -> Box:
    numbers = [number(corner) for corner in _numbers(value)]
    if len(numbers) != 4:
        raise ValueError("a query box is not x1, y1, x2, y2")
    return (numbers[0], numbers[1], numbers[2], numbers[3])
