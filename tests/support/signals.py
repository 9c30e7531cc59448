"""What networks of several shapes show of a list of images: random, or degenerate in one way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from vitscope.core.statistic import Statistic
from vitscope.data.batches import Batch, BatchAnnotations
from vitscope.models.layout import TokenLayout
from vitscope.models.shape import SIGNALS as SHOWN
from vitscope.models.shape import ModelShape
from vitscope.models.trace import PARTS, SIGNALS

CELL = 4  # pixels of a patch's edge
COUNT = 80  # images: more than are traced at once, so that blocks of CKA are smaller than the list


def _shape(layout: TokenLayout) -> ModelShape:
    shown = (*SHOWN, "pool")
    return ModelShape(layout, depth=4, heads=3, width=6, patch=(CELL, CELL), parameters=0, signals=shown)


SHAPES = {
    "CLS": _shape(TokenLayout((3, 4))),
    "registers": _shape(TokenLayout((3, 3), prefix=3)),
    "no CLS": _shape(TokenLayout((2, 4), prefix=0, has_cls=False)),
}


@dataclass(frozen=True)
class Shown:
    """Everything that a network shows of n images, and the regions annotated on them."""

    shape: ModelShape
    attention: Tensor  # (n, L, H, T, T)
    tokens: Tensor  # (n, L, T, D)
    norms: Tensor  # (n, L, part, T, D)
    skip: Tensor  # (n, L, part, T, D)
    branch: Tensor  # (n, L, part, T, D)
    mixed: Tensor  # (n, L, T, H * d)
    weight: Tensor  # (L, D, H * d)
    images: Tensor  # uint8 (n, 3, h, w)
    annotations: tuple[BatchAnnotations, ...]

    def __len__(self) -> int:
        return len(self.images)

    def batch(self, indices: Sequence[int]) -> Batch:
        rows = torch.tensor(list(indices))
        return Batch(self.images[rows], rows, [str(i) for i in indices], None, [self.annotations[i] for i in indices])

    def to(self, statistic: Statistic, indices: Sequence[int]) -> None:
        """Show a statistic one batch, as a trace would: block by block, and only what it wants."""
        statistic.begin(self.batch(indices))
        self.blocks(statistic, indices)
        statistic.end()

    def blocks(self, statistic: Statistic, indices: Sequence[int]) -> None:
        """What lies between the beginning and the end of a batch."""
        if unknown := statistic.wants - SIGNALS:
            pytest.fail(f"{type(statistic).__name__} wants {sorted(unknown)}, which nobody here knows how to show")
        whole = len(indices) == indices[-1] + 1 - indices[0]
        rows: Any = slice(indices[0], indices[-1] + 1) if whole else list(indices)  # views where there can be views
        for layer in range(self.shape.depth):
            for number, part in enumerate(PARTS):
                if "norms" in statistic.wants:
                    statistic.norms(layer, part, self.norms[rows, layer, number])
                if "attention" in statistic.wants and part == "attention":
                    statistic.attention(layer, self.attention[rows, layer])
                if "branches" in statistic.wants:
                    both = self.skip[rows, layer, number], self.branch[rows, layer, number]
                    statistic.branches(layer, part, *both)
            if "writes" in statistic.wants:
                statistic.writes(layer, self.mixed[rows, layer], self.weight[layer])
            if "tokens" in statistic.wants:
                statistic.tokens(layer, self.tokens[rows, layer])
        if "pool" in statistic.wants:  # as of a network with CLS and a pooling head, such as Perception Encoder
            looks = self.attention[rows, -1, :, -1, -self.shape.layout.spatial :]
            statistic.pool(self.shape.depth - 1, looks, self.tokens[rows, -1].amax(1))


@cache
def random_signals(shape: ModelShape, n: int = COUNT) -> Shown:
    """Peaked attention, tokens around an offset that all images share, and from none to three regions per image."""
    generator = torch.Generator().manual_seed(0)

    def normal(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator)

    length, width, (h, w) = shape.layout.tokens, shape.width, shape.layout.grid
    offset = 2 * normal(length, width)
    pixels = torch.randint(0, 256, (n, 3, CELL * h, CELL * w), generator=generator, dtype=torch.uint8)
    return Shown(
        shape,
        attention=(2 * normal(n, shape.depth, shape.heads, length, length)).softmax(-1),
        tokens=normal(n, shape.depth, length, width) + offset,
        norms=normal(n, shape.depth, 2, length, width) + offset,
        skip=normal(n, shape.depth, 2, length, width) + offset,
        branch=normal(n, shape.depth, 2, length, width) + offset,
        images=pixels,
        mixed=normal(n, shape.depth, length, 2 * shape.heads),
        weight=normal(shape.depth, width, 2 * shape.heads),
        annotations=tuple(_regions(i, (h, w)) for i in range(n)),
    )


def _regions(image: int, grid: tuple[int, int]) -> BatchAnnotations:
    """None, one, two or three boxes in turn; the third lies outside the crop, so that no pixel of it is left."""
    height, width = CELL * grid[0], CELL * grid[1]
    coverage = torch.zeros(image % 4, height, width, dtype=torch.uint8)
    for number in range(min(len(coverage), 2)):
        top, left = (image + 3 * number) % (height // 2), (5 * image + number) % (width // 2)
        coverage[number, top : top + height // 2, left : left + width // 2 + 1] = 255
    return BatchAnnotations(torch.arange(image % 4) % 2, coverage, reduced(coverage, grid))


def reduced(coverage: Tensor, grid: tuple[int, int]) -> Tensor:
    """Masks on the grid by Pillow's bicubic filter in 8 bits: uint8 (n, h_px, w_px) -> (n, h, w)."""
    images = (Image.fromarray(mask.numpy()) for mask in coverage)
    small = [np.asarray(image.resize((grid[1], grid[0]), Image.Resampling.BICUBIC)) for image in images]
    return torch.from_numpy(np.stack(small)) if small else torch.empty(0, *grid, dtype=torch.uint8)


def _uniform_attention(shown: Shown) -> Shown:
    return replace(shown, attention=torch.full_like(shown.attention, 1 / shown.shape.layout.tokens))


def _all_on_the_first_token(shown: Shown) -> Shown:
    attention = torch.zeros_like(shown.attention)
    attention[..., 0] = 1
    return replace(shown, attention=attention)


def _constant_tokens(shown: Shown) -> Shown:
    tokens, state = torch.ones_like(shown.tokens), torch.ones_like(shown.norms)
    return replace(shown, tokens=tokens, norms=state, skip=state, branch=state)


def _silent_branches(shown: Shown) -> Shown:
    return replace(shown, branch=torch.zeros_like(shown.branch))


def _a_single_image(shown: Shown) -> Shown:
    return random_signals(shown.shape, 1)


def _nothing_annotated(shown: Shown) -> Shown:
    empty = torch.empty(0, dtype=torch.int64)
    nothing = BatchAnnotations(empty, torch.empty(0, *shown.images.shape[2:]), torch.empty(0, *shown.shape.layout.grid))
    return replace(shown, annotations=(nothing,) * len(shown))


DEGENERATE: dict[str, Callable[[Shown], Shown]] = {
    "uniform attention": _uniform_attention,
    "all mass on CLS": _all_on_the_first_token,
    "constant tokens": _constant_tokens,
    "silent branches": _silent_branches,
    "a single image": _a_single_image,
    "nothing annotated": _nothing_annotated,
}
