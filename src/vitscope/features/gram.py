"""Gram matrices of every layer, block by block of pictures: what CKA between any models is computed from later.

*Blocks.* Minibatch CKA compares pictures within blocks. Which pictures share a block must not depend on how they were
loaded, or two models could not be compared and shards could not be merged; so block `i // size` of picture `i` follows
from the position in the sample list alone. Features of all tokens (150,000 numbers per picture and layer) are not kept
between batches: a traced batch must hold whole blocks. A block that comes in two pieces is an error, never two blocks.
Pictures that could not be read leave their place in the block empty, for all models alike.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vitscope.data.batches import Batch
from vitscope.errors import BadData
from vitscope.features.hsic import LEAST, pack, u_centre
from vitscope.models.layout import TokenLayout
from vitscope.statistic import Statistic

CONSTANT = 1e-10  # variance over squared size below which features count as the same for all pictures
CANCELLATION = 0.02  # variance over squared size below which the plain product would lose digits
MOST_PICTURES = 8192  # whose Grams are kept: 55 MB for ViT-B; intervals are a few thousandths wide by then
CHUNK = 1 << 18  # numbers that are subtracted and multiplied at a time on a CPU: what stays in its cache
_thread = threading.local()


def token_kinds(layout: TokenLayout) -> tuple[str, ...]:
    """Which sets of tokens a model has Grams of: CLS, the spatial tokens (flattened), all tokens (flattened)."""
    return ("cls", "spatial", "all") if layout.has_cls else ("spatial", "all")


def gram(x: Tensor) -> Tensor:
    """Inner products of m pictures, summed over tokens: (m, t, D) -> (m, m), exact enough to be centred in float64.

    The product is taken in float32 in one go. Where pictures vary little against the size of their features, that
    would lose the digits that matter: there the differences x_i - x_0 are multiplied (features that are equal then give
    exact zeros), and the offset is put back in float64.
    """
    flat = x.flatten(1).float()
    plain = flat @ flat.T
    if 1 - plain.mean() / plain.diagonal().mean() > CANCELLATION:
        return plain
    offset = (flat @ flat[0]).to("cpu", torch.float64)
    return difference_gram(x) + offset.unsqueeze(1) + offset - offset[0]


def difference_gram(x: Tensor) -> Tensor:
    """Inner products of x_i - x_0, summed over tokens: (m, t, D) -> (m, m) float64 on the CPU."""
    m, tokens, width = x.shape
    step = max(1, CHUNK // (m * width)) if x.device.type == "cpu" else max(tokens, 1)
    total = torch.zeros(m, m, dtype=torch.float64)
    room = _room(m * min(step, tokens) * width, x.device)
    for start in range(0, tokens, step):
        part = x[:, start : start + step].flatten(1).float()
        difference = room[: part.numel()].view(part.shape)
        torch.sub(part, part[0], out=difference)
        total += (difference @ difference.T).to("cpu", torch.float64)
    return total


def _room(size: int, device: torch.device) -> Tensor:
    """Memory for differences, kept between calls: allocating it anew for each layer costs more than filling it."""
    rooms: dict[torch.device, Tensor] = vars(_thread).setdefault("rooms", {})
    if device not in rooms or len(rooms[device]) < size:
        rooms[device] = torch.empty(size, device=device)
    return rooms[device]


def part_grams(x: Tensor, layout: TokenLayout) -> list[Tensor]:
    """Grams of CLS, of the other prefix tokens (each if there are any) and of the spatial tokens, (m, m) each."""
    prefix, cls = layout.prefix, int(layout.has_cls)
    cuts = [(0, cls), (cls, prefix), (prefix, layout.tokens)]
    return [gram(x[:, start:stop]) for start, stop in cuts if stop > start]


def token_grams(layers: Sequence[Sequence[Tensor]], layout: TokenLayout) -> Tensor:
    """Grams per kind of `token_kinds`, from the `part_grams` of some layers: (kinds, layers, m, m) float64."""
    parts = torch.stack([torch.stack([gram.to("cpu", torch.float64) for gram in p]) for p in zip(*layers, strict=True)])
    everything, spatial = parts.sum(0), parts[-1]
    return torch.stack([parts[0], spatial, everything] if layout.has_cls else [spatial, everything])


def centre(grams: Tensor, *, scaled: bool = False) -> Tensor:
    """U-centred Grams, (..., m, m) float64; zeros where features are the same for all pictures.

    scaled: divided by the range (largest minus smallest entry, diagonal included) of the plain Gram, as published.
    """
    own = grams.diagonal(dim1=-1, dim2=-2)  # (..., m)
    variation = (own - 2 * grams[..., 0] + own[..., :1]).mean(-1)  # mean of |x_i - x_0|^2
    centred = u_centre(grams).masked_fill((variation <= CONSTANT * own[..., 0])[..., None, None], 0)
    if scaled:
        reach = grams.amax((-1, -2)) - grams.amin((-1, -2))
        centred /= reach.clamp_min(torch.finfo(torch.float64).tiny)[..., None, None]
    return centred


@dataclass(frozen=True)
class BlockRows:
    """The pictures of one block in the batch at hand."""

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
    """A statistic of blocks of pictures that refuses blocks in pieces.

    block: pictures per block; scaled: Grams are divided by their range, as published.
    """

    def __init__(self, layout: TokenLayout, depth: int, *, block: int, scaled: bool = False) -> None:
        super().__init__()
        self.layout, self.depth, self.block, self.scaled = layout, depth, block, scaled
        self.blocks: list[BlockRows] = []

    def begin(self, batch: Batch) -> None:
        super().begin(batch)
        self._refuse_pieces(self.indices, batch.indices)
        self.blocks = blocks_of(batch.indices, self.block)

    def merge(self, other) -> None:  # type: ignore[no-untyped-def]
        assert isinstance(other, BlockStatistic)
        if self.block != other.block:
            raise ValueError(f"{self.name}: blocks of {self.block} and of {other.block} pictures do not merge")
        twice = set(self.indices.tolist()) & set(other.indices.tolist())
        if not twice:
            self._refuse_pieces(self.indices, other.indices)
        super().merge(other)

    def _refuse_pieces(self, seen: Tensor, new: Tensor) -> None:
        mine = set(seen.div(self.block, rounding_mode="floor").tolist())
        if torn := mine & set(new.div(self.block, rounding_mode="floor").tolist()):
            raise ValueError(
                f"{self.name}: block {min(torn)} of {self.block} pictures came in pieces: batches and shards must hold "
                f"whole blocks, so make their size a multiple of {self.block}"
            )

    def usable(self) -> Iterator[BlockRows]:
        """Blocks of the batch that are large enough for an unbiased HSIC."""
        return (block for block in self.blocks if len(block.places) >= LEAST)

    def spread(self, centred: Tensor, block: BlockRows) -> Tensor:
        """Grams of the pictures present, (..., m, m), packed as if the whole block were there; absent ones are zero."""
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
                f"{names[int(bad.nonzero()[0])]} has NaN or infinite features for pictures near "
                f"{self.batch.ids[block.rows.start]}: check the weights"
            )
        return packed


@dataclass(frozen=True)
class Grams:
    """Packed, U-centred Grams of one model: everything that CKA with another model needs.

    packed: kind of tokens -> (blocks, sites, size (size - 1) / 2) float32; members: (blocks, size) bool, which pictures
    are there; numbers: (blocks,); sites: a name per site, in order of depth; unused: pictures that are in no block.
    """

    size: int
    numbers: Tensor
    members: Tensor
    sites: tuple[str, ...]
    packed: dict[str, Tensor]
    unused: int = 0


class GramStatistic(BlockStatistic):
    """Grams of every block's output, per block of pictures and kind of tokens.

    Of a long list only the first `MOST_PICTURES` count, so that what is kept stays small; the list is in a random order
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
        most = math.inf if self.scaled else MOST_PICTURES // self.block
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
        if "number" not in self._rows:
            raise BadData(f"{self.count} pictures are too few for CKA: it takes at least {LEAST}")
        order = torch.cat(self._rows["number"]).argsort()
        rows = {name: torch.cat(values)[order] for name, values in self._rows.items()}
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
