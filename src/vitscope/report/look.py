"""Somebody's own photos through networks, as pictures: components, likeness to a point, attention from a point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from vitscope.core.errors import BadData
from vitscope.core.files import file_names
from vitscope.core.observer import Observer
from vitscope.data.decode import BadImage, decode_image
from vitscope.data.preprocessing import covering
from vitscope.features.pictures import likeness, pca_colours
from vitscope.models.backbone import Backbone
from vitscope.models.spec import Spec
from vitscope.report.feature_pictures import (
    images_mosaic,
    likeness_figure,
    models_mosaic,
    point_attention_figure,
    some_layers,
)
from vitscope.report.style import save_figure, styled


class PhotoTokens(Observer):
    """Keeps the patch tokens of every layer, and where each patch of the first image looks."""

    wants = frozenset({"tokens", "attention"})

    def __init__(self, backbone: Backbone) -> None:
        self.prefix = backbone.layout.prefix
        self.layers: list[Tensor] = []  # (n, N, D) each
        self.looks: list[Tensor] = []  # (H, N, N) each

    def tokens(self, layer: int, x: Tensor) -> None:
        self.layers.append(x[:, self.prefix :].float().cpu())

    def attention(self, layer: int, probs: Tensor) -> None:
        self.looks.append(probs[0, :, self.prefix :, self.prefix :].float().cpu())


@dataclass(frozen=True)
class Point:
    """A pixel (x, y) of a photo, as the network sees the photo: resized and cropped."""

    share: tuple[float, float]  # x, y of the crop, each from 0 to 1

    @classmethod
    def of(cls, pixel: tuple[int, int], photo: tuple[int, int], size: tuple[int, int]) -> Point:
        """photo, size: (height, width) of the photo and of the network's input.

        >>> Point.of((250, 100), photo=(200, 400), size=(100, 100)).share  # the middle 200 columns are seen
        (0.7525, 0.5025)
        """
        x, y = pixel
        if not (0 <= x < photo[1] and 0 <= y < photo[0]):
            raise BadData(f"the point {x},{y} is not in the photo of {photo[1]}x{photo[0]} pixels: give --at X,Y in it")
        resized = covering(photo, size)
        top, left = round((resized[0] - size[0]) / 2), round((resized[1] - size[1]) / 2)
        across = ((x + 0.5) * resized[1] / photo[1] - left) / size[1]
        down = ((y + 0.5) * resized[0] / photo[0] - top) / size[0]
        if not (0 <= across < 1 and 0 <= down < 1):
            raise BadData(
                f"the point {x},{y} is cut off: the network sees the middle of the photo; choose one nearer to it"
            )
        return cls((across, down))

    def patch(self, grid: tuple[int, int]) -> int:
        return int(self.share[1] * grid[0]) * grid[1] + int(self.share[0] * grid[1])


def look_at(
    specs: Sequence[Spec],
    photos: Sequence[Path],
    folder: Path,
    *,
    at: tuple[int, int] | None = None,
    without_position: bool = False,
    device: str = "auto",
) -> list[Path]:
    """Draw photos as models see them; returns the files. at: a pixel (x, y) of the first photo."""
    decoded = [_decode(path) for path in photos]
    names = file_names(spec.title for spec in specs)
    written: list[Path] = []
    first: dict[str, Tensor] = {}  # colours of the first photo, by model
    seen: list[Image.Image] = []
    for spec in specs:
        backbone = spec.load(device)
        grid = backbone.layout.grid
        seen = [backbone.preprocessing.geometry(photo) for photo in decoded]
        point = None
        if at is not None:
            point = Point.of(at, (decoded[0].height, decoded[0].width), backbone.preprocessing.size)
        pixels = torch.from_numpy(np.stack([np.array(photo) for photo in seen])).permute(0, 3, 1, 2)
        kept = PhotoTokens(backbone)
        backbone.trace(pixels, [kept])
        colours = pca_colours(kept.layers, grid, without_position=without_position)
        first[spec.title] = colours[0]
        layers, name = some_layers(backbone.depth), names[spec.title]
        with styled():
            figures = {f"pca-{name}": images_mosaic(spec.title, colours, pixels)}
            if point is not None:
                patch = point.patch(grid)
                alike = torch.stack([likeness(x, 0, patch) for x in kept.layers], 1).unflatten(-1, grid)
                figures[f"alike-{name}"] = likeness_figure(spec.title, alike, seen, 0, point.share, layers)
                rows = torch.stack([look[:, patch] for look in kept.looks]).unflatten(-1, grid)
                figures[f"looks-{name}"] = point_attention_figure(spec.title, rows, seen[0], point.share, layers)
            written += [path for key, f in figures.items() for path in save_figure(f, folder, key)]
    if len(specs) > 1:
        image = torch.from_numpy(np.array(seen[0])).permute(2, 0, 1)
        with styled():
            figure = models_mosaic(first, image, {spec.title: spec.teaching for spec in specs})
            written += save_figure(figure, folder, "pca-models")
    return written


def _decode(path: Path) -> Image.Image:
    try:
        return decode_image(path)
    except BadImage as error:
        raise BadData(f"cannot show {path}: it {error.reason}") from error
