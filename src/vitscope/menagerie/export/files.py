"""Images on disk, and masks as COCO writes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Mask = NDArray[np.bool_]


def save_png(path: Path, image: NDArray[np.uint8]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image).save(path)


def save_jpeg(path: Path, image: NDArray[np.uint8]) -> None:
    """Where a layout wants JPEG: nearly lossless, without thinned-out colours."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image).save(path, "JPEG", quality=95, subsampling=0)


def run_lengths(mask: Mask) -> list[int]:
    """Alternating counts of 0s and 1s down the columns, starting with 0s: COCO's uncompressed run-length code.

    >>> run_lengths(np.array([[False, True], [True, True]]))
    [1, 3]
    >>> run_lengths(np.array([[True, False]]))
    [0, 1, 1]
    """
    cells = mask.T.ravel()
    changes = np.flatnonzero(cells[1:] != cells[:-1]) + 1
    edges = np.concatenate([[0], changes, [cells.size]])
    runs = np.diff(edges).tolist()
    return [0, *runs] if cells[0] else runs


def box(mask: Mask) -> tuple[int, int, int, int]:
    """First and last column and row that the mask touches: x1, y1, x2, y2, all inside it.

    >>> box(np.array([[0, 0, 0], [0, 1, 1]], bool))
    (1, 1, 2, 1)
    """
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    return int(columns[0]), int(rows[0]), int(columns[-1]), int(rows[-1])
