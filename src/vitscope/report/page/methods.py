"""Where the numbers came from: coverage, skipped pictures, digests, versions, settings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vitscope.report.page.words import listing
from vitscope.study.outcome import Coverage, StudyOutcome

SHORT = 12  # characters of a digest that are shown; the rest is in its title


@dataclass(frozen=True)
class Job:
    """One line of the provenance table."""

    model: str
    measure: str
    samples: str
    count: str
    size: str
    numbers: str  # dtype and device
    digests: tuple[tuple[str, str], ...]  # (what, digest)


def jobs(provenance: Sequence[dict[str, Any]]) -> list[Job]:
    """Provenance as `vitscope.provenance` writes it; whatever is missing stays empty."""
    return [
        Job(
            model=str(entry.get("title") or entry.get("model", "")),
            measure=str(entry.get("measure", "")),
            samples=str(entry.get("samples_origin", "")),
            count=str(entry.get("seen", entry.get("count", ""))),
            size=" × ".join(str(side) for side in entry.get("input_size") or ()),
            numbers=" on ".join(str(entry[key]) for key in ("dtype", "device") if entry.get(key)),
            digests=tuple((key, str(entry[key])) for key in _DIGESTS if entry.get(key)),
        )
        for entry in provenance
    ]


_DIGESTS = ("digest", "weights", "preprocessing", "samples")


def versions(provenance: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Every package with the version, or versions, that computed."""
    found: dict[str, list[str]] = {}
    for entry in provenance:
        for package, version in (entry.get("versions") or {}).items():
            if version not in found.setdefault(package, []):
                found[package].append(version)
    return [(package, ", ".join(several)) for package, several in found.items()]


def settings_text(settings: dict[str, Any]) -> str:
    return json.dumps(settings, indent=2, default=str, ensure_ascii=False) if settings else ""


def skipped_pictures(outcome: StudyOutcome) -> list[tuple[str, str]]:
    """Every picture that was left out, with the reason, once."""
    skipped = dict(outcome.results.skipped)
    for coverage in outcome.coverage:
        skipped |= coverage.skipped
    return sorted(skipped.items())


def incomplete(coverage: Sequence[Coverage]) -> list[Coverage]:
    return [one for one in coverage if not one.complete]


@dataclass(frozen=True)
class CoverageTable:
    """Models down, roles across; a cell is (text, complete), or None where nothing was planned."""

    roles: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, bool] | None, ...]], ...]


def coverage_table(coverage: Sequence[Coverage]) -> CoverageTable:
    roles = tuple(dict.fromkeys(one.role for one in coverage))
    cells: dict[str, dict[str, list[Coverage]]] = {}
    for one in coverage:
        cells.setdefault(one.model, {}).setdefault(one.role, []).append(one)
    rows = ((model, tuple(_cell(found.get(role, [])) for role in roles)) for model, found in cells.items())
    return CoverageTable(roles, tuple(rows))


def _cell(jobs_of_role: Sequence[Coverage]) -> tuple[str, bool] | None:
    if not jobs_of_role:
        return None
    seen, planned = sum(one.seen for one in jobs_of_role), sum(one.planned for one in jobs_of_role)
    complete = all(one.complete for one in jobs_of_role)
    return (f"{seen:,}" if complete else f"{seen:,} of {planned:,}"), complete


def shortfall(coverage: Sequence[Coverage], roles: Sequence[str]) -> str:
    """What is missing below a chart that rests on these roles; "" if nothing is."""
    short = [
        f"{one.model} {one.seen:,} of {one.planned:,} ({one.role})" for one in incomplete(coverage) if one.role in roles
    ]
    return f"Incomplete: {listing(short)}." if short else ""
