"""Tokens that draw attention whoever looks: sinks; maps that no longer depend on the query; what looks at itself."""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl
import torch
from torch import Tensor

from vitscope.attention.view import TINY, AttentionStatistic, AttentionView
from vitscope.core.analysis import Measure
from vitscope.core.results import NOBODY, tidy_mean
from vitscope.core.statistic import Statistic
from vitscope.models.layout import TokenLayout

LEAST_MEDIAN = 1e-2  # of even attention: below, "infinitely more than the others" would swallow every mean
PLACES = ("cls", "register", "patch")  # where a sink can be

MEASURES = (
    Measure("sink_ratio", "attention sink", "attention on the most attended token over that on the median token"),
    Measure("sink_place", "place of the sink", "share of images whose most attended token is CLS, a register, a patch"),
    Measure(
        "attention_nmi",
        "dependence on the query",
        "mutual information of who looks and what is looked at, normalised: 0 if all tokens look at the same",
    ),
    Measure("cls_self", "CLS on itself", "share of CLS's attention that stays on CLS"),
    Measure("cls_entropy", "entropy of CLS", "how widely CLS's attention is spread over patches", "nats"),
    Measure("patch_self", "patches on themselves", "share of a patch token's attention on itself"),
)


def sink_ratio(received: Tensor) -> Tensor:
    """Attention on the most attended token over that on the median token. received: (..., T), sums to 1 -> (...).

    The median counts at least a hundredth of even attention.

    >>> sink_ratio(torch.tensor([0.7, 0.1, 0.1, 0.1])).item()
    7.0
    """
    floor = LEAST_MEDIAN / received.shape[-1]
    return received.amax(-1) / received.median(-1).values.clamp_min(floor)


def attention_nmi(received_entropy: Tensor, row_entropy: Tensor, tokens: int) -> Tensor:
    """Normalised mutual information of query and key, all queries being equally likely (Park et al., 2305.00729).

    received_entropy: H(mean over queries of A); row_entropy: mean over queries of H(A), in nats; tokens: T queries.
    NMI = (H(mean A) - mean H(A)) / sqrt(log T * H(mean A)): 0 if every query looks at the same, 1 if each looks at a
    token of its own; 0 too if all look at one token.

    >>> attention_nmi(torch.tensor(math.log(5)), torch.tensor(0.0), 5).item()  # the identity
    1.0
    """
    information = (received_entropy - row_entropy).clamp_min(0)
    norm = (math.log(max(tokens, 2)) * received_entropy).clamp_min(0).sqrt()
    return torch.where(norm > 0, information / norm.clamp_min(TINY), 0.0)


def entropy_of(share: Tensor) -> Tensor:
    """Entropy of distributions in nats: (..., T) -> (...); 0 for a row of zeros."""
    return -(share * share.clamp_min(TINY).log()).sum(-1)


@dataclass(frozen=True)
class Sinks:
    """Per image: (n, L, H) each; the two of CLS are None for a model without one."""

    ratio: Tensor
    token: Tensor  # which token is the most attended one, counted from 0
    received_entropy: Tensor  # nats, of the mean over queries
    patch_self: Tensor
    cls_self: Tensor | None
    cls_entropy: Tensor | None


class SinkStatistic(AttentionStatistic):
    """What tokens receive, from the column means that the maps are made of."""

    name = "sinks"

    def see(self, layer: int, view: AttentionView) -> None:
        received = view.column_means[0]  # (B, H, T), over all sources
        self.note("ratio", sink_ratio(received))
        self.note("token", received.argmax(-1))
        self.note("received_entropy", entropy_of(received))
        prefix = self.layout.prefix
        self.note("patch_self", view.probs.diagonal(dim1=-2, dim2=-1)[..., prefix:].mean(-1))
        if view.cls_map is not None:
            mass = view.cls_map.sum(-1, keepdim=True)
            self.note("cls_self", view.probs[:, :, 0, 0].clone())
            self.note("cls_entropy", entropy_of(view.cls_map / mass.clamp_min(TINY)))

    def result(self) -> Sinks:
        rows = {name: self.rows_of(name).double() for name in Sinks.__dataclass_fields__ if self.has_rows(name)}
        return Sinks(**({"cls_self": None, "cls_entropy": None} | rows))  # type: ignore[arg-type]


def places_of(token: Tensor, layout: TokenLayout) -> dict[str, Tensor]:
    """Which tokens are CLS, a register, a patch. token: (...) numbers -> bool (...) for each place there is."""
    found = {
        "cls": (token == 0) & layout.has_cls,
        "register": (token >= int(layout.has_cls)) & (token < layout.prefix),
        "patch": token >= layout.prefix,
    }
    there = {"cls": layout.has_cls, "register": layout.prefix > int(layout.has_cls), "patch": True}
    return {place: found[place] for place in PLACES if there[place]}


def sink_tables(sinks: SinkStatistic, dispersion: Statistic) -> list[pl.DataFrame]:
    """Rows of all measures. dispersion: of the same images; the entropy of rows is taken from it."""
    rows = [tidy_mean(NOBODY, "sink_ratio", sinks.blocks_of("ratio"))]
    for place in places_of(torch.zeros(()), sinks.layout):
        shares = (places_of(block, sinks.layout)[place].double() for block in sinks.blocks_of("token"))
        rows.append(tidy_mean(NOBODY, "sink_place", shares, variant=place))
    both = zip(sinks.blocks_of("received_entropy"), dispersion.blocks_of("entropy"), strict=True)
    nmi = (attention_nmi(received.double(), entropy.double(), sinks.layout.tokens) for received, entropy in both)
    rows.append(tidy_mean(NOBODY, "attention_nmi", nmi))
    there = (name for name in ("patch_self", "cls_self", "cls_entropy") if sinks.has_rows(name))
    return [*rows, *(tidy_mean(NOBODY, name, sinks.blocks_of(name)) for name in there)]


def sink_map(sinks: SinkStatistic) -> Tensor:
    """How often each patch is the most attended token: (L, H, h, w), shares of images."""
    total: Tensor | None = None
    for block in sinks.blocks_of("token"):
        hits = torch.nn.functional.one_hot(block.long(), sinks.layout.tokens).sum(0).double()  # (L, H, T)
        total = hits if total is None else total + hits
    assert total is not None, "no rows"
    shares: Tensor = (total / sinks.count)[..., sinks.layout.prefix :].unflatten(-1, sinks.layout.grid)
    return shares
