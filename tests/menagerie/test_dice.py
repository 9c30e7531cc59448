"""Random numbers by name: numpy's own generator as the oracle for the words, arithmetic for the rest."""

from hashlib import blake2b

import numpy as np

from vitscope.menagerie.dice import Dice


def test_throws_are_the_raw_words_of_philox_under_the_hashed_name() -> None:
    key = int.from_bytes(blake2b(b"world\x1f3\x1ftrain", digest_size=16).digest(), "little")
    oracle = np.random.Generator(np.random.Philox(key=key)).random(64)
    dice = Dice("world", 3, "train")
    thrown = [dice.uniform(0.0, 1.0) for _ in range(64)]
    assert thrown == oracle.tolist()[::-1]  # words are dealt from the end of each block


def test_names_are_not_confused_by_where_they_are_split() -> None:
    first = [Dice(*path).uniform(0, 1) for path in (("a", "bc"), ("ab", "c"), ("abc",), ("a", 1), ("a", 11))]
    assert len(set(first)) == len(first)


def test_integers_cover_their_range_evenly() -> None:
    dice = Dice("even")
    counts = np.bincount([dice.below(7) for _ in range(7000)], minlength=7)
    assert len(counts) == 7
    assert abs(counts - 1000).max() < 5 * (1000 * 6 / 7) ** 0.5  # five standard deviations of the binomial


def test_chances_are_kept() -> None:
    dice = Dice("chance")
    assert not any(dice.chance(0.0) for _ in range(100))
    assert all(dice.chance(1.0) for _ in range(100))
    share = np.mean([dice.chance(0.25) for _ in range(4000)])
    assert abs(share - 0.25) < 5 * (0.25 * 0.75 / 4000) ** 0.5


def test_signs_fill_the_interval() -> None:
    thrown = np.array(Dice("signs").signs(4000))
    assert -1.0 <= thrown.min() < -0.99
    assert 0.99 < thrown.max() < 1.0
    assert abs(thrown.mean()) < 5 * (1 / 3 / 4000) ** 0.5
