"""A campaign against a reader of files, with one oracle: one printable sentence, or the right numbers.

Never another exception, never more than SECONDS, never more than BYTES of memory. A reader is a function that makes its
files in a folder and hands back a case: it changes a file, reads it, and asserts what must hold of whatever was read.
"""

from __future__ import annotations

import resource
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image

from vitscope.core.errors import VitscopeError

SECONDS, BYTES = 10, 1 << 30  # of one case, of all cases of a reader together
QUICK, SLOW = 12, 300  # cases of each reader
LONGEST = 1100  # characters of a sentence
SIZE = (24, 16)  # width and height of images
COUNTS = "campaign"  # the property of a test's report that `summary` reads
GOOD, BAD = ("told", "read rightly"), ("tracebacks", "wrong", "slow", "ill told")

Case = Callable[[Random], Any]
Reader = Callable[[Path], Case]


def run_campaign(reader: Reader, root: Path, cases: int) -> tuple[Counter[str], list[str]]:
    """How the cases ended, and a line about each that did not end well. A case is known by its seed."""
    random, case = Random(reader.__name__), reader(root)
    count, wrong = Counter(dict.fromkeys((*GOOD, *BAD), 0)), []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(cases):
        seed = random.randrange(1 << 32)
        start, said = time.monotonic(), ""
        try:
            case(Random(seed))
            ending = "read rightly"
        except VitscopeError as error:
            said = str(error)
            ending = "told" if said and said.isprintable() and len(said) < LONGEST else "ill told"
        except AssertionError as error:
            ending, said = "wrong", str(error)
        except (Exception, pl.exceptions.PanicException) as error:
            ending, said = "tracebacks", f"{type(error).__name__}: {error}"
        if time.monotonic() - start > SECONDS:
            ending = "slow"
        count[ending] += 1
        if ending in BAD:
            wrong.append(f"case {seed}: {ending}: {said[:300]!r}")
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    if grown > BYTES:
        wrong.append(f"took {grown >> 20} MiB")
    return count, wrong


def campaign(*readers: Reader) -> tuple[Callable[..., None], Callable[..., None]]:
    """Two tests of each reader: a few cases, and hundreds. Their counts are shown at the end of the run."""
    each = pytest.mark.parametrize("reader", readers, ids=lambda reader: reader.__name__)

    def run(reader: Reader, folder: Path, cases: int, record: Callable[[str, object], None]) -> None:
        count, wrong = run_campaign(reader, folder, cases)
        record(COUNTS, {"reader": reader.__name__, **count})
        assert not wrong, "\n".join(wrong[:10])
        assert count["told"], "nothing was refused: the changes do not reach the reader"

    @each
    def some_cases(reader: Reader, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
        run(reader, tmp_path, QUICK, record_property)

    @pytest.mark.slow
    @each
    def many_cases(reader: Reader, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
        run(reader, tmp_path, SLOW, record_property)

    return some_cases, many_cases


def summary(properties: list[dict[str, Any]]) -> list[str]:
    """Lines about every reader that had hundreds of cases, and about all of them together.

    >>> print(*summary([{"reader": "cards", "told": 9}, {"reader": "labels", "told": 299, "wrong": 1}]), sep=chr(10))
    labels: 300 cases: 299 told, 1 wrong
    all: 309 cases: 308 told, 0 read rightly, 0 tracebacks, 1 wrong, 0 slow, 0 ill told
    """
    total = Counter(dict.fromkeys((*GOOD, *BAD), 0))
    lines = []
    for found in properties:
        count = Counter({name: number for name, number in found.items() if name != "reader"})
        total.update(count)
        if count.total() >= SLOW:
            lines.append(_line(found["reader"], +count))
    return [*lines, _line("all", total)]


def _line(name: str, count: Counter[str]) -> str:
    return f"{name}: {count.total():,} cases: " + ", ".join(f"{number:,} {what}" for what, number in count.items())


def photo(path: Path, seed: int = 0, format: str | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (SIZE[1], SIZE[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path, format)
    return path


def inside(path: Path, root: Path) -> None:
    assert path.resolve().is_relative_to(root.resolve()), path
