"""Maps in the order of their attention: sorted once, for all that asks who is attended most."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class Ranking(NamedTuple):
    """values: (..., N) descending; order: where each stood. Equal ones keep their order."""

    values: Tensor
    order: Tensor


def rank(maps: Tensor) -> Ranking:
    """Sort maps (..., N), non-negative, over the last axis.

    On a CPU value and position are packed into one integer: the bits of a non-negative float32 are ordered as it is,
    and NumPy sorts integers twenty times faster than torch sorts floats with their positions.

    >>> rank(torch.tensor([0.1, 0.5, 0.1])).order.tolist()
    [1, 0, 2]
    """
    if maps.device.type != "cpu" or maps.dtype != torch.float32:
        return Ranking(*maps.sort(dim=-1, descending=True, stable=True))
    last = maps.shape[-1] - 1
    backwards = torch.arange(last, -1, -1)  # the first of equal ones is the largest
    keys = (maps.contiguous().view(torch.int32).long() << 32) | backwards
    ascending = torch.from_numpy(np.sort(keys.numpy(), axis=-1))
    keys = ascending.flip(-1)
    return Ranking((keys >> 32).int().view(torch.float32), last - (keys & 0xFFFFFFFF))
