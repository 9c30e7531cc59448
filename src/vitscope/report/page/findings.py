"""The findings as cards: verdict, evidence, and where the paper's protocol says otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vitscope.findings.outcome import Evidence, Finding, Verdict
from vitscope.report.page.words import count, number

MARKS = {Verdict.HOLDS: "✓", Verdict.FAILS: "✕", Verdict.UNTESTABLE: "–"}
CLASSES = {Verdict.HOLDS: "holds", Verdict.FAILS: "fails", Verdict.UNTESTABLE: "untestable"}


@dataclass(frozen=True)
class FindingCard:
    key: str
    claim: str
    verdict: str
    css: str
    mark: str
    reason: str
    rule: str
    evidence: tuple[tuple[str, str, str], ...]  # what, value, interval
    chart: str  # id of the chart it rests on; "" if the page has none
    measure: str
    changes: str  # the verdict under the paper's protocol, where it differs
    same: bool  # the paper's protocol gives the same verdict


def finding_cards(findings: Sequence[Finding], charts: Mapping[str, str]) -> list[FindingCard]:
    """charts: measure -> id of the chart that shows it."""
    return [
        FindingCard(
            key=finding.key,
            claim=finding.claim,
            verdict=finding.verdict.value,
            css=CLASSES[finding.verdict],
            mark=MARKS[finding.verdict],
            reason=finding.reason,
            rule=finding.rule,
            evidence=tuple((one.what, number(one.value), _interval(one)) for one in finding.evidence),
            chart=charts.get(finding.figure, ""),
            measure=finding.figure,
            changes=finding.other_protocol.value if finding.other_protocol not in (None, finding.verdict) else "",
            same=finding.other_protocol == finding.verdict,
        )
        for finding in findings
    ]


def _interval(evidence: Evidence) -> str:
    if evidence.low is None or evidence.high is None:
        return ""
    return f"{number(evidence.low)}–{number(evidence.high)}"


def _tally(cards: Sequence[FindingCard], whose: str) -> str:
    tally = {css: sum(card.css == css for card in cards) for css in CLASSES.values()}
    hold, fail, rest = tally["holds"], tally["fails"], tally["untestable"]
    text = f"Of {count(len(cards), 'finding')} {whose}, {hold} {'holds' if hold == 1 else 'hold'} here, {fail} "
    return text + f"{'does' if fail == 1 else 'do'} not, and {rest} cannot be tested with what this study has."


def findings_sentence(cards: Sequence[FindingCard]) -> str:
    """
    >>> findings_sentence([])
    'No finding was checked in this study.'
    """
    if not cards:
        return "No finding was checked in this study."
    newer = [card for card in cards if card.key.startswith("N")]
    groups = {"of the paper": [card for card in cards if card not in newer], "since then": newer}
    text = " ".join(_tally(some, whose) for whose, some in groups.items() if some)
    changed = [card.key for card in cards if card.changes]
    if changed:
        text += f" Under the paper's own protocol the verdict changes for {', '.join(changed)}."
    return text
