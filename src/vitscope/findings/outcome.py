"""What a finished (or half-finished) study hands to the report: results, findings, coverage, warnings."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from vitscope.core.results import Coverage, Results


class Verdict(str, Enum):
    HOLDS = "holds"
    FAILS = "does not hold"
    UNTESTABLE = "not testable here"


@dataclass(frozen=True)
class Evidence:
    """One number a verdict rests on, with its interval where there is one."""

    what: str  # such as "DINO: best-head IoU at layer 11"
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Finding:
    """One of the paper's findings, checked on this study's results."""

    key: str  # "F1"
    claim: str  # the finding in one sentence
    verdict: Verdict
    reason: str  # why, in one or two sentences with the decisive numbers
    evidence: tuple[Evidence, ...] = ()
    rule: str = ""  # the threshold, in words
    figure: str = ""  # the measure that the report's chart for it shows, such as "saliency_best_head"
    other_protocol: Verdict | None = None  # the verdict under `paper`, where it can be had


@dataclass
class StudyOutcome:
    """Everything the report shows: results and the findings that they support."""

    results: Results
    findings: list[Finding] = field(default_factory=list)

    @property
    def title(self) -> str:
        return self.results.title or "Vision Transformers, examined"

    @property
    def coverage(self) -> list[Coverage]:
        return self.results.coverage

    @property
    def settings(self) -> dict[str, Any]:
        return self.results.settings
