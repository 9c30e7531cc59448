"""COCO's run-length masks, decoded without trusting them.

A mask is stored as alternating run lengths of 0s and 1s down the columns. Compressed counts are these numbers as
differences to the number two before, in 5-bit groups of printable characters.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def decompress_counts(text: bytes) -> list[int]:
    """Compressed counts to run lengths.

    >>> decompress_counts(b"122000O")  # 1 2 2, then differences 0 0 0 -1 to the number two before
    [1, 2, 2, 2, 2, 2, 1]
    """
    counts: list[int] = []
    position = 0
    while position < len(text):
        value = shift = 0
        while True:
            if position >= len(text) or shift > 60:
                raise ValueError("the run-length code is damaged")
            group = text[position] - 48
            position += 1
            if not 0 <= group < 64:
                raise ValueError("the run-length code is damaged")
            value |= (group & 0x1F) << shift
            shift += 5
            if not group & 0x20:
                if group & 0x10:
                    value |= -1 << shift  # sign extension
                break
        counts.append(value + counts[-2] if len(counts) > 2 else value)
    return counts


def decode_counts(counts: Sequence[int], height: int, width: int) -> np.ndarray:
    """Run lengths to bool (height, width).

    >>> decode_counts([1, 2, 1], 2, 2).tolist()
    [[False, True], [True, False]]
    """
    pixels = height * width
    if any(not 0 <= run <= pixels for run in counts) or sum(counts) != pixels:
        raise ValueError(f"the run-length code does not describe {width}x{height} pixels")
    values = np.zeros(len(counts), dtype=bool)
    values[1::2] = True
    found: np.ndarray = np.repeat(values, counts).reshape(width, height).T
    return found
