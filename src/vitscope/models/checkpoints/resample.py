"""Positions for another input size: absolute embeddings bicubically, relative-position tables as BEiT's authors do.

Both go through timm. Files are taken to be of square inputs, as all published ones are, unless the number of entries
says otherwise; entries of prefix tokens are kept as they are.
"""

from __future__ import annotations

import warnings
from math import isqrt

from timm.layers import resample_abs_pos_embed, resize_rel_pos_bias_table
from torch import Tensor

from vitscope.core.errors import BadCheckpoint

Grid = tuple[int, int]
RELATIVE_EXTRAS = 3  # class-to-patch, patch-to-class, class-to-class


def square_side(entries: int) -> int | None:
    """The side of a square with that many cells.

    >>> square_side(196), square_side(200)
    (14, None)
    """
    side = isqrt(max(entries, 0))
    return side if side and side * side == entries else None


def resample_positions(positions: Tensor, grid: Grid, prefix: int) -> tuple[Tensor, Grid]:
    """positions: (1, prefix + N, D) of the file -> (1, prefix + h * w, D) for `grid` (h, w), and the file's grid."""
    entries = positions.shape[1] - prefix
    side = square_side(entries)
    if side is None:
        if entries == grid[0] * grid[1]:
            return positions, grid  # saved from a network of this same, non-square input
        raise BadCheckpoint(
            f"its {positions.shape[1]} position embeddings are not {prefix} for prefix tokens and a square of others: "
            "the architecture has other prefix tokens than the file"
        )
    if (side, side) == grid:
        return positions, grid
    resampled: Tensor = resample_abs_pos_embed(
        positions, new_size=list(grid), old_size=[side, side], num_prefix_tokens=prefix
    )
    return resampled, (side, side)


def resample_relative(table: Tensor, grid: Grid) -> tuple[Tensor, Grid]:
    """table: ((2h' - 1)(2w' - 1) + 3, heads) -> the same for `grid` (h, w), and the file's (h', w')."""
    wanted = (2 * grid[0] - 1) * (2 * grid[1] - 1) + RELATIVE_EXTRAS
    side = square_side(table.shape[0] - RELATIVE_EXTRAS)
    if side is None or side % 2 == 0:
        if table.shape[0] == wanted:
            return table, grid
        raise BadCheckpoint(f"its relative-position table of {table.shape[0]} entries is of no square window")
    window = ((side + 1) // 2, (side + 1) // 2)
    if window == grid:
        return table, grid
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of timm's own indexing; nothing a user could act on
        resampled: Tensor = resize_rel_pos_bias_table(
            table.float(), new_window_size=grid, new_bias_shape=(wanted, table.shape[1])
        )
    return resampled.to(table.dtype), window
