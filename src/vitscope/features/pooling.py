"""One vector per image and layer: CLS, the mean or the maximum of the spatial tokens, or all tokens as they are.

And, where it is asked for, one vector of the image itself, which no network has seen, for features to beat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F

from vitscope.core.analysis import Watch
from vitscope.core.errors import BadData, VitscopeError
from vitscope.core.statistic import Statistic
from vitscope.models.layout import TokenLayout

if TYPE_CHECKING:
    from vitscope.models.shape import ModelShape

POOLINGS = ("cls", "mean", "max", "tokens")
DTYPES = {"float16": torch.float16, "float32": torch.float32}
MOST_FLOAT32 = 100_000  # images: of ImageNet, ViT-B's features take 47 GB in half precision
THUMBNAIL = 16  # pixels of the edge of an image that is compared as it is
HALF_LIMIT = torch.finfo(torch.float16).max


def pool(tokens: Tensor, layout: TokenLayout, pooling: str) -> Tensor:
    """Pool the tokens of images. tokens: (B, T, D) -> (B, D); for pooling "tokens": (B, T, D) unchanged.

    >>> pool(torch.tensor([[[9.0], [1.0], [3.0]]]), TokenLayout(grid=(1, 2)), "mean").tolist()  # without CLS
    [[2.0]]
    """
    if pooling == "cls":
        if not layout.has_cls:
            raise ValueError("this model has no CLS token")
        return tokens[:, 0]
    if pooling == "mean":
        return tokens[:, layout.prefix :].mean(1)
    if pooling == "max":
        return tokens[:, layout.prefix :].amax(1)
    if pooling == "tokens":
        return tokens
    raise ValueError(f"pooling must be one of {', '.join(POOLINGS)}, not {pooling}")


def thumbnail(images: Tensor) -> Tensor:
    """Images as vectors: reduced to 16 x 16 in colour, about their mean, since cosines of light are all near one.

    images: uint8 (B, 3, h, w) -> (B, 768).
    """
    small = F.adaptive_avg_pool2d(images.float() / 255, THUMBNAIL).flatten(1)
    return small - small.mean(1, keepdim=True)


def check_poolings(poolings: Sequence[str], layout: TokenLayout, name: str) -> tuple[str, ...]:
    """The poolings that a model has; CLS is left out silently only if there is another one."""
    if unknown := [p for p in poolings if p not in POOLINGS]:
        raise VitscopeError(f"there is no pooling '{unknown[0]}': choose from {', '.join(POOLINGS)}")
    kept = tuple(dict.fromkeys(p for p in poolings if p != "cls" or layout.has_cls))
    if not kept:
        raise VitscopeError(f"'{name}' has no CLS token: pool its spatial tokens instead, by mean or max")
    return kept


class PooledStatistic(Statistic):
    """Pooled features of every layer of every image, a row of each: `cls/0` is the first layer's CLS tokens (n, D).

    pixels: whether to keep `pixels/0` too, the image itself (`thumbnail`). head: whether to keep what a pooling head
    makes of the image, as `pool/11` after twelve layers: it comes where CLS is asked for.
    result(): pooling -> (n, L, D) in `dtype`, in the order of the sample list; (n, L, T, D) for "tokens", (n, 1, D) for
    "pool".
    """

    name = "pooled"
    wants = frozenset({"tokens", "pool"})

    def __init__(
        self,
        layout: TokenLayout,
        poolings: Sequence[str] = ("cls", "mean"),
        dtype: str | torch.dtype = torch.float32,
        pixels: bool = False,
        head: bool = False,
    ) -> None:
        super().__init__()
        self.layout, self.dtype = layout, DTYPES[dtype] if isinstance(dtype, str) else dtype
        self.poolings, self.pixels, self.head = tuple(poolings), pixels, head
        self._pending: dict[str, list[Tensor]] = {}

    @classmethod
    def of(cls, shape: ModelShape, **settings: Any) -> PooledStatistic:
        """A model without CLS has no "cls" features."""
        asked = settings.pop("poolings", ("cls", "mean"))
        poolings = check_poolings(asked, shape.layout, "the model")
        return cls(shape.layout, poolings, head="cls" in asked, **settings)

    def tokens(self, layer: int, x: Tensor) -> None:
        for pooling in self.poolings:
            pooled = pool(x, self.layout, pooling).float()
            # a copy: the network may reuse or free what it showed, and "tokens" and "cls" are views of it
            self._pending.setdefault(pooling, []).append(pooled.clone() if pooling in ("tokens", "cls") else pooled)

    def pool(self, layer: int, probs: Tensor, x: Tensor) -> None:
        if self.head:
            self._pending["pool"] = [x.float()]

    def end(self) -> None:
        depth = max((len(layers) for layers in self._pending.values()), default=0)
        for pooling, layers in self._pending.items():
            features = torch.stack(layers, dim=1).cpu()  # (B, L, ..., D)
            first = depth - len(layers)  # a pooling head reads the last layer
            self._check(features, first)
            for layer, rows in enumerate(features.to(self.dtype).unbind(1), first):
                self.put(f"{pooling}/{layer}", rows)
        self._pending.clear()
        if self.pixels:
            self.put("pixels/0", thumbnail(self.batch.images).cpu().to(self.dtype))
        super().end()

    def _check(self, features: Tensor, first: int) -> None:
        largest = features.flatten(2).abs().amax(-1)  # (B, L); NaN if there is one
        bad = ~torch.isfinite(largest)
        if bad.any():
            image, layer = bad.nonzero()[0].tolist()
            where, whose = first + layer + 1, self.batch.ids[image]
            raise BadData(f"layer {where} gives NaN or infinite features for {whose}: check the weights")
        if self.dtype == torch.float16 and largest.max() > HALF_LIMIT:
            image, layer = (largest > HALF_LIMIT).nonzero()[0].tolist()
            where, whose = first + layer + 1, self.batch.ids[image]
            raise VitscopeError(
                f"features of layer {where} reach {largest.max().item():.3g} for {whose}, more than float16 can hold: "
                "store them as float32"
            )

    def result(self) -> dict[str, Tensor]:
        depth = 1 + max(int(name.partition("/")[2]) for name in self._rows)
        found = {
            pooling: torch.stack([self.rows_of(f"{pooling}/{layer}") for layer in range(depth)], dim=1)
            for pooling in self.poolings
        }
        if self.has_rows(last := f"pool/{depth - 1}"):
            found["pool"] = self.rows_of(last).unsqueeze(1)
        return found | ({"pixels": self.rows_of("pixels/0")} if self.pixels else {})


def pooled(
    samples: Sequence[Any], poolings: Sequence[str] = ("cls", "mean"), dtype: str = "auto", **further: bool
) -> Watch:
    """What watches a stream whose pooled features are wanted. dtype: float32, or float16 for very long lists."""
    chosen = ("float16" if len(samples) > MOST_FLOAT32 else "float32") if dtype == "auto" else dtype
    return Watch.by(PooledStatistic, poolings=tuple(poolings), dtype=chosen, **further)
