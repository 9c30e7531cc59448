"""A claim and how it is judged: parts that hold, do not hold or cannot be tested, joined into one verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from vitscope.findings.outcome import Evidence, Verdict
from vitscope.findings.tables import Model, Study
from vitscope.findings.thresholds import Thresholds


@dataclass(frozen=True)
class Part:
    """One statement of a claim.

    holds: None if it cannot be tested here; says: what was found, or what is missing, as a clause with the decisive
    numbers. A claim is not testable if a core part is not; other parts only add to it where they can be tested.
    """

    holds: bool | None
    says: str
    evidence: tuple[Evidence, ...] = ()
    core: bool = True


@dataclass(frozen=True)
class Answer:
    """What a study says to a claim under one protocol."""

    verdict: Verdict
    reason: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class Claim:
    """One finding of the paper. measures: those whose numbers depend on the protocol."""

    key: str
    text: str
    rule: Callable[[Thresholds], str]
    figure: str
    measures: tuple[str, ...]
    parts: Callable[[Study, Thresholds], Iterable[Part]]


def missing(what: str, *, core: bool = True) -> Part:
    return Part(None, what, core=core)


def judge(parts: Iterable[Part]) -> Answer:
    """One part that does not hold refutes the claim; a core part that cannot be tested leaves it open."""
    parts = list(parts)
    wrong = [part.says for part in parts if part.holds is False]
    right = [part.says for part in parts if part.holds]
    absent = [part.says for part in parts if part.holds is None]
    if wrong:
        verdict, reason = Verdict.FAILS, _sentences("", wrong, "What does hold: ", right, "Not tested: ", absent)
    elif any(part.holds is None and part.core for part in parts) or not right:
        verdict, reason = Verdict.UNTESTABLE, _sentences("", absent, "What can be said: ", right)
    else:
        verdict, reason = Verdict.HOLDS, _sentences("", right, "Not tested: ", absent)
    return Answer(verdict, reason, tuple(item for part in parts for item in part.evidence))


def _sentences(*pieces: str | list[str]) -> str:
    """Alternating openings and clauses -> sentences; what has no clauses is left out."""
    made = []
    for opening, clauses in zip(pieces[::2], pieces[1::2], strict=True):
        if clauses:
            text = f"{opening}{'; '.join(clauses)}."
            first = text.split(" ", 1)[0]
            made.append(text[0].upper() + text[1:] if first.isalpha() and first.islower() else text)  # not k-NN
    return " ".join(made)


def followed(behaved: Iterable[tuple[Model, bool]], share: float) -> bool:
    """Whether every teaching among these models behaves as claimed in at least `share` of its models."""
    by_teaching: dict[str, list[bool]] = {}
    for model, behaves in behaved:
        by_teaching.setdefault(model.teaching, []).append(behaves)
    return all(sum(answers) >= share * len(answers) - 1e-9 for answers in by_teaching.values())
