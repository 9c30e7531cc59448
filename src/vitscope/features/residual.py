"""What the residual connection carries against what each branch adds: ratios of norms, and CKA of skip with branch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vitscope.core.bootstrap import RESAMPLES, percentile_interval, resampling_counts
from vitscope.features.blocks import BlockRows, BlockStatistic
from vitscope.features.cka import BOOTSTRAP_FROM, GROUPS
from vitscope.features.gram import part_grams, token_grams, token_kinds
from vitscope.models.layout import TokenLayout
from vitscope.models.trace import PARTS


def norm_ratio(skip: Tensor, branch: Tensor) -> Tensor:
    """|skip| / |branch| of each image from Grams (..., m, m), whose diagonals are squared norms: (..., m).

    NaN where the branch adds nothing.
    """
    carried, added = (grams.diagonal(dim1=-1, dim2=-2).clamp_min(0).sqrt() for grams in (skip, branch))
    return carried / added.masked_fill(added == 0, torch.nan)


@dataclass(frozen=True)
class Residual:
    """kinds: of tokens. ratios: (n, L, kinds) per part. The CKA of skip (rows) with branch (columns), per part, is
    (kinds, L, L), with a 95 % interval (NaN for few blocks) and the deviation of its permutation null."""

    kinds: tuple[str, ...]
    ratios: dict[str, Tensor]
    cka: dict[str, Tensor]
    low: dict[str, Tensor]
    high: dict[str, Tensor]
    null: dict[str, Tensor]
    blocks: int


class ResidualStatistic(BlockStatistic):
    """Norm ratios per image; sums, over groups of blocks, of what CKA of skip with branch is made of."""

    name = "residual"
    wants = frozenset({"branches"})

    def __init__(self, layout: TokenLayout, depth: int, *, block: int, scaled: bool = False) -> None:
        super().__init__(layout, depth, block=block, scaled=scaled)
        self._grams: dict[tuple[str, str, int], list[list[Tensor]]] = {}  # (part, side, block number) -> layers

    def branches(self, layer: int, part: str, skip: Tensor, branch: Tensor) -> None:
        for block in self.blocks:
            for side, x in (("skip", skip), ("branch", branch)):
                grams = part_grams(x[block.rows], self.layout)
                self._grams.setdefault((part, side, block.number), []).append(grams)

    def end(self) -> None:
        usable = {block.number for block in self.usable()}
        for part in PARTS:
            ratios = []
            for block in self.blocks:
                layers = (self._grams.pop((part, side, block.number)) for side in ("skip", "branch"))
                skip, branch = (token_grams(grams, self.layout) for grams in layers)  # (kinds, L, m, m)
                ratios.append(norm_ratio(skip, branch).permute(2, 1, 0).float())  # (m, L, kinds)
                if block.number in usable:
                    names = [f"{part} of layer {layer + 1}" for layer in range(self.depth)]
                    self._fold(part, block, *(self.centred(grams, block, names) for grams in (skip, branch)))
            self.put(part, torch.cat(ratios))
        self.add("blocks", torch.tensor(len(usable)))
        super().end()

    def _fold(self, part: str, block: BlockRows, skip: Tensor, branch: Tensor) -> None:
        """Add a block's inner products. skip, branch: (kinds, L, pairs)."""
        terms = len(block.places) * (len(block.places) - 3)
        weight = 1 / terms if self.scaled else 1.0  # the published protocol weights all blocks alike
        products = {"cross": skip @ branch.mT, "skip": skip.square().sum(-1), "branch": branch.square().sum(-1)}
        for name, value in products.items():  # each group of blocks has its own row
            rows = torch.zeros(GROUPS, *value.shape, dtype=torch.float64)
            rows[block.number % GROUPS] = 2 * weight * value
            self.add(f"{part}/{name}", rows)
        spread = (2 / terms) ** 0.5 * weight
        both = (2 * products["skip"] * spread).unsqueeze(-1) * (2 * products["branch"] * spread).unsqueeze(-2)
        self.add(f"{part}/null", both)  # variances, to be normalised by the totals

    def result(self) -> Residual:
        blocks = int(self.sum_of("blocks"))
        value, low, high, null = {}, {}, {}, {}
        for part in PARTS if blocks else ():
            cross, skip, branch = (self.sum_of(f"{part}/{name}") for name in ("cross", "skip", "branch"))
            value[part] = _normalised(cross.sum(0), skip.sum(0), branch.sum(0))
            null[part] = _normalised(self.sum_of(f"{part}/null").sqrt(), skip.sum(0), branch.sum(0))
            low[part], high[part] = _interval(cross, skip, branch, blocks)
        ratios = {part: self.rows_of(part).double() for part in PARTS}
        return Residual(token_kinds(self.layout), ratios, value, low, high, null, blocks)


def _normalised(cross: Tensor, skip: Tensor, branch: Tensor) -> Tensor:
    """(..., L, L), (..., L), (..., L) -> (..., L, L); NaN where features are constant."""
    rows = skip.masked_fill(skip <= 0, torch.nan).sqrt().unsqueeze(-1)
    columns = branch.masked_fill(branch <= 0, torch.nan).sqrt().unsqueeze(-2)
    return cross / rows / columns


def _interval(cross: Tensor, skip: Tensor, branch: Tensor, blocks: int) -> tuple[Tensor, Tensor]:
    """Percentile bootstrap over groups of blocks. cross: (G, kinds, L, L)."""
    used = min(blocks, GROUPS)  # groups are filled in turn
    if blocks < BOOTSTRAP_FROM:
        nothing = torch.full(cross.shape[1:], torch.nan, dtype=torch.float64)
        return nothing, nothing.clone()
    filled = skip.flatten(1).sum(1).sort(descending=True).indices[:used]
    counts = resampling_counts(len(filled), RESAMPLES)
    sampled = _normalised(*(torch.einsum("rg,g...->r...", counts, x[filled]) for x in (cross, skip, branch)))
    low, high = percentile_interval(sampled)
    return low, high
