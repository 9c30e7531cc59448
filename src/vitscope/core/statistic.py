"""Statistics that stream: small states that update batch by batch, merge in any order, and give a result.

A state is made of two kinds of things, so that merging is the same for every statistic:
- *sums*: float64 tensors that add up;
- *rows*: one entry per image, keyed by the image's index in the sample list, so that order never matters.
Both stay on the device that made them until the state is asked for, once per shard.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import torch
from torch import Tensor

from vitscope.core.device import accumulation_dtype
from vitscope.core.observer import Observer

if TYPE_CHECKING:
    from vitscope.data.batches import Batch
    from vitscope.models.shape import ModelShape

Self = TypeVar("Self", bound="Statistic")
Rows = Tensor | Callable[[], Tensor]  # of one shard: there, or read when they are asked for


def compensated(total: Tensor, lost: Tensor | None, value: Tensor) -> tuple[Tensor, Tensor]:
    """A sum and what it could not take up, after one more value (Neumaier, 1974): all float32, and total + lost, added
    up in float64 in the end, has nearly twice its digits."""
    found = total + value
    larger, smaller = torch.where(total.abs() >= value.abs(), torch.stack([total, value]), torch.stack([value, total]))
    rest = larger - found + smaller
    return found, rest if lost is None else lost + rest


class Positions:
    """Positions of a list that were seen. Adding some, and asking for some, costs as much as these are, however many
    were seen before: otherwise merging would be quadratic in the number of shards."""

    def __init__(self, numbers: Tensor | None = None) -> None:
        self._parts: list[Tensor] = []
        self._marks = torch.zeros(0, dtype=torch.bool)  # one per position, with room to grow
        self._count = 0
        if numbers is not None:
            self.add(numbers)

    def __len__(self) -> int:
        return self._count

    @property
    def numbers(self) -> Tensor:
        """All of them, in the order in which they were added; a copy."""
        return torch.cat(self._parts) if self._parts else torch.empty(0, dtype=torch.int64)

    def add(self, numbers: Tensor) -> None:
        self._parts.append(numbers)
        self._count += len(numbers)
        if len(numbers) and (needed := int(numbers.max()) + 1) > len(self._marks):
            room = torch.zeros(max(needed, 2 * len(self._marks)), dtype=torch.bool)
            room[: len(self._marks)] = self._marks
            self._marks = room
        self._marks[numbers] = True

    def holds(self, numbers: Tensor) -> Tensor:
        """Which of some positions were seen: bool, of their shape."""
        known = numbers < len(self._marks)
        return self._marks[numbers.where(known, 0)] & known if len(self._marks) else torch.zeros_like(known)


class Statistic(Observer, ABC):
    """An observer of traces with a mergeable state. Subclasses fill sums and rows between `begin` and `end`."""

    name: ClassVar[str]
    needs_annotations: ClassVar[bool] = False

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._lost: dict[str, Tensor] = {}  # what a sum in float32 could not take up
        self._rows: dict[str, list[Rows]] = {}
        self.seen = Positions()
        self._batch: Batch | None = None

    @classmethod
    def of(cls: type[Self], shape: ModelShape, **settings: Any) -> Self:
        """An empty one for models of this shape. settings: whatever changes its numbers."""
        return cls(shape.layout, shape.depth, **settings)  # type: ignore[call-arg]

    # -- streaming ---------------------------------------------------------------------------------------------

    def begin(self, batch: Batch) -> None:
        """A batch is about to be traced."""
        self._batch = batch

    def end(self) -> None:
        """The batch has been traced completely: from here on it counts."""
        assert self._batch is not None, "end() without begin()"
        self.seen.add(self._batch.indices.cpu())
        self._batch = None

    @property
    def batch(self) -> Batch:
        assert self._batch is not None, "a statistic must be told of a batch before it sees its trace"
        return self._batch

    # -- state -------------------------------------------------------------------------------------------------

    def add(self, name: str, value: Tensor) -> None:
        """Add to a sum: where the value is, in float64, or in compensated float32 on a device without it."""
        value = value.detach().to(accumulation_dtype(value.device))
        if name not in self._sums:
            self._sums[name] = value.clone()
        elif value.dtype == torch.float64:
            self._sums[name] += value.to(self._sums[name].device)
        else:
            self._sums[name], self._lost[name] = compensated(self._sums[name], self._lost.get(name), value)

    def put(self, name: str, value: Tensor) -> None:
        """One row per image of the current batch: value (B, ...)."""
        self._rows.setdefault(name, []).append(value.detach())

    def sum_of(self, name: str) -> Tensor:
        """float64 on the CPU."""
        total = self._sums[name].to("cpu", torch.float64)
        return total + self._lost[name].to("cpu", torch.float64) if name in self._lost else total

    def has_sum(self, name: str) -> bool:
        return name in self._sums

    def rows_of(self, name: str, places: Tensor | None = None) -> Tensor:
        """(n, ...) in the order of the sample list. places: of its images in the list that is meant, if not this one.

        Resampling, like every seeded choice, goes by position: it must not depend on the order in which a stream went.
        """
        order = (self.indices if places is None else places[self.indices]).argsort()
        rows = self.joined(name)
        return rows if torch.equal(order, torch.arange(len(order))) else rows[order]

    def blocks_of(self, name: str) -> Iterator[Tensor]:
        """The same rows shard by shard, so that memory need not hold them all."""
        if not (self.indices.diff() > 0).all():
            yield self.rows_of(name)
            return
        for rows in self._rows[name]:
            yield rows.cpu() if isinstance(rows, Tensor) else rows()

    def joined(self, name: str) -> Tensor:
        """All rows of a name, in the order in which they were put."""
        return torch.cat([rows if isinstance(rows, Tensor) else rows() for rows in self._rows[name]]).cpu()

    def has_rows(self, name: str) -> bool:
        return name in self._rows

    @property
    def indices(self) -> Tensor:
        """Indices of the images seen, in the order they were seen."""
        return self.seen.numbers

    @property
    def count(self) -> int:
        """How many images were seen."""
        return len(self.seen)

    def state(self) -> dict[str, Tensor]:
        """Everything needed to go on: named tensors."""
        return {
            "indices": self.indices,
            **{f"sum/{name}": self.sum_of(name) for name in self._sums},
            **{f"row/{name}": self.joined(name) for name in self._rows},
        }

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Take over a state. Rows of a state on disk stay there until they are asked for."""
        lazy = not isinstance(state, dict)
        self.seen = Positions(state["indices"])
        self._sums = {key[4:]: state[key].clone() for key in state if key.startswith("sum/")}
        self._lost = {}
        self._rows = {
            key[4:]: [partial(state.__getitem__, key) if lazy else state[key]]
            for key in state
            if key.startswith("row/")
        }

    def merge(self: Self, other: Self) -> None:
        """Take in what another statistic of the same kind saw; images seen by both are an error."""
        new = other.indices
        if len(twice := new[self.seen.holds(new)]):
            raise ValueError(f"{self.name}: {len(twice)} images were counted in both states, such as {twice.min()}")
        for name in other._sums:
            self.add(name, other.sum_of(name))
        for name, values in other._rows.items():
            self._rows.setdefault(name, []).extend(values)
        self.seen.add(new)

    @abstractmethod
    def result(self) -> Any:
        """Named, labelled arrays."""
