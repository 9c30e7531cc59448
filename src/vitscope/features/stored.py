"""Pooled features that lie in the store: read layer by layer and block by block, so that memory does not grow with
the dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vitscope.core.errors import VitscopeError


class StoredLayer:
    """One layer's features as an array (n, D), of which rows are read when they are asked for."""

    def __init__(self, shards: Sequence[Mapping[str, Tensor]], counts: Sequence[int], name: str) -> None:
        self.shards, self.counts, self.name = shards, counts, name

    def __len__(self) -> int:
        return sum(self.counts)

    def __getitem__(self, rows: slice) -> Tensor:
        """Consecutive rows in their stored type."""
        start, end, step = rows.indices(len(self))
        if step != 1:
            raise ValueError("rows are read in stretches: take every so many of them afterwards")
        parts, first = [], 0
        for shard, count in zip(self.shards, self.counts, strict=True):
            if first < end and start < first + count:
                parts.append(shard[self.name][max(start - first, 0) : min(end - first, count)])
            first += count
        return torch.cat(parts) if parts else self.shards[0][self.name][:0]

    def whole(self, most: int | None = None) -> Tensor:
        """All rows, or the first few, in float32."""
        return self[: len(self) if most is None else most].float()


@dataclass(frozen=True)
class PooledFeatures:
    """Features of a list of images at every layer. positions: int64 (n,), which image of the list each row is."""

    shards: tuple[Mapping[str, Tensor], ...]
    positions: Tensor
    kinds: tuple[str, ...]  # cls (if the model has one), mean
    depth: int

    def __len__(self) -> int:
        return len(self.positions)

    def layer(self, kind: str, layer: int) -> StoredLayer:
        """kind: one of `kinds`; layer: counted from 0."""
        if kind not in self.kinds:
            raise VitscopeError(f"there are {', '.join(self.kinds) or 'no'} features, not {kind}")
        if not 0 <= layer < self.depth:
            raise VitscopeError(f"there is no layer {layer + 1}: the model has {self.depth}")
        return StoredLayer(self.shards, self._counts, f"row/{kind}/{layer}")

    def layers(self, kind: str) -> list[StoredLayer]:
        return [self.layer(kind, layer) for layer in range(self.depth)]

    @property
    def pixels(self) -> StoredLayer:
        """The images themselves, where they were asked for (`pooling.thumbnail`)."""
        return StoredLayer(self.shards, self._counts, "row/pixels/0")

    @property
    def pool(self) -> StoredLayer | None:
        """What a pooling head made of the last layer, where the network has one."""
        name = f"row/pool/{self.depth - 1}"
        there = bool(self.shards) and all(name in shard for shard in self.shards)
        return StoredLayer(self.shards, self._counts, name) if there else None

    @property
    def _counts(self) -> list[int]:
        return [len(shard["indices"]) for shard in self.shards]

    @classmethod
    def of(cls, shards: Sequence[Mapping[str, Tensor]], depth: int) -> PooledFeatures:
        """shards: states of `PooledStatistic`, in the order of the list; those without a usable image are left out."""
        known = tuple(_Counted(shard) for shard in shards)
        filled = tuple(shard for shard in known if len(shard["indices"]))
        names = {name.split("/")[1] for shard in filled for name in shard if name.startswith("row/")}
        kinds = tuple(kind for kind in ("cls", "mean", "max", "tokens") if kind in names)
        positions = [shard["indices"] for shard in filled]
        return cls(filled, torch.cat(positions) if positions else torch.empty(0, dtype=torch.int64), kinds, depth)


class _Counted(Mapping[str, Tensor]):
    """A shard whose indices are kept, since everybody asks for them."""

    def __init__(self, shard: Mapping[str, Tensor]) -> None:
        self.shard, self.indices = shard, shard["indices"]

    def __getitem__(self, name: str) -> Tensor:
        return self.indices if name == "indices" else self.shard[name]

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self.shard)

    def __len__(self) -> int:
        return len(self.shard)
