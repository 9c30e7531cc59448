"""One image beside its attention maps, model by model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor

from vitscope.attention.rollout import rollout
from vitscope.core.errors import BadData
from vitscope.core.files import file_names
from vitscope.core.observer import Observer
from vitscope.data.decode import BadImage, decode_image
from vitscope.models.backbone import Backbone
from vitscope.models.spec import Spec
from vitscope.report.style import FAINT, HEAT, INK, save_figure, sized, styled

ROWS, COLUMNS = 6, 12  # at most so many layers and heads in one figure


class PictureMaps(Observer):
    """Keeps the attention of a single image: each head's map, the mean over heads, and the rollout."""

    wants = frozenset({"attention"})

    def __init__(self, backbone: Backbone) -> None:
        self.layout = backbone.layout
        self.heads: list[Tensor] = []  # (H, N) per layer
        self._means: list[Tensor] = []  # (T, T) per layer

    def attention(self, layer: int, probs: Tensor) -> None:
        prefix = self.layout.prefix
        row = probs[0, :, 0, prefix:] if self.layout.has_cls else probs[0, :, prefix:, prefix:].mean(1)
        self.heads.append(row.float().cpu())
        self._means.append(probs[0].float().mean(0).cpu())

    def rollouts(self) -> Tensor:
        """(L, N)."""
        source = torch.zeros(self.layout.tokens)
        source[0 if self.layout.has_cls else slice(self.layout.prefix, None)] = 1.0
        return rollout(self._means, source / source.sum())[:, self.layout.prefix :]


def draw_images(specs: Sequence[Spec], images: Sequence[Path], folder: Path, device: str = "auto") -> list[Path]:
    """For every model and image: the image, and the maps of some layers and heads."""
    decoded = []
    for path in images:
        try:
            decoded.append(decode_image(path))
        except BadImage as error:
            raise BadData(f"cannot show {path}: it {error.reason}") from error
    names = file_names(
        [(path, spec.title) for path in images for spec in specs], lambda pair: f"{pair[0].stem} {pair[1]}"
    )
    written = []
    for spec in specs:
        backbone = spec.load(device)
        for path, image in zip(images, decoded, strict=True):
            seen = backbone.preprocessing.geometry(image)
            maps = PictureMaps(backbone)
            pixels = torch.from_numpy(np.array(seen)).permute(2, 0, 1).unsqueeze(0)
            backbone.trace(pixels, [maps])
            with styled():
                figure = picture_figure(backbone, seen, maps, path.name)
                written += save_figure(figure, folder, f"show-{names[path, spec.title]}")
    return written


def picture_figure(backbone: Backbone, seen: Image.Image, maps: PictureMaps, name: str) -> Figure:
    grid = backbone.layout.grid
    layers = sorted({round(i) for i in np.linspace(0, backbone.depth - 1, min(ROWS, backbone.depth))})
    heads = list(range(min(COLUMNS, backbone.heads)))
    rollouts = maps.rollouts()
    side = 0.82
    rows, columns = len(layers), len(heads) + 2
    figure = Figure(figsize=sized(side * (columns + rows + 0.6), side * rows + 0.62, lowest=0))
    outer = figure.add_gridspec(
        1, 2, width_ratios=[rows, columns], wspace=0.06, left=0.01, right=0.99, top=0.87, bottom=0.01
    )
    photo = figure.add_subplot(outer[0])
    photo.imshow(np.asarray(seen))
    photo.set_axis_off()
    photo.set_title(name, fontsize=9)
    inner = outer[1].subgridspec(rows, columns, wspace=0.08, hspace=0.08)
    for i, layer in enumerate(layers):
        tiles = [("mean", maps.heads[layer].mean(0)), ("rollout", rollouts[layer])]
        tiles += [(f"{head + 1}", maps.heads[layer][head]) for head in heads]
        for j, (title, values) in enumerate(tiles):
            panel = figure.add_subplot(inner[i, j])
            panel.imshow(values.reshape(grid).numpy(), cmap=HEAT, vmin=0)
            panel.set(xticks=[], yticks=[])
            panel.grid(False)
            for spine in panel.spines.values():
                spine.set_visible(False)
            if i == 0:
                panel.set_title(title, fontsize=8, fontweight="normal", loc="center", pad=3)
            if j == 0:
                panel.set_ylabel(f"{layer + 1}", rotation=0, ha="right", va="center", labelpad=5, fontsize=8)
    who = "CLS" if backbone.layout.has_cls else "the spatial tokens (mean)"
    shown = "" if len(heads) == backbone.heads else f" (first {len(heads)} of {backbone.heads} heads)"
    figure.suptitle(f"{backbone.title}: attention of {who}{shown}", x=0.01, y=0.99, ha="left", fontsize=11,
                    fontweight="bold", color=INK)  # fmt: skip
    figure.text(
        0.99, 0.955, "rows: layers; columns: mean over heads, rollout, heads", ha="right", fontsize=8, color=FAINT
    )
    return figure
