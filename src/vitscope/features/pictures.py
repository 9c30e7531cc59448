"""Features as pictures: the principal components of patch tokens as colours, and likeness to a chosen patch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from vitscope.core.analysis import Analysis, Found, Outcome, Stream, Watch
from vitscope.core.statistic import Statistic
from vitscope.data.dataset import EXAMPLES
from vitscope.models.layout import Grid, TokenLayout

if TYPE_CHECKING:
    from vitscope.data.dataset import ImageSet
    from vitscope.models.shape import ModelShape

WIDEST = 160  # pixels of a kept image
COMPONENTS = 4  # one tells foreground from background, three are red, green and blue
DARKEST = 48  # of 255: black is the background's alone
EDGES = (0.02, 0.98)  # quantiles of the foreground that become the darkest and the brightest


def principal(tokens: Tensor, *, without_position: bool = False) -> Tensor:
    """The first four principal components of patch tokens of several images together: (n, N, D) -> (n, N, 4).

    Tokens are normalised as a layer norm does, or a few of enormous norm would be all that is seen.
    without_position: subtract the mean of each position over the images first.
    """
    x = F.layer_norm(tokens.double(), tokens.shape[-1:])
    if without_position and len(x) > 1:
        x = x - x.mean(0)
    flat = x.flatten(0, 1)
    flat = flat - flat.mean(0)
    small = flat.shape[0] < flat.shape[1]
    _, vectors = torch.linalg.eigh(flat @ flat.T if small else flat.T @ flat)
    top = vectors.flip(1)[:, :COMPONENTS]
    directions = F.normalize(flat.T @ top, dim=0) if small else top
    found = flat @ directions
    filled: Tensor = F.pad(found, (0, COMPONENTS - found.shape[1])).unflatten(0, x.shape[:2])
    return filled


def oriented(components: Tensor, grid: Grid, like: Tensor | None = None, front: Tensor | None = None) -> Tensor:
    """Components with signs that make layers and runs look alike: (n, N, 4).

    The first is higher inside images than at their edges: it is the foreground's; or it goes with `front`, (n, N),
    where that is known. The others go with those of `like`, another layer's components of the same patches; without it,
    their long tail is to the right.
    """
    h, w = grid
    rows, columns = torch.arange(h).view(-1, 1), torch.arange(w)
    edge = ((rows == 0) | (rows == h - 1) | (columns == 0) | (columns == w - 1)).flatten()
    first = components[..., 0]
    centred = components - components.mean((0, 1))
    tendency = centred.pow(3).mean((0, 1)) if like is None else (centred * like).mean((0, 1))
    if front is not None:
        tendency[0] = (centred[..., 0] * front).mean()
    elif not edge.all():
        tendency[0] = first[:, ~edge].mean() - first[:, edge].mean()
    return components * torch.where(tendency < 0, -1.0, 1.0)


def as_colours(components: Tensor) -> Tensor:
    """Components (n, N, 4) as uint8 (n, N, 3): the second to fourth, where the first is positive; black elsewhere."""
    front = components[..., 0] > 0
    if not front.any():
        return torch.zeros(*components.shape[:2], 3, dtype=torch.uint8)
    inside = components[front][:, 1:]
    low, high = torch.quantile(inside, torch.tensor(EDGES, dtype=inside.dtype), dim=0)
    scaled = (components[..., 1:] - low) / (high - low).clamp_min(1e-12)
    colours: Tensor = (DARKEST + (255 - DARKEST) * scaled.clamp(0, 1)) * front.unsqueeze(-1)
    return colours.round().to(torch.uint8)


def pca_colours(layers: Sequence[Tensor], grid: Grid, *, without_position: bool = False) -> Tensor:
    """Colours of the patches of n images at every layer: L of (n, N, D) -> uint8 (n, L, h, w, 3).

    Signs follow the last layer's, so that an object keeps its colours from layer to layer where it can.
    """
    found: list[Tensor] = []
    like: Tensor | None = None
    for tokens in reversed(layers):
        components = oriented(principal(tokens), grid, like)
        if without_position:  # then edges are as high as the inside on average, and cannot tell the foreground
            components = oriented(principal(tokens, without_position=True), grid, like, components[..., 0])
        like = components if like is None else like
        found.append(as_colours(components))
    mosaic: Tensor = torch.stack(found[::-1], dim=1).unflatten(2, grid)
    return mosaic


def likeness(tokens: Tensor, image: int, patch: int) -> Tensor:
    """Cosine of one patch token with all of them: (n, N, D) -> (n, N)."""
    units = F.normalize(tokens.float(), dim=-1)
    return units @ units[image, patch]


class ExampleTokens(Statistic):
    """All patch tokens of the first images of a list, and the images as the network sees them.

    result(): L of (n, N, D), and uint8 (n, 3, h, w).
    """

    name = "example_tokens"
    wants = frozenset({"tokens"})

    def __init__(self, layout: TokenLayout, depth: int) -> None:
        super().__init__()
        self.layout, self.depth = layout, depth
        self._layers: list[Tensor] = []

    def tokens(self, layer: int, x: Tensor) -> None:
        kept = (self.batch.indices < EXAMPLES).nonzero().flatten()
        if len(kept):
            self._layers.append(x[kept.to(x.device), self.layout.prefix :].half())

    def end(self) -> None:
        if self._layers:
            kept = self.batch.indices < EXAMPLES
            self.put("number", self.batch.indices[kept])
            self.put("images", self.batch.images[kept])
            for layer, tokens in enumerate(self._layers):
                self.put(f"tokens/{layer}", tokens)
            self._layers.clear()
        super().end()

    def result(self) -> tuple[Tensor, Tensor]:
        """Tokens (n, L, N, D) in half precision, and images."""
        if not self.has_rows("number"):
            return torch.empty(0, self.depth, self.layout.spatial, 1), torch.empty(0, 3, 1, 1, dtype=torch.uint8)
        order = self.joined("number").argsort()
        layers = [self.joined(f"tokens/{layer}")[order] for layer in range(self.depth)]
        return torch.stack(layers, 1), self.joined("images")[order]


class Pictures(Analysis):
    """Principal components of patch tokens as colours, for a few example images at every layer."""

    name = "pictures"
    title = "feature pictures"
    domain = "what"
    kind = "images"

    without_position: bool = False  # subtract the mean of each position over the images first

    def passes(self, dataset: ImageSet, shape: ModelShape) -> Sequence[Stream]:
        return [Stream(dataset.shuffled, (Watch.by(ExampleTokens),))]

    def reduce(self, dataset: ImageSet, found: Found) -> Outcome:
        tokens, images = found.statistic("example_tokens").result()
        if not len(images):
            return Outcome(notes=["{model}: none of the example images could be read"])
        colours = pca_colours(tokens.unbind(1), found.shape.layout.grid, without_position=self.without_position)
        small = min(WIDEST / max(images.shape[-2:]), 1.0)
        size = (max(round(images.shape[-2] * small), 1), max(round(images.shape[-1] * small), 1))
        shown = F.adaptive_avg_pool2d(images.float(), size).round().to(torch.uint8)
        return Outcome(maps={"pca": colours, "pca.images": shown})
