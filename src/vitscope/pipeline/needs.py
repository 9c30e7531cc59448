"""What a study needs: every dataset and every weights file, here or not, and how to get what is not.

What is missing is stood in for, a network by its untrained twin and an official dataset by one of its size, so that the
cost of the whole study can be told before anything is fetched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vitscope.core.errors import VitscopeError
from vitscope.data.dataset import Dataset
from vitscope.data.imagined import imagine
from vitscope.data.official import official
from vitscope.models.spec import Spec, resolve
from vitscope.pipeline.study import DataEntry, MaskEntry, ModelEntry, Study


@dataclass(frozen=True)
class Need:
    """words: where it is; or what is wrong and how to get it."""

    name: str
    kind: str  # of a dataset; "weights"
    here: bool
    words: str


@dataclass(frozen=True)
class Needs:
    """specs and datasets: what is here, and what stands in for the rest."""

    rows: tuple[Need, ...]
    specs: tuple[Spec, ...]
    datasets: tuple[Dataset, ...]

    @property
    def missing(self) -> Sequence[Need]:
        return [need for need in self.rows if not need.here]

    def require(self) -> None:
        """An error that names everything that is missing, and the first remedy."""
        if not (missing := self.missing):
            return
        if len(missing) == 1:
            raise VitscopeError(missing[0].words)
        names = ", ".join(need.name for need in missing)
        raise VitscopeError(
            f"{len(missing)} things are missing: {names}; --dry-run says how to get each, the first: {missing[0].words}"
        )


def needs_of(study: Study, *, download: bool = False, check: bool = False) -> Needs:
    """Look for everything; nothing is raised for what is missing. check: open weights too, names and shapes."""
    rows: list[Need] = []
    datasets: list[Dataset] = []
    for kind, data in study.data.entries():
        try:
            datasets.append(data.open(kind, study.seed, study.root))
            rows.append(Need(data.label, kind, True, _where(data, study.root)))
        except VitscopeError as error:
            rows.append(Need(data.label, kind, False, str(error)))
            datasets += _stand_in_data(data)
    specs: list[Spec] = []
    for model in study.models:
        try:
            spec = model.resolve(study.seed, study.root, download=download)
            if check:
                spec.check()
            specs.append(spec)
            rows.append(Need(spec.title, "weights", True, str(spec.weights or f"made from seed {spec.seed}")))
        except VitscopeError as error:
            rows.append(Need(model.title or model.name, "weights", False, str(error)))
            specs += _stand_in_model(model, study.seed)
    return Needs(tuple(rows), tuple(study.with_baselines(specs)), tuple(datasets))


def _where(entry: DataEntry, root: Path | None) -> str:
    return str(entry.path or official(entry.name or "").find(root))


def _stand_in_data(entry: DataEntry) -> list[Dataset]:
    """An official dataset of its published size; nothing for data that only its owner knows."""
    if entry.name is None:
        return []
    per = entry.per_supercategory if isinstance(entry, MaskEntry) else None
    found = imagine(official(entry.name), entry.limit, per)
    found = found.titled(entry.title) if entry.title else found
    return [found.for_analyses(entry.analyses) if entry.analyses else found]


def _stand_in_model(entry: ModelEntry, seed: int) -> list[Spec]:
    """The untrained network of the same shape; nothing for a name that nobody knows."""
    try:
        twin = resolve(f"random:{entry.arch or entry.name}", size=entry.size, seed=seed)
    except VitscopeError:
        return []
    return [replace(twin, title=entry.title or entry.name)]
