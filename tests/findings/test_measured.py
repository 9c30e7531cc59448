"""When a difference counts, and how verdicts are joined."""

from __future__ import annotations

import math
from typing import Any

import pytest

from vitscope.findings.claim import Part, followed, judge, missing
from vitscope.findings.measured import Measured, mean_of
from vitscope.findings.outcome import Verdict
from vitscope.findings.tables import Model
from vitscope.findings.thresholds import Thresholds, threshold_table


def test_the_interval_of_a_difference_adds_reaches_like_independent_errors() -> None:
    # 0.9 (-0.03) minus 0.6 (+0.04): 0.3 - sqrt(0.0009 + 0.0016) = 0.25; upwards 0.3 + sqrt(0.0025 + 0.0144) = 0.43
    difference = Measured(0.9, 0.87, 0.95) - Measured(0.6, 0.48, 0.64)
    assert (difference.value, difference.low, difference.high) == pytest.approx((0.3, 0.25, 0.43))


@pytest.mark.parametrize(
    ("one", "other", "margin", "clear"),
    [
        (Measured(0.6, 0.55, 0.65), Measured(0.5, 0.45, 0.55), 0.0, True),  # 0.1 > sqrt(2) * 0.05
        (Measured(0.6, 0.52, 0.68), Measured(0.5, 0.42, 0.58), 0.0, False),  # 0.1 < sqrt(2) * 0.08
        (Measured(0.6, 0.59, 0.61), Measured(0.5, 0.49, 0.51), 0.2, False),  # clear, but too little
        (Measured.of(0.6), Measured.of(0.5), 0.05, True),  # no intervals: the margin decides
        (Measured.of(0.5), Measured.of(0.5), 0.0, False),  # equal is not above
    ],
)
def test_a_difference_counts_when_it_is_clear_and_large_enough(
    one: Any, other: Any, margin: float, clear: bool
) -> None:
    assert one.clearly_above(other, margin) is clear


def test_a_missing_bound_means_no_interval() -> None:
    number = Measured.of(0.4, math.nan, math.nan)
    assert not number.has_interval
    assert number.as_evidence("x").low is None
    mean = mean_of([Measured.of(0.2), Measured(0.4, 0.3, 0.6)])
    assert (mean.value, mean.low, mean.high) == pytest.approx((0.3, 0.25, 0.4))


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ([Part(True, "a"), Part(True, "b")], Verdict.HOLDS),
        ([Part(True, "a"), missing("b", core=False)], Verdict.HOLDS),
        ([Part(True, "a"), missing("b")], Verdict.UNTESTABLE),
        ([Part(False, "a"), missing("b")], Verdict.FAILS),  # what is refuted stays refuted
        ([missing("a", core=False)], Verdict.UNTESTABLE),
    ],
)
def test_parts_make_a_verdict(parts: Any, verdict: Any) -> None:
    assert judge(parts).verdict is verdict


def test_the_reason_says_what_is_wrong_right_and_missing() -> None:
    answer = judge([Part(True, "fish swim"), Part(False, "cats do not fly"), missing("no dog", core=False)])
    assert answer.reason == "Cats do not fly. What does hold: fish swim. Not tested: no dog."


def test_every_teaching_must_follow_in_two_thirds_of_its_models() -> None:
    def models(*answers: tuple[str, bool]) -> list[tuple[Model, bool]]:
        return [(Model(f"{key}{i}", key, 12), behaves) for i, (key, behaves) in enumerate(answers)]

    assert followed(models(("fs", True), ("fs", True), ("fs", False)), 2 / 3)
    assert not followed(models(("fs", True), ("fs", False)), 2 / 3)
    # many sizes of one teaching do not outvote the other teaching
    assert not followed(models(("fs", True), ("fs", True), ("fs", True), ("clip", False)), 2 / 3)


def test_every_threshold_has_a_reason() -> None:
    table = threshold_table()
    assert {name for name, _, _ in table} == set(Thresholds.__dataclass_fields__)
    assert all(len(reason) > 20 for _, _, reason in table)
