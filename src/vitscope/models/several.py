"""Several models side by side: titles that tell them apart, and an untrained network beside each shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from vitscope.core.errors import VitscopeError
from vitscope.models.spec import BASELINES, Spec


def untrained_twins(specs: Sequence[Spec], seed: int) -> Iterator[Spec]:
    """For every shape of a taught network of which no untrained one is there: that one.

    It is called after the network whose twin it is, or after their architecture where several share it.
    """
    there = [spec for spec in specs if spec.teaching == "none" and not spec.baseline.startswith("noise")]
    taught = [spec for spec in specs if spec.teaching != "none"]
    for spec in taught:
        stem = spec.architecture.partition(".")[0]
        twin = Spec(
            f"random:{spec.name}" + (f"#{seed}" if seed else ""),
            stem,
            spec.preprocessing,
            f"{BASELINES['random']} {stem}",
            "none",
            options=spec.options,
            size=spec.size,
            baseline="random",
            seed=seed,
        )
        if not any(other.shape == twin.shape for other in there):
            titles = {other.title for other in (*specs, *there)}
            alone = sum(other.shape == twin.shape for other in taught) == 1
            own = f"{BASELINES['random']} {spec.title}"
            twin = replace(twin, title=own) if alone or twin.title in titles else twin
            there.append(twin)
            yield twin


def distinct(specs: list[Spec]) -> Iterator[Spec]:
    """The same specs with titles that tell them apart; the same model given twice counts once."""
    seen: dict[str, str] = {}
    for spec in specs:
        if spec.title in seen:
            if seen[spec.title] == spec.digest:
                continue
            raise VitscopeError(f"two different models are called '{spec.title}': give one a title of its own")
        seen[spec.title] = spec.digest
        yield spec
