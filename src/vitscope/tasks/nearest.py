"""Exact search for the most alike features, in blocks: memory does not grow with what is searched."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

QUERY_BLOCK = 512  # queries compared at once
BANK_BLOCK = 8192  # features they are compared with at once: with the line above, 16 MB of similarities
GROUP = 8  # columns that are looked at through their maximum

CPU = torch.device("cpu")


class Array(Protocol):
    """Rows of features, (n, D): a tensor, a numpy array or memory map, or a layer of a feature store."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice, /) -> Any: ...


def nearest(queries: Array, bank: Array, k: int, *, device: torch.device = CPU) -> tuple[Tensor, Tensor]:
    """The k most alike rows of `bank` for each query, exactly: cosines (q, k), descending, and positions (q, k).

    queries: (q, D); bank: (n, D), arrays of any float type, on disk or in memory. No more than one block of
    similarities exists at a time, and each row of the bank is read once. device: where the arithmetic is done.
    """
    wanted = F.normalize(read_rows(queries, 0, len(queries)).to(device), dim=1)
    cosines = torch.full((len(wanted), k), -torch.inf, device=device)
    positions = torch.zeros(len(wanted), k, dtype=torch.int64, device=device)
    units = torch.empty(min(BANK_BLOCK, len(bank)), wanted.shape[1], device=device)  # memory that is new each time
    room = torch.empty(min(QUERY_BLOCK, len(wanted)) * len(units), device=device)  # costs as much as what is done in it
    for start in range(0, len(bank), BANK_BLOCK):
        rows = read_rows(bank, start, start + BANK_BLOCK).to(device)
        lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True).clamp_min(1e-12)
        block = torch.div(rows, lengths, out=units[: len(rows)])  # (M, D)
        for first in range(0, len(wanted), QUERY_BLOCK):
            part = slice(first, first + QUERY_BLOCK)
            size = (len(wanted[part]), len(block))
            similarity = torch.mm(wanted[part], block.T, out=room[: size[0] * size[1]].view(size))  # (Q, M)
            found = _candidates(similarity, cosines[part, -1:], k)  # (Q, c)
            if found.shape[1]:
                known = torch.cat([cosines[part], similarity.gather(1, found)], 1)
                where = torch.cat([positions[part], found + start], 1)
                cosines[part], order = known.topk(k)
                positions[part] = where.gather(1, order)
    return cosines.cpu(), positions.cpu()


def _candidates(similarity: Tensor, threshold: Tensor, k: int) -> Tensor:
    """Columns of `similarity` (Q, M) among which are each row's k best, or all of them that exceed its threshold.

    Columns are looked at in groups of eight through their maxima: the k best columns lie in the k best groups, so that
    the costly selection runs over an eighth of the columns; and only over as many groups as beat what is known already.
    """
    width = similarity.shape[1] // GROUP
    rest = torch.arange(width * GROUP, similarity.shape[1], device=similarity.device)
    rest = rest.expand(len(similarity), -1)  # columns that fill no group
    if not width:
        return rest
    maxima = similarity[:, : width * GROUP].unflatten(1, (GROUP, width)).amax(1)  # (Q, M / 8)
    promising = int((maxima > threshold).sum(1).max())
    groups = maxima.topk(min(k, promising), sorted=False).indices  # (Q, g)
    columns = groups.unsqueeze(1) + width * torch.arange(GROUP, device=similarity.device).view(1, GROUP, 1)  # (Q, 8, g)
    return torch.cat([columns.flatten(1), rest], 1)


def read_rows(array: Array, start: int, end: int) -> Tensor:
    """Rows as a float32 tensor."""
    part = array[start:end]
    return part.float() if isinstance(part, Tensor) else torch.from_numpy(np.array(part, dtype=np.float32))
