"""Patch tokens and what they show: features of every layer, with the class that most of a patch's pixels have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from vitscope.core.statistic import Statistic
from vitscope.data.batches import Batch, BatchAnnotations
from vitscope.data.segmentation import VOID
from vitscope.models.layout import Grid, TokenLayout

if TYPE_CHECKING:
    from vitscope.models.shape import ModelShape

HALF = 128  # of 255: a region holds a pixel of which it covers a half


def pixel_classes(regions: BatchAnnotations, background: bool) -> Tensor:
    """The class of every pixel: int16 (h, w), -1 for void. A pixel belongs to the smallest region that holds it.

    With a background it is class 0, and category c is class c + 1.
    """
    size = regions.coverage.shape[-2:]
    found = torch.full(size, 0 if background else VOID, dtype=torch.int16)
    held = regions.coverage >= HALF
    for number in held.flatten(1).sum(1).argsort(descending=True, stable=True).tolist():
        category = int(regions.categories[number])
        found[held[number]] = category if category == VOID else category + int(background)
    return found


def patch_classes(pixels: Tensor, grid: Grid, classes: int) -> Tensor:
    """The class that most pixels of each patch have, void ones left out: (h_px, w_px) -> int64 (N,), -1 if all are.

    >>> patch_classes(torch.tensor([[0, 1, 1, -1], [1, 1, -1, -1]], dtype=torch.int16), (1, 2), classes=2).tolist()
    [1, 1]
    """
    counts = class_counts(pixels, grid, classes)
    return torch.where(counts.sum(1) > 0, counts.argmax(1), VOID)


def class_counts(pixels: Tensor, grid: Grid, classes: int) -> Tensor:
    """Pixels of each class in each patch: (h_px, w_px) -> int64 (N, C). Pixels beyond the last patch are in none."""
    high, wide = pixels.shape[0] // grid[0], pixels.shape[1] // grid[1]
    cells = pixels[: grid[0] * high, : grid[1] * wide].long()
    cells = cells.reshape(grid[0], high, grid[1], wide).permute(0, 2, 1, 3).flatten(2).flatten(0, 1)  # (N, high * wide)
    counts = torch.zeros(len(cells), classes + 1, dtype=torch.int64)
    counts.scatter_add_(1, cells.where(cells >= 0, classes), torch.ones_like(cells))
    return counts[:, :classes]


def some_of_each(classes: Tensor, each: int, image: int) -> Tensor:
    """Which patches of an image are kept: at most `each`, the classes in turn, void ones never. (N,) -> (k,) ascending.

    Within a class patches come in an order that follows from the image's position in the list.
    """
    order = torch.randperm(len(classes), generator=torch.Generator().manual_seed(image))
    order = order[classes[order] != VOID]
    turns = torch.zeros(len(order), dtype=torch.int64)
    for name in classes[order].unique().tolist():
        mine = classes[order] == name
        turns[mine] = torch.arange(int(mine.sum()))
    return order[turns.argsort(stable=True)][:each].sort().values


@dataclass(frozen=True)
class Patches:
    """Kept patches of all images in the order of the list. image: (P,) positions; classes: (P,); layers: L of (P, D).

    counts: (P, C), pixels of each class in each patch.
    """

    image: Tensor
    classes: Tensor
    counts: Tensor
    layers: Sequence[Tensor]


class PatchStatistic(Statistic):
    """Patch tokens of every layer with their classes, of the first images of a list. Needs batches with annotations.

    images: how many; each: patches of an image, chosen evenly over its classes; None: all of them, void ones too.
    """

    name = "labelled_patches"
    wants = frozenset({"tokens"})
    needs_annotations = True

    def __init__(
        self, layout: TokenLayout, depth: int, *, images: int, each: int | None, classes: int, background: bool
    ) -> None:
        super().__init__()
        self.layout, self.depth = layout, depth
        self.images, self.each, self.classes, self.background = images, each, classes, background
        self._rows_kept: list[tuple[int, Tensor]] = []  # (image in the batch, patches)
        self._layers: list[Tensor] = []

    @classmethod
    def of(cls, shape: ModelShape, **settings: Any) -> PatchStatistic:
        return cls(shape.layout, shape.depth, **settings)

    def begin(self, batch: Batch) -> None:
        super().begin(batch)
        assert batch.annotations is not None, "labelled patches need masks"
        self._rows_kept, self._layers = [], []
        for number, (index, regions) in enumerate(zip(batch.indices.tolist(), batch.annotations, strict=True)):
            if index >= self.images:
                continue
            counts = class_counts(pixel_classes(regions, self.background), self.layout.grid, self.classes)
            classes = torch.where(counts.sum(1) > 0, counts.argmax(1), VOID)
            kept = torch.arange(len(classes)) if self.each is None else some_of_each(classes, self.each, index)
            self._rows_kept.append((number, kept))
            self.put("image", torch.full((len(kept),), index))
            self.put("classes", classes[kept])
            self.put("counts", counts[kept].int())

    def tokens(self, layer: int, x: Tensor) -> None:
        patches = x[:, self.layout.prefix :]
        kept = [patches[number, where.to(x.device)] for number, where in self._rows_kept]
        self._layers.append(torch.cat(kept).half() if kept else torch.empty(0, x.shape[-1], dtype=torch.float16))

    def end(self) -> None:
        if self._rows_kept:
            for layer, rows in enumerate(self._layers):
                self.put(f"patch/{layer}", rows)
        super().end()

    def result(self) -> Patches:
        if not self.has_rows("image"):
            empty = torch.empty(0, dtype=torch.int64)
            return Patches(empty, empty, torch.empty(0, self.classes), [torch.empty(0, 1)] * self.depth)
        order = self.joined("image").argsort(stable=True)
        return Patches(
            self.joined("image")[order],
            self.joined("classes")[order],
            self.joined("counts")[order],
            _Layers(self, order),
        )


class _Layers(Sequence[Tensor]):
    """Layers that are read and put in order when they are asked for, in float32."""

    def __init__(self, statistic: PatchStatistic, order: Tensor) -> None:
        self.statistic, self.order = statistic, order

    def __len__(self) -> int:
        return self.statistic.depth

    def __getitem__(self, layer: Any) -> Any:
        if not 0 <= layer < len(self):
            raise IndexError(layer)
        return self.statistic.joined(f"patch/{layer}")[self.order].float()
