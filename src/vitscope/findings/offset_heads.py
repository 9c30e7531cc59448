"""F2: heads that look at a fixed neighbour exist in every model.

Seen on real networks (64 COCO photos): ten in supervised B/16 (layers 2-5), ten in DINOv2 S/14 (layers 2-6), nine in
its relative with registers (layers 3-7), in all four directions; none in untrained networks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import polars as pl
import torch

from vitscope.attention.head_kinds import direction
from vitscope.attention.kinds import KINDS, local_kind
from vitscope.attention.kinds import THRESHOLDS as HEAD
from vitscope.findings.claim import Claim, Part, missing
from vitscope.findings.measured import Measured
from vitscope.findings.outcome import Evidence
from vitscope.findings.tables import PAPER, Model, Study, models_of, titles
from vitscope.findings.thresholds import Thresholds

OFFSET = "offset local"
Heads = list[tuple[int, int]]  # layer and head, 1-based


def _parts(study: Study, t: Thresholds) -> Iterator[Part]:
    kinds = study.rows("head_kind", OFFSET)
    models = [model for model in models_of(kinds) if model.taught]
    if not models:
        yield missing("no kinds of heads (head_kind) of a taught model")
        return
    if study.protocol == PAPER:
        if absent := [model for model in models if f"{model.title}/aligned.paper" not in study.results.maps]:
            yield missing(f"no aligned maps of {titles(absent)}")
            return
        found = {model: _published(study, model) for model in models}
    else:
        found = {model: _stable(study, kinds, model, t) for model in models}
    evidence = []
    for model, heads in found.items():
        evidence.append(Measured.of(len(heads)).as_evidence(f"{model.title}: offset local heads"))
        if heads:
            evidence.append(_clearest(study, model, heads))
    without = [model for model, heads in found.items() if not heads]
    if without:
        yield Part(False, f"{titles(without)}: no head that looks at a fixed neighbour", tuple(evidence))
    else:
        counts = ", ".join(f"{model.title} {len(heads)}" for model, heads in found.items())
        yield Part(True, f"every taught model has offset local heads ({counts})", tuple(evidence))


def _stable(study: Study, kinds: pl.DataFrame, model: Model, t: Thresholds) -> Heads:
    """Offset heads that resampling the images confirms; where there was nothing to resample, all of them."""
    here = kinds.filter((pl.col("model") == model.title) & (pl.col("value") == 1)).select("layer", "head")
    firm = study.rows("head_kind_stability").filter(pl.col("model") == model.title).select("layer", "head", "value")
    joined = here.join(firm, on=["layer", "head"], how="left").filter(
        pl.col("value").is_null() | (pl.col("value") >= t.offset_stability)
    )
    return joined.sort("layer", "head").select("layer", "head").rows()


def _published(study: Study, model: Model) -> Heads:
    """The same rule on the map as published, which is not divided by how many sources reach an offset."""
    aligned = study.results.maps[f"{model.title}/aligned.paper"].double()  # (L, H, 2h-1, 2w-1)
    grid = ((aligned.shape[-2] + 1) // 2, (aligned.shape[-1] + 1) // 2)
    prefix = study.results.maps.get(f"{model.title}/prefix", torch.zeros(*aligned.shape[:2], 0))  # (L, H, prefix)
    offset = local_kind(aligned, prefix.double().sum(-1), grid) == KINDS.index(OFFSET)
    return [(layer + 1, head + 1) for layer, head in offset.nonzero().tolist()]


def _clearest(study: Study, model: Model, heads: Heads) -> Evidence:
    """The head with the highest peak: where it looks, how much of its attention is there and on the token itself."""
    shape = {}
    for measure in ("peak", "self_attention", "peak_down", "peak_across"):
        mine = study.rows(measure).filter(pl.col("model") == model.title)
        shape[measure] = {(layer, head): value for layer, head, value in mine.select("layer", "head", "value").rows()}
    best = max(heads, key=lambda place: shape["peak"].get(place, 0.0))
    peak, itself = shape["peak"].get(best, math.nan), shape["self_attention"].get(best, math.nan)
    where = direction(*(int(shape[axis].get(best, 0)) for axis in ("peak_down", "peak_across")))
    what = f"{model.title}: attention of layer {best[0]}, head {best[1]} on the token {where} ({itself:.2f} on itself)"
    return Evidence(what, peak)


def _rule(t: Thresholds) -> str:
    return (
        "Every taught model has at least one offset local head: its count-normalised aligned map peaks at one fixed "
        f"neighbour that holds {HEAD.offset_peak:.0%} of the attention and {HEAD.offset_margin} times what the token "
        f"itself gets, in {t.offset_stability:.0%} of resamples of the images."
    )


F2 = Claim(
    key="F2",
    text="Offset local attention heads, which look at one fixed neighbour rather than at the token itself, exist in "
    "every model.",
    rule=_rule,
    figure="head_kind",
    measures=("offset",),
    parts=_parts,
)
