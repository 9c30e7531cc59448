"""Gram matrices of every layer, block by block of pictures: what CKA between any models is computed from later.

*Blocks.* Minibatch CKA compares pictures within blocks. Which pictures share a block must not depend on how they were
loaded, or two models could not be compared and shards could not be merged; so block `i // size` of picture `i` follows
from the position in the sample list alone. Features of all tokens (150,000 numbers per picture and layer) are not kept
between batches: a traced batch must hold whole blocks. A block that comes in two pieces is an error, never two blocks.
Pictures that could not be read leave their place in the block empty, for all models alike.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from vitscope.data.batches import Batch
from vitscope.errors import BadData
from vitscope.features.hsic import LEAST, pack, u_centre
from vitscope.models.layout import TokenLayout
from vitscope.statistic import Statistic

CONSTANT = 1e-10  # variance over squared size below which features count as the same for all pictures
CHUNK = 1 << 18  # numbers that are subtracted and multiplied at a time on a CPU: what stays in its cache
_thread = threading.local()


def token_kinds(layout: TokenLayout) -> tuple[str, ...]:
    """Which sets of tokens a model has Grams of: CLS, the spatial tokens (flattened), all tokens (flattened)."""
    return ("cls", "spatial", "all") if layout.has_cls else ("spatial", "all")


def difference_gram(x: Tensor) -> Tensor:
    """Inner products of x_i - x_0, summed over tokens: (m, t, D) -> (m, m) float64 on the CPU.

    Unlike the plain Gram it has no large offset to lose digits to, and features that are equal give exact zeros; after
    U-centring the two are the same.
    """
    m, tokens, width = x.shape
    step = max(1, CHUNK // (m * width)) if x.device.type == "cpu" else max(tokens, 1)
    gram = torch.zeros(m, m, dtype=torch.float64)
    room = _room(m * min(step, tokens) * width, x.device)
    for start in range(0, tokens, step):
        part = x[:, start : start + step].flatten(1).float()
        difference = room[: part.numel()].view(part.shape)
        torch.sub(part, part[0], out=difference)
        gram += (difference @ difference.T).to("cpu", torch.float64)
    return gram


def _room(size: int, device: torch.device) -> Tensor:
    """Memory for differences, kept between calls: allocating it anew for each layer costs more than filling it."""
    rooms: dict[torch.device, Tensor] = vars(_thread).setdefault("rooms", {})
    if device not in rooms or len(rooms[device]) < size:
        rooms[device] = torch.empty(size, device=device)
    return rooms[device]


def reference_products(x: Tensor) -> Tensor:
    """Inner products with the first picture, summed over tokens: (m, t, D) -> (m,) float64 on the CPU."""
    return torch.einsum("mtd,td->m", x.float(), x[0].float()).to("cpu", torch.float64)


def token_grams(x: Tensor, layout: TokenLayout, *, scaled: bool = False) -> Tensor:
    """U-centred Grams of one layer's tokens, one per kind of `token_kinds`: (m, T, D) -> (kinds, m, m) float64.

    scaled: divided by the range (largest minus smallest entry) of the plain Gram, as published.
    Zeros where features are the same for all pictures: they have no similarity to anything.
    """
    prefix, cls = layout.prefix, int(layout.has_cls)
    parts = [x[:, :cls], x[:, cls:prefix], x[:, prefix:]]
    grams = [difference_gram(part) for part in parts]
    sizes = [part[0].float().square().sum().to("cpu", torch.float64) for part in parts]
    kinds = [(grams[0], sizes[0])] if cls else []
    kinds += [(grams[2], sizes[2]), (sum(grams[1:], grams[0]), sum(sizes[1:], sizes[0]))]
    stacked = torch.stack([gram for gram, _ in kinds])
    size = torch.stack([size for _, size in kinds])
    varies = stacked.diagonal(dim1=-1, dim2=-2).mean(-1) > CONSTANT * size
    centred = u_centre(stacked) * varies[:, None, None]
    if scaled:
        products = [reference_products(part) for part in parts]
        plain = ([products[0]] if cls else []) + [products[2], sum(products[1:], products[0])]
        centred /= _plain_range(stacked, torch.stack(plain))[:, None, None]
    return centred


def _plain_range(difference: Tensor, products: Tensor) -> Tensor:
    """Largest minus smallest entry of the plain Grams, diagonal included. (kinds, m, m), (kinds, m) -> (kinds,)."""
    plain = difference + products.unsqueeze(-1) + products.unsqueeze(-2) - products[:, :1, None]
    return (plain.amax((-1, -2)) - plain.amin((-1, -2))).clamp_min(torch.finfo(torch.float64).tiny)


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
    """A statistic of blocks of pictures that refuses blocks in pieces. Layers are noted as they come."""

    def __init__(self, layout: TokenLayout, depth: int, block: int) -> None:
        super().__init__()
        self.layout, self.depth, self.block = layout, depth, block
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

    def usable(self) -> Iterable[BlockRows]:
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

    def check_finite(self, values: Tensor, what: str) -> None:
        if not torch.isfinite(values).all():
            raise BadData(
                f"{what} has NaN or infinite features for pictures near {self.batch.ids[0]}: check the weights"
            )


@dataclass(frozen=True)
class Grams:
    """Packed, U-centred Grams of one model: everything that CKA with another model needs.

    packed: kind of tokens -> (blocks, sites, size (size - 1) / 2) float32; members: (blocks, size) bool, which pictures
    are there; numbers: (blocks,); sites: a name per site, in order of depth; lost: pictures of blocks below 4 pictures.
    """

    size: int
    numbers: Tensor
    members: Tensor
    sites: tuple[str, ...]
    packed: dict[str, Tensor]
    lost: int = 0


class GramStatistic(BlockStatistic):
    """Grams of every block's output, per block of pictures and kind of tokens."""

    name = "grams"
    wants = frozenset({"tokens"})

    def __init__(self, layout: TokenLayout, depth: int, *, block: int, scaled: bool = False) -> None:
        super().__init__(layout, depth, block)
        self.scaled = scaled
        self._pending: dict[int, list[Tensor]] = {}

    @property
    def sites(self) -> tuple[str, ...]:
        return tuple(f"block {layer + 1}" for layer in range(self.depth))

    def tokens(self, layer: int, x: Tensor) -> None:
        self.note(x)

    def note(self, x: Tensor) -> None:
        """The next site's tokens (B, T, D)."""
        for block in self.usable():
            grams = token_grams(x[block.rows], self.layout, scaled=self.scaled)
            packed = self.spread(grams, block).float()
            sites = self._pending.setdefault(block.number, [])
            self.check_finite(packed, self.sites[len(sites)])
            sites.append(packed)

    def end(self) -> None:
        for block in self.usable():
            packed = torch.stack(self._pending.pop(block.number), dim=1)  # (kinds, sites, pairs)
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
            lost=self.count - int(members.sum()),
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
