"""Retrieval: ROxford5k and RParis6k in their official layout, `gnd_roxford5k.pkl` and `jpg/`.

The pickle holds `imlist` and `qimlist` (names without extension) and `gnd`: for each query its box `bbx`
(x1, y1, x2, y2) and the positions of easy, hard and junk images in `imlist`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from vitscope.data.decode import BadImage, check_size
from vitscope.data.folders import safe_id
from vitscope.data.layouts import expect, found_in
from vitscope.data.safe_pickle import Numbers, read_plain_pickle
from vitscope.data.samples import Sample, SampleList
from vitscope.digest import digest_of
from vitscope.errors import BadData

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
class RetrievalSet:
    """query_images[i] is the image of queries[i]; it may be a box of a photograph."""

    name: str
    database: SampleList
    query_images: SampleList
    queries: tuple[RetrievalQuery, ...]
    notes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        truth = [(query.easy, query.hard, query.junk) for query in self.queries]
        return digest_of([self.database.digest, self.query_images.digest, truth])


def open_revisited(root: Path | str) -> RetrievalSet:
    """root: the folder with `gnd_*.pkl` and `jpg/`, or the one that holds it as `roxford5k/` or `rparis6k/`."""
    root = Path(root).expanduser()
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
    try:
        names, query_names, records = (list(content[key]) for key in ("imlist", "qimlist", "gnd"))
        database = SampleList(_samples(root, names), origin=str(root))
        if len(records) != len(query_names) or not records:
            raise ValueError(f"{len(query_names)} queries but {len(records)} answers")
        boxes = [_box(record["bbx"]) for record in records]
        queries = tuple(
            RetrievalQuery(
                easy=_positions(record["easy"], len(names)),
                hard=_positions(record["hard"], len(names)),
                junk=_positions(record["junk"], len(names)),
            )
            for record in records
        )
        query_images = [
            BoxedSample(f"{sample.id}#{number}", sample.path, box=box)
            for number, (sample, box) in enumerate(zip(_samples(root, query_names), boxes, strict=True))
        ]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise BadData(
            f"{truth} is not a revisited ground truth (imlist, qimlist, gnd): {type(error).__name__} {error}"
        ) from None
    _check_present(root, [*database, *query_images])
    return RetrievalSet(truth.stem.removeprefix("gnd_"), database, SampleList(query_images, origin=str(root)), queries)


def _samples(root: Path, names: Sequence[Any]) -> list[Sample]:
    samples = []
    for name in names:
        if not isinstance(name, str) or "\0" in name or ".." in Path(name).parts or Path(name).is_absolute():
            raise ValueError(f"an image name is {str(name)[:60]!r}")
        samples.append(Sample(safe_id(f"jpg/{name}.jpg"), root / "jpg" / f"{name}.jpg"))
    return samples


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
    return [float(v.values) if isinstance(v, Numbers) and v.values is not None else float(v) for v in value]


def _positions(value: Any, count: int) -> tuple[int, ...]:
    numbers = _numbers(value)
    if any(number != int(number) or not 0 <= number < count for number in numbers):
        raise ValueError(f"a position is not one of the {count} images")
    return tuple(int(number) for number in numbers)


def _box(value: Any) -> Box:
    numbers = _numbers(value)
    if len(numbers) != 4 or not all(math.isfinite(number) for number in numbers):
        raise ValueError("a query box is not x1, y1, x2, y2")
    return (numbers[0], numbers[1], numbers[2], numbers[3])
