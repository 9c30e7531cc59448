"""The paper's findings, and some since, checked on a study's results: each holds, does not, or is not testable here.

One file per finding (or per pair that shares numbers); `thresholds.py` is the one table of what counts as much.
"""

from __future__ import annotations

from collections.abc import Sequence

from vitscope.core.results import Results
from vitscope.findings.claim import Claim, judge
from vitscope.findings.depth_blocks import F11
from vitscope.findings.foreground import F4
from vitscope.findings.global_tasks import F8
from vitscope.findings.late_patterns import F1
from vitscope.findings.likeness import F5, F6
from vitscope.findings.local_and_global import F3
from vitscope.findings.local_tasks import F9
from vitscope.findings.no_single_best import F10
from vitscope.findings.offset_heads import F2
from vitscope.findings.outcome import Finding, Verdict
from vitscope.findings.purity import F7
from vitscope.findings.since import N1, N2, N3, N4
from vitscope.findings.tables import PAPER, Study
from vitscope.findings.thresholds import THRESHOLDS, Thresholds

CLAIMS: tuple[Claim, ...] = (F1, F2, F3, F4, F5, F6, F7, F8, F9, F10, F11, N1, N2, N3, N4)


def evaluate_findings(
    results: Results, claims: Sequence[Claim] = CLAIMS, thresholds: Thresholds = THRESHOLDS
) -> list[Finding]:
    """Judge every claim under `corrected`, and under `paper` where that protocol has numbers of its own."""
    return [_evaluate(results, claim, thresholds) for claim in claims]


def _evaluate(results: Results, claim: Claim, thresholds: Thresholds) -> Finding:
    answer, published = judge(claim.parts(Study(results), thresholds)), Study(results, PAPER)
    other: Verdict | None = None
    if published.has(*claim.measures):
        verdict = judge(claim.parts(published, thresholds)).verdict
        other = None if verdict is Verdict.UNTESTABLE else verdict
    only = other is not None and answer.verdict is Verdict.UNTESTABLE
    return Finding(
        key=claim.key,
        claim=claim.text,
        verdict=answer.verdict,
        reason=answer.reason + (" Under the paper's protocol there are numbers." if only else ""),
        evidence=answer.evidence,
        rule=claim.rule(thresholds),
        figure=claim.figure,
        other_protocol=other,
    )
