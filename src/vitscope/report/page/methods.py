"""Where the numbers came from: coverage, skipped images, digests, versions, settings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vitscope.core.results import Coverage
from vitscope.pipeline.advice import listing


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
    """Provenance as `vitscope.core.provenance` writes it; whatever is missing stays empty."""
    return [
        Job(
            model=str(entry.get("title") or entry.get("model", "")),
            measure=str(entry.get("measure", "")),
            samples=str(entry.get("dataset", "")),
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


def incomplete(coverage: Sequence[Coverage]) -> list[Coverage]:
    return [one for one in coverage if not one.complete]


@dataclass(frozen=True)
class CoverageTable:
    """Models down, datasets across; a cell is (text, complete), or None where nothing was planned."""

    datasets: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, bool] | None, ...]], ...]


def coverage_table(coverage: Sequence[Coverage]) -> CoverageTable:
    columns = list(dict.fromkeys((one.dataset, one.kind) for one in coverage))
    titles = [title for title, _ in columns]
    names = (title if titles.count(title) == 1 else f"{title}, {kind}" for title, kind in columns)
    cells: dict[str, dict[tuple[str, str], Coverage]] = {}
    for one in coverage:
        cells.setdefault(one.model, {})[one.dataset, one.kind] = one
    rows = ((model, tuple(_cell(found.get(column)) for column in columns)) for model, found in cells.items())
    return CoverageTable(tuple(names), tuple(rows))


def _cell(one: Coverage | None) -> tuple[str, bool] | None:
    if one is None:
        return None
    return (f"{one.seen:,}" if one.complete else f"{one.seen:,} of {one.planned:,}"), one.complete


def shortfall(coverage: Sequence[Coverage], roles: Sequence[str]) -> str:
    """What is missing below a chart that rests on these roles; "" if nothing is."""
    short = [
        f"{one.model} {one.seen:,} of {one.planned:,} ({one.dataset})"
        for one in incomplete(coverage)
        if one.kind in roles
    ]
    return f"Incomplete: {listing(short)}." if short else ""
