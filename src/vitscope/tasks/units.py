"""Scores of single units (queries, pairs, videos, images), by which models are compared with each other.

A task keeps some arrays among its maps: `units.TASK`, (n, L), what each unit scored at each layer; `.floor`, (n,),
what it scores without any network; k-NN `.pixels` too, (n,), what it scores by the pixels alone; `.ids`, (n,), which
unit of the dataset each row is. A task's score is the mean of its rows, also where it is a ratio or a mean of ratios:
such scores are linearised.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import torch
from torch import Tensor

from vitscope.core.results import NOBODY, tidy

PREFIX = "units."
MOST = 10_000  # units that are kept of a task: more would say nothing new, and ImageNet has 50,000


def kept_units(
    task: str, scores: Tensor, floor: Tensor, ids: Tensor, total: int, *, pixels: Tensor | None = None
) -> dict[str, Tensor]:
    """The maps of a task. scores: (n, L), bool or float; floor, pixels: (n,), or one number; ids: int (n,), below
    `total`.

    Of more than `MOST` units a seeded choice is kept, which follows from `total` alone: all models keep the same.
    """
    if total > MOST:
        chosen = np.zeros(total, bool)
        chosen[np.random.default_rng(0).choice(total, MOST, replace=False)] = True
        rows = torch.from_numpy(chosen)[ids.long()]
    else:
        rows = torch.ones(len(ids), dtype=torch.bool)
    dtype = torch.uint8 if scores.dtype == torch.bool else torch.float16
    floors = {"floor": floor} | ({} if pixels is None else {"pixels": pixels})
    return {
        f"{PREFIX}{task}": scores[rows].to(dtype),
        **{f"{PREFIX}{task}.{name}": one.float().expand(len(ids))[rows].clone() for name, one in floors.items()},
        f"{PREFIX}{task}.ids": ids[rows].int(),
    }


def chance_row(measure: str, floor: Tensor, protocol: str = "corrected") -> pl.DataFrame:
    """The measure `..._chance`: what a task's score is without any network. floor: of each unit, or one number."""
    return tidy(NOBODY, f"{measure}_chance", floor.double().mean(), axes=(), n=floor.numel(), protocol=protocol)


def linearised(parts: Tensor, wholes: Tensor) -> Tensor:
    """What each unit adds to a mean over groups of sum(parts) / sum(wholes), to first order.

    parts, wholes: (n, L, G), sums of each unit in each group -> (n, L), whose mean is the score and whose spread tells
    the score's: the score plus n times the influence of each unit. Groups without anything in them do not count.
    """
    parts, wholes = torch.broadcast_tensors(parts.double(), wholes.double())
    total = wholes.sum(0)  # (L, G)
    there = total > 0
    total = total.where(there, 1.0)
    share = parts.sum(0) / total
    groups = there.sum(-1).clamp_min(1)  # (L,)
    influence = ((parts - share * wholes) / total).where(there, 0.0).sum(-1) / groups  # (n, L)
    return share.where(there, 0.0).sum(-1) / groups + len(parts) * influence


def in_groups(values: Tensor, groups: Tensor) -> Tensor:
    """Each unit's values in the column of its group: (n, ...), groups (n,) below G -> (n, ..., G)."""
    columns = torch.nn.functional.one_hot(groups).double()  # (n, G)
    return values.double().unsqueeze(-1) * columns.reshape(len(groups), *(1,) * (values.ndim - 1), -1)
