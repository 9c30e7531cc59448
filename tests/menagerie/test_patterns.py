"""Coat patterns: how much they cover, and that they repeat."""

from math import pi

import numpy as np
import pytest

from vitscope.menagerie.colours import PATTERNS
from vitscope.menagerie.patterns import PERIOD, marked

V, U = np.mgrid[0 : 4 * PERIOD : 8, 0 : 4 * PERIOD : 8].astype(np.int32)


@pytest.mark.parametrize(
    ("pattern", "share"),
    [("striped", 440 / 1024), ("banded", 440 / 1024), ("spotted", pi * 310**2 / 1024**2)],
)
def test_the_marked_share_is_the_area_of_the_figure(pattern: str, share: float) -> None:
    assert marked(pattern, U, V).mean() == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("pattern", [p for p in PATTERNS if p != "plain"])
def test_patterns_repeat_and_are_neither_empty_nor_full(pattern: str) -> None:
    here, there = marked(pattern, U, V), marked(pattern, U + 4 * PERIOD, V - 4 * PERIOD)
    assert 0.15 < here.mean() < 0.6
    assert (here == there).all()


def test_stripes_run_across_and_bands_along_the_body() -> None:
    across, along = marked("striped", U, V), marked("banded", U, V)
    changes = [np.mean(m[:, 1:] != m[:, :-1]) for m in (across, along)]
    assert changes[0] > 2 * changes[1]


def test_an_unknown_pattern_is_refused() -> None:
    with pytest.raises(ValueError, match="tartan"):
        marked("tartan", U, V)
