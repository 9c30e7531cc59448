"""Rotary positions have no weights, but some files carry the numbers that they are made of: what those say is used."""

from __future__ import annotations

import re

import torch
from torch import Tensor

from vitscope.core.errors import BadCheckpoint
from vitscope.models.checkpoints.parts import Parts

REASON = "a number that follows from the grid and the width of a head"
CLOSE = 0.01  # relative: files keep them in bfloat16 at worst


def heads_of(parts: Parts, pattern: str, width: int, per_head: int, expected: float | None = None) -> int | None:
    """Drop the tables that match, and tell the number of heads: each has `per_head` times as many numbers as a table.

    expected: the base of the powers 1, base^(1/n), base^(2/n) ... that the table must hold. With another everything
    would load, and every attention map would be wrong.
    """
    found = [key for key in parts.left if re.match(pattern, key)]
    heads = None
    for key in found:
        table = parts.left[key]
        count = table.shape[-1] if table.ndim else 0
        if not count or width % (per_head * count):
            raise BadCheckpoint(f"its rotary positions ({key}) do not divide a width of {width} into heads")
        heads = width // (per_head * count)
        if expected is not None and not _powers(table, expected):
            raise BadCheckpoint(
                f"its rotary positions ({key}) are not the powers of {expected:g} that its family was trained with, so "
                "that attention would be computed otherwise than in its training; no architecture known here fits"
            )
    parts.drop(REASON, pattern)
    return heads


def _powers(table: Tensor, base: float) -> bool:
    if table.ndim != 1 or table.is_meta:
        return False
    exponents = torch.arange(len(table), dtype=torch.float64) / len(table)
    return torch.allclose(table.double(), base**exponents, rtol=CLOSE, atol=0)
