"""How much each head writes: the norm of what it adds to the residual stream, W_o[h] (A[h] V[h]), among its layer's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from vitscope.core.analysis import Analysis, Found, Measure, Outcome, Stream, Watch
from vitscope.core.results import NOBODY, tidy_mean
from vitscope.core.statistic import Statistic
from vitscope.models.layout import TokenLayout

if TYPE_CHECKING:
    from vitscope.data.dataset import ImageSet
    from vitscope.models.shape import ModelShape

EVERY = 4  # of the patch tokens one in so many is asked: heads differ, and a quarter tells as much


def write_norms(mixed: Tensor, weight: Tensor, heads: int) -> Tensor:
    """Norm of each head's write. mixed: (..., H * d), the heads' outputs side by side; weight: (D, H * d) -> (..., H).

    |W_h z_h|^2 = z_h^T (W_h^T W_h) z_h takes d x d numbers per head instead of D for every token.
    """
    parts = weight.unflatten(1, (heads, -1)).permute(1, 2, 0)  # (H, d, D)
    grams = parts @ parts.mT  # (H, d, d)
    z = mixed.unflatten(-1, (heads, -1))  # (..., H, d)
    flat = z.flatten(0, -3).transpose(0, 1)  # (H, tokens, d)
    squares = torch.linalg.vecdot(flat @ grams, flat)  # (H, tokens)
    norms: Tensor = squares.clamp_min(0).sqrt().T.unflatten(0, mixed.shape[:-1])
    return norms


@dataclass(frozen=True)
class Writes:
    """Share of each head in what its layer's heads write, per image: (n, L, H) each; cls is None without a CLS."""

    patches: Tensor
    cls: Tensor | None


class WriteStatistic(Statistic):
    """Shares of heads in the writes into CLS, and into some patch tokens (mean over them)."""

    name = "writes"
    wants = frozenset({"writes"})

    def __init__(self, layout: TokenLayout, heads: int) -> None:
        super().__init__()
        self.layout, self.heads = layout, heads
        self._pending: dict[str, list[Tensor]] = {}

    @classmethod
    def of(cls, shape: ModelShape, **settings: Any) -> WriteStatistic:
        return cls(shape.layout, shape.heads, **settings)

    def writes(self, layer: int, mixed: Tensor, weight: Tensor) -> None:
        kept = mixed[:, self.layout.prefix :: EVERY]
        if self.layout.has_cls:
            kept = torch.cat([mixed[:, :1], kept], 1)
        norms = write_norms(kept.float(), weight.float(), self.heads)  # (B, tokens, H)
        shares = norms / norms.sum(-1, keepdim=True).clamp_min(1e-12)
        if self.layout.has_cls:
            self._pending.setdefault("cls", []).append(shares[:, 0])
        self._pending.setdefault("patches", []).append(shares[:, int(self.layout.has_cls) :].mean(1))

    def end(self) -> None:
        for name, layers in self._pending.items():
            self.put(name, torch.stack(layers, dim=1))
        self._pending.clear()
        super().end()

    def result(self) -> Writes:
        return Writes(self.rows_of("patches").double(), self.rows_of("cls").double() if self.has_rows("cls") else None)


class HeadWrites(Analysis):
    """How much each head writes into the residual stream: its share among the heads of its layer."""

    name = "writes"
    title = "head writes"
    domain = "how"
    kind = "images"
    measures = (
        Measure("head_write", "share of what heads write", "norm of a head's write over the sum of its layer's heads'"),
    )

    def passes(self, dataset: ImageSet, shape: ModelShape) -> Sequence[Stream]:
        if "writes" not in shape.signals:
            return []
        return [Stream(dataset.shuffled, (Watch.by(WriteStatistic),))]

    def reduce(self, dataset: ImageSet, found: Found) -> Outcome:
        if "writes" not in found.shape.signals:
            return Outcome(notes=["{model} does not show what its heads write: it is absent from head writes"])
        seen: WriteStatistic = found.statistic("writes")
        variants = (name for name in ("cls", "patches") if seen.has_rows(name))
        return Outcome([tidy_mean(NOBODY, "head_write", seen.blocks_of(name), variant=name) for name in variants])
