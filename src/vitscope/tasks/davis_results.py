"""Predicted masks in the layout in which results are handed to the official DAVIS evaluation."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image

from vitscope.data.davis import VideoSequence


def write_masks(folder: Path, sequence: VideoSequence, number: int, masks: np.ndarray) -> None:
    """One frame's masks as indexed PNGs in the official result layout: <folder>/layer-NN/<sequence>/<frame>.png."""
    for layer, mask in enumerate(masks, start=1):
        place = folder / f"layer-{layer:02}" / sequence.name
        place.mkdir(parents=True, exist_ok=True)
        image = Image.fromarray(mask)
        image.putpalette(davis_palette())
        image.save(place / f"{sequence.frames[number].stem}.png")


@cache
def davis_palette() -> bytes:
    """The 256 colours of DAVIS and PASCAL VOC: the bits of a label dealt out to red, green and blue from the top.

    >>> list(davis_palette()[:9])
    [0, 0, 0, 128, 0, 0, 0, 128, 0]
    """
    colours = np.zeros((256, 3), np.uint8)
    for label in range(256):
        for place in range(8):
            for channel in range(3):
                colours[label, channel] |= ((label >> (3 * place + channel)) & 1) << (7 - place)
    return colours.tobytes()
