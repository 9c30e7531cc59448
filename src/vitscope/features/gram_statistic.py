"""Grams of every layer, block by block of images: what CKA between any models is computed from later."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from vitscope.core.errors import BadData
from vitscope.features.blocks import BlockRows, BlockStatistic
from vitscope.features.gram import part_grams, token_grams, token_kinds
from vitscope.features.hsic import LEAST
from vitscope.models.layout import TokenLayout

MOST_IMAGES = 8192  # whose Grams are kept: 55 MB for ViT-B; intervals are a few thousandths wide by then


@dataclass(frozen=True)
class Grams:
    """Packed, U-centred Grams of one model: everything that CKA with another model needs.

    packed: kind of tokens -> (blocks, sites, size (size - 1) / 2) float32; members: (blocks, size) bool, which images
    are there; numbers: (blocks,); sites: a name per site, in order of depth; unused: images that are in no block.
    """

    size: int
    numbers: Tensor
    members: Tensor
    sites: tuple[str, ...]
    packed: dict[str, Tensor]
    unused: int = 0


class GramStatistic(BlockStatistic):
    """Grams of every block's output, per block of images and kind of tokens.

    Of a long list only the first `MOST_IMAGES` count, so that what is kept stays small; the list is in a random order
    (with published scaling it is in class order, and all count).
    """

    name = "grams"
    wants = frozenset({"tokens"})

    def __init__(self, layout: TokenLayout, depth: int, *, block: int, scaled: bool = False) -> None:
        super().__init__(layout, depth, block=block, scaled=scaled)
        self._pending: dict[int, list[list[Tensor]]] = {}

    @property
    def sites(self) -> tuple[str, ...]:
        return tuple(f"block {layer + 1}" for layer in range(self.depth))

    def usable(self) -> Iterator[BlockRows]:
        most = math.inf if self.scaled else MOST_IMAGES // self.block
        return (block for block in super().usable() if block.number < most)

    def tokens(self, layer: int, x: Tensor) -> None:
        self.note(x)

    def note(self, x: Tensor) -> None:
        """The next site's tokens (B, T, D)."""
        for block in self.usable():
            self._pending.setdefault(block.number, []).append(part_grams(x[block.rows], self.layout))

    def end(self) -> None:
        for block in self.usable():
            grams = token_grams(self._pending.pop(block.number), self.layout)
            packed = self.centred(grams, block, self.sites).float()
            members = torch.zeros(self.block, dtype=torch.uint8)
            members[block.places] = 1
            self.put("number", torch.tensor([block.number]))
            self.put("members", members.unsqueeze(0))
            for kind, grams in zip(token_kinds(self.layout), packed, strict=True):
                self.put(kind, grams.unsqueeze(0))
        super().end()

    def result(self) -> Grams:
        if not self.has_rows("number"):
            raise BadData(f"{self.count} images are too few for CKA: it takes at least {LEAST}")
        order = self.joined("number").argsort()
        rows = {name: self.joined(name)[order] for name in self._rows}
        members = rows["members"].bool()
        return Grams(
            size=self.block,
            numbers=rows["number"],
            members=members,
            sites=self.sites,
            packed={kind: rows[kind] for kind in token_kinds(self.layout)},
            unused=self.count - int(members.sum()),
        )


class NormGramStatistic(GramStatistic):
    """Grams after norm1 and norm2 of every block: two sites per block, for similarity over depth."""

    name = "norm_grams"
    wants = frozenset({"norms"})

    @property
    def sites(self) -> tuple[str, ...]:
        return tuple(f"norm{part} {layer + 1}" for layer in range(self.depth) for part in (1, 2))

    def norms(self, layer: int, part: str, x: Tensor) -> None:
        self.note(x)
