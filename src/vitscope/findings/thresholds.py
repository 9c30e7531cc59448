"""The one table of what counts: every threshold of the findings, with its reason."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any


def _because(value: float, reason: str) -> Any:
    return field(default=value, metadata={"reason": reason})


@dataclass(frozen=True)
class Thresholds:
    """Numbers that decide verdicts. `threshold_table` gives each with its reason."""

    follow: float = _because(
        2 / 3, "share of a teaching's models that must behave as claimed: one exception in three; of two models, both"
    )
    least_depth: int = _because(4, "layers: with fewer there is no last quarter that is not half of the network")
    early: float = _because(1 / 3, "of the depth: layers 1-4 of 12, before the middle")
    early_to_mid: float = _because(2 / 3, "of the depth: layers 1-8 of 12, all that comes before late processing")
    late_share: float = _because(0.4, "of the late heads look the same way: of three ways, more than an even third")
    compact_margin: float = _because(0.05, "of a mask's neighbours: less is not seen in a map")
    repeat_margin: float = _because(0.05, "in mean correlation of late maps: less is not seen in maps")
    offset_stability: float = _because(0.8, "of resamples of the images find the same head to be offset local")
    uniform_distance: float = _because(
        0.52, "patch-free attention distance of uniform attention (0.516 for 7 x 7 tokens, 0.521 for 28 x 28)"
    )
    local_head: float = _because(0.5, "of the uniform distance at most: a head that looks nearby")
    global_head: float = _because(0.75, "of the uniform distance at least: a head that looks all over the image")
    order_swing: float = _because(
        0.1, "patch-free distance by which two curves move apart over depth: a quarter of the range that ViTs span"
    )
    above_chance: float = _because(
        1.25, "times the average precision (or IoU) of an untaught network: a quarter more than chance"
    )
    decline: float = _because(0.15, "of the peak IoU lost in the last quarter: more than one in seven")
    far_less: float = _because(0.5, "of the decline under explicit supervision: half of it or less is 'far less'")
    cka_margin: float = _because(0.05, "CKA of unrelated networks differs by a few hundredths from image set to set")
    rising: float = _because(0.7, "rank correlation of purity with depth: a layer or two may step back, not a trend")
    half_way: float = _because(0.5, "of the way from the first layer's purity to the best: where a curve rises")
    competitive: float = _because(
        0.75, "of the best score: the paper's contrastive models keep 0.8 or more on global tasks, MAE and BEiT a half"
    )
    block_contrast: float = _because(0.1, "CKA within two stages above CKA between them: visible in a heat map")
    stage_edge: float = _because(
        1 / 6, "of the depth, at either end: a boundary there sets a block or two apart, it does not divide a network"
    )
    cross_margin: float = _because(0.05, "CKA of early with late layers above early with middle ones: an X, not noise")
    sink_factor: float = _because(2.0, "times the sink of the others: less differs from one image set to the next")
    position_margin: float = _because(0.05, "of the variance of patch tokens: a twentieth more is position")
    nmi_margin: float = _because(0.03, "in normalised mutual information: the range that late layers span is some 0.3")
    cls_self_margin: float = _because(0.05, "of CLS's attention: a twentieth more stays on itself")


THRESHOLDS = Thresholds()


def threshold_table(thresholds: Thresholds = THRESHOLDS) -> list[tuple[str, float, str]]:
    """(name, value, reason) of each, for the methods chapter of a report."""
    return [(f.name, getattr(thresholds, f.name), f.metadata["reason"]) for f in fields(thresholds)]
