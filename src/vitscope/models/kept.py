"""One image through one network, with everything kept: attention and tokens of every block.

For looking at single images; measures over many images stream instead (`vitscope.models.observe`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from vitscope.core.observer import Observer
from vitscope.data.decode import decode_image
from vitscope.models.backbone import Backbone
from vitscope.models.layout import TokenLayout


class Stopped(Exception):
    """Nobody waits for the image any more."""


@dataclass(frozen=True)
class Kept:
    """attention: (L, H, T, T), from source (axis 2) to destination; tokens: (L, T, D), block outputs; both float32."""

    attention: Tensor
    tokens: Tensor
    layout: TokenLayout


class Keeper(Observer):
    """Keeps what it sees of a single image; between two blocks it asks whether to stop."""

    wants = frozenset({"attention", "tokens"})

    def __init__(self, stop: Callable[[], bool]) -> None:
        self.stop = stop
        self.seen: dict[str, list[Tensor]] = {"attention": [], "tokens": []}

    def attention(self, layer: int, probs: Tensor) -> None:
        if self.stop():
            raise Stopped
        self.seen["attention"].append(probs[0].float().cpu())

    def tokens(self, layer: int, x: Tensor) -> None:
        self.seen["tokens"].append(x[0].float().cpu())


def trace_image(
    backbone: Backbone, image: Image.Image | Path | str, *, stop: Callable[[], bool] = lambda: False
) -> Kept:
    """Everything a network makes of one image, resized and cropped as it is used to.

    image: decoded, or a file. stop: asked before every block; once it says so, `Stopped` is raised.
    """
    decoded = image if isinstance(image, Image.Image) else decode_image(Path(image))
    pixels = torch.from_numpy(np.array(backbone.preprocessing.geometry(decoded))).permute(2, 0, 1)  # (3, h, w)
    keeper = Keeper(stop)
    backbone.trace(pixels.unsqueeze(0), [keeper])
    return Kept(torch.stack(keeper.seen["attention"]), torch.stack(keeper.seen["tokens"]), backbone.layout)
