"""Statistics that stream: small states that update batch by batch, merge in any order, and give a result.

A state is made of two kinds of things, so that merging is the same for every statistic:
- *sums*: float64 tensors that add up;
- *rows*: one entry per picture, keyed by the picture's index in the sample list, so that order never matters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from vitscope.data.batches import Batch

Self = TypeVar("Self", bound="Statistic")


class Statistic(ABC):
    """An observer of traces with a mergeable state. Subclasses fill sums and rows between `begin` and `end`."""

    name: ClassVar[str]
    wants: ClassVar[frozenset[str]]

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._rows: dict[str, list[Tensor]] = {}
        self._indices: list[Tensor] = []
        self._batch: Batch | None = None

    # -- streaming ---------------------------------------------------------------------------------------------

    def begin(self, batch: Batch) -> None:
        """A batch is about to be traced."""
        self._batch = batch

    def end(self) -> None:
        """The batch has been traced completely: from here on it counts."""
        assert self._batch is not None, "end() without begin()"
        self._indices.append(self._batch.indices.cpu())
        self._batch = None

    @property
    def batch(self) -> Batch:
        assert self._batch is not None, "a statistic must be told of a batch before it sees its trace"
        return self._batch

    def attention(self, layer: int, probs: Tensor) -> None: ...

    def tokens(self, layer: int, x: Tensor) -> None: ...

    def norms(self, layer: int, part: str, x: Tensor) -> None: ...

    def branches(self, layer: int, part: str, skip: Tensor, branch: Tensor) -> None: ...

    # -- state -------------------------------------------------------------------------------------------------

    def add(self, name: str, value: Tensor) -> None:
        """Add to a sum, in float64 on the CPU."""
        value = value.detach().to("cpu", torch.float64)
        if name in self._sums:
            self._sums[name] += value
        else:
            self._sums[name] = value.clone()

    def put(self, name: str, value: Tensor) -> None:
        """One row per picture of the current batch: value (B, ...)."""
        self._rows.setdefault(name, []).append(value.detach().cpu())

    def sum_of(self, name: str) -> Tensor:
        return self._sums[name]

    def rows_of(self, name: str) -> Tensor:
        """(n, ...) in the order of the sample list."""
        return torch.cat(self._rows[name])[self.indices.argsort()]

    @property
    def indices(self) -> Tensor:
        """Indices of the pictures seen, in the order they were seen."""
        return torch.cat(self._indices) if self._indices else torch.empty(0, dtype=torch.int64)

    @property
    def count(self) -> int:
        """How many pictures were seen."""
        return sum(len(part) for part in self._indices)

    def state(self) -> dict[str, Tensor]:
        """Everything needed to go on: named tensors."""
        return {
            "indices": self.indices,
            **{f"sum/{name}": value for name, value in self._sums.items()},
            **{f"row/{name}": torch.cat(values) for name, values in self._rows.items()},
        }

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self._indices = [state["indices"]]
        self._sums = {key[4:]: value.clone() for key, value in state.items() if key.startswith("sum/")}
        self._rows = {key[4:]: [value] for key, value in state.items() if key.startswith("row/")}

    def merge(self: Self, other: Self) -> None:
        """Take in what another statistic of the same kind saw; pictures seen by both are an error."""
        twice = set(self.indices.tolist()) & set(other.indices.tolist())
        if twice:
            raise ValueError(f"{self.name}: {len(twice)} pictures were counted in both states, such as {min(twice)}")
        for name, value in other._sums.items():
            self.add(name, value)
        for name, values in other._rows.items():
            self._rows.setdefault(name, []).extend(values)
        self._indices.extend(other._indices)

    def save(self, path: Path) -> None:
        save_file({key: value.contiguous() for key, value in self.state().items()}, path)

    def load(self, path: Path) -> None:
        self.load_state(load_file(path))

    @abstractmethod
    def result(self) -> Any:
        """Named, labelled arrays."""
