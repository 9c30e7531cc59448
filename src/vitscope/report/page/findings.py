"""The findings as cards: verdict, evidence, and where the paper's protocol says otherwise."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from vitscope.findings.outcome import Evidence, Finding, Verdict
from vitscope.report.page.words import count, number

MARKS = {Verdict.HOLDS: "✓", Verdict.FAILS: "✕", Verdict.UNTESTABLE: "–"}
CLASSES = {Verdict.HOLDS: "holds", Verdict.FAILS: "fails", Verdict.UNTESTABLE: "untestable"}


PLAIN = {  # the findings for people who have not read the paper
    "F1": "Networks taught with labels or captions end up looking at the same few spots, whatever the picture; "
    "contrastive ones at the object; those taught by filling in look in many ways.",
    "F2": "Every network has heads that always look at one particular neighbour, such as the patch above.",
    "F3": "Whether a network looks at details or at the whole picture first depends on how it was taught.",
    "F4": "All networks find the object early; those taught with labels or captions lose sight of it again.",
    "F5": "Networks that were taught in similar ways sum pictures up in similar ways.",
    "F6": "Filling in (MAE) and contrast lead to summaries that are more alike than one would expect.",
    "F7": "From layer to layer, pictures of one class gather; only in BEiT do the last layers undo it.",
    "F8": "To tell what a picture shows, take a network taught with labels or captions, at its last layers.",
    "F9": "To follow or match parts of a picture, take a layer before the last; filling in teaches this as well.",
    "F10": "No network and no layer is best at everything.",
    "F11": "Networks work in two stages; in those taught by filling in, the end turns back to the beginning.",
    "N1": "In networks taught with labels or captions, late heads look at one token that everybody looks at.",
    "N2": "Networks taught by filling in remember longest where in the picture a patch is.",
    "N3": "In late layers of contrastive networks all tokens look at the same places, whoever looks.",
    "N4": "In late layers of networks taught by filling in, the summary token (CLS) looks mostly at itself.",
}
FAMILIES = {
    "explicit": "labels or captions", "contrastive": "contrast or self-distillation", "reconstruction": "filling in",
}  # fmt: skip


@dataclass(frozen=True)
class FindingCard:
    key: str
    plain: str
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
            plain=PLAIN.get(finding.key, finding.claim),
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


def beyond(kinds: Collection[str]) -> str:
    """What a study with models of these kinds of teaching lacks to test findings about teachings; "" if nothing.

    >>> beyond({"explicit", "reconstruction", "none"})
    ''
    """
    have = [words for kind, words in FAMILIES.items() if kind in kinds]
    if len(have) > 1:
        return ""
    lack = [words for words in FAMILIES.values() if words not in have]
    mine = f"taught by {have[0]} only" if have else "of none of the ways of teaching that it compares"
    return (
        f"The paper's findings compare ways of teaching, and this study has models {mine}: with one taught by "
        f"{' or '.join(lack)} beside them they could be tested."
    )


def _tally(cards: Sequence[FindingCard], whose: str) -> str:
    tally = {css: sum(card.css == css for card in cards) for css in CLASSES.values()}
    hold, fail, rest = tally["holds"], tally["fails"], tally["untestable"]
    if rest == len(cards):
        none = f"The only finding {whose} cannot" if rest == 1 else f"None of {rest} findings {whose} can"
        return f"{none} be tested with what this study has."
    text = f"Of {count(len(cards), 'finding')} {whose}, {hold} {'holds' if hold == 1 else 'hold'} here"
    if not rest:
        return f"{text} and {fail} {'does' if fail == 1 else 'do'} not."
    return f"{text}, {fail} {'does' if fail == 1 else 'do'} not, and {rest} cannot be tested with what this study has."


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
