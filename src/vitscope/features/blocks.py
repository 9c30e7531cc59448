"""Statistics of blocks of images that are compared with each other.

Minibatch CKA compares images within blocks. Which images share a block must not depend on how they were
loaded, or two models could not be compared and shards could not be merged; so block `i // size` of image `i` follows
from the position in the sample list alone. Features of all tokens (150,000 numbers per image and layer) are not kept
between batches: a traced batch must hold whole blocks. A block that comes in two pieces is an error, never two blocks.
Images that could not be read leave their place in the block empty, for all models alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vitscope.core.errors import BadData
from vitscope.core.statistic import Statistic
from vitscope.data.batches import Batch
from vitscope.features.gram import centre
from vitscope.features.hsic import LEAST, pack
from vitscope.models.layout import TokenLayout


@dataclass(frozen=True)
class BlockRows:
    """The images of one block in the batch at hand."""

    number: int
    rows: slice  # of the batch
    places: Tensor  # (m,): positions within the block


def blocks_of(indices: Tensor, size: int) -> list[BlockRows]:
    """Cut a batch into blocks. indices: (B,), ascending positions in the sample list."""
    numbers, counts = torch.unique_consecutive(indices.div(size, rounding_mode="floor"), return_counts=True)
    blocks, start = [], 0
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        rows = slice(start, start + count)
        blocks.append(BlockRows(number, rows, indices[rows] - number * size))
        start += count
    return blocks


class BlockStatistic(Statistic):
    """A statistic of blocks of images that refuses blocks in pieces.

    block: images per block; scaled: Grams are divided by their range, as published.
    """

    def __init__(self, layout: TokenLayout, depth: int, *, block: int, scaled: bool = False) -> None:
        super().__init__()
        self.layout, self.depth, self.block, self.scaled = layout, depth, block, scaled
        self.blocks: list[BlockRows] = []

    def begin(self, batch: Batch) -> None:
        super().begin(batch)
        self._refuse_pieces(batch.indices)
        self.blocks = blocks_of(batch.indices, self.block)

    def merge(self, other) -> None:  # type: ignore[no-untyped-def]
        assert isinstance(other, BlockStatistic)
        if self.block != other.block:
            raise ValueError(f"{self.name}: blocks of {self.block} and of {other.block} images do not merge")
        if not self.seen.holds(other.indices).any():
            self._refuse_pieces(other.indices)
        super().merge(other)

    def _refuse_pieces(self, new: Tensor) -> None:
        blocks = new.div(self.block, rounding_mode="floor").unique()
        places = blocks.unsqueeze(1) * self.block + torch.arange(self.block)  # all images of these blocks
        if len(torn := blocks[self.seen.holds(places).any(1)]):
            raise ValueError(
                f"{self.name}: block {torn.min()} of {self.block} images came in pieces: batches and shards must hold "
                f"whole blocks, so make their size a multiple of {self.block}"
            )

    def usable(self) -> Iterator[BlockRows]:
        """Blocks of the batch that are large enough for an unbiased HSIC."""
        return (block for block in self.blocks if len(block.places) >= LEAST)

    def spread(self, centred: Tensor, block: BlockRows) -> Tensor:
        """Grams of the images present, (..., m, m), packed as if the whole block were there; absent ones are zero."""
        m, size = len(block.places), self.block
        if m < size:
            full = centred.new_zeros(*centred.shape[:-2], size, size)
            full[..., block.places[:, None], block.places[None, :]] = centred
            centred = full
        return pack(centred)

    def centred(self, grams: Tensor, block: BlockRows, names: Sequence[str]) -> Tensor:
        """Packed, U-centred Grams of a block: (kinds, layers, m, m) -> (kinds, layers, pairs). names: of the layers."""
        packed = self.spread(centre(grams, scaled=self.scaled), block)
        bad = ~torch.isfinite(packed).all(-1).all(0)
        if bad.any():
            raise BadData(
                f"{names[int(bad.nonzero()[0])]} has NaN or infinite features for images near "
                f"{self.batch.ids[block.rows.start]}: check the weights"
            )
        return packed
