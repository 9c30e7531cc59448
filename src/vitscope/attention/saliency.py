"""Does attention fall on the object? Two measures against object masks on the grid of tokens.

IoU of the most attended tokens, as published: those that hold 60 % of a map. An even map needs most of the image for
that and so scores well on large objects: on COCO photos an untrained network reaches the IoU of trained ones.
Average precision asks for the order alone: how well attention ranks tokens of objects above the others. A map that
knows nothing scores the objects' share of the image, however even it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from vitscope.attention.ranking import Ranking, rank
from vitscope.attention.view import TINY, AttentionStatistic, AttentionView
from vitscope.core.analysis import PROTOCOLS, Analysis, Found, Measure, Outcome, Stream, Watch
from vitscope.core.results import NOBODY, tidy, tidy_mean
from vitscope.models.layout import Grid, TokenLayout

if TYPE_CHECKING:
    from vitscope.data.batches import Batch
    from vitscope.data.dataset import MaskSet
    from vitscope.models.shape import ModelShape

MASS = 0.6  # share of a map's mass that the predicted mask must hold


def top_mass_mask(maps: Tensor, mass: float = MASS) -> Tensor:
    """The smallest set of top tokens that holds at least `mass` of a map, the crossing token kept.

    maps: (..., N), non-negative. Returns bool (..., N); an all-zero map has an empty mask.

    >>> top_mass_mask(torch.tensor([0.1, 0.5, 0.15, 0.25])).tolist()
    [False, True, False, True]
    """
    return ranked_mass_mask(rank(maps), maps.sum(-1, keepdim=True), mass)


def ranked_mass_mask(ranking: Ranking, total: Tensor, mass: float = MASS) -> Tensor:
    """The same from maps that are ranked already. total: of each map, (..., 1)."""
    values, order = ranking
    before = values.cumsum(-1) - values  # mass of the tokens ranked higher
    keep = (before < mass * total) & (total > 0)
    return torch.zeros_like(keep).scatter(-1, order, keep)


def iou(predicted: Tensor, truth: Tensor) -> Tensor:
    """Intersection over union of bool masks over the last axis; 0 if both are empty."""
    intersection = (predicted & truth).sum(-1)
    union = (predicted | truth).sum(-1)
    return intersection / union.clamp_min(1)


def average_precision(maps: Tensor, truth: Tensor) -> Tensor:
    """Precision at the rank of each true token, averaged over them: area under the curve of precision over recall.

    maps: (..., N), truth: bool, of a shape that broadcasts. Tokens of equal attention share the rank of the last of
    them, as in scikit-learn. 0 without a true token.

    >>> average_precision(torch.tensor([0.5, 0.3, 0.2]), torch.tensor([True, False, True])).item()  # (1/1 + 2/3) / 2
    0.833...
    """
    return ranked_precision(rank(maps), truth)


def ranked_precision(ranking: Ranking, truth: Tensor) -> Tensor:
    """The same from maps that are ranked already."""
    values, order = ranking
    hits = truth.expand(values.shape).gather(-1, order).to(values.dtype)
    ranks = torch.arange(1, values.shape[-1] + 1, device=values.device)
    last = F.pad(values[..., 1:] < values[..., :-1], (0, 1), value=True)  # of the tokens that are equal
    ends = torch.where(last, ranks, values.shape[-1]).flip(-1).cummin(-1).values.flip(-1)  # rank of the last of each
    precision = (hits.cumsum(-1) / ranks).gather(-1, ends - 1)
    found: Tensor = (precision * hits).sum(-1) / hits.sum(-1).clamp_min(1)
    return found


def grid_mask(coverage: Tensor, grid: Grid) -> Tensor:
    """`corrected`: a cell is foreground if objects cover at least half its area.

    coverage: (n, h_px, w_px) in [0, 1], one object each. Returns bool (N,). An object that fills half of no cell marks
    the one it covers most, so that none vanishes beside a larger one.
    """
    if not len(coverage):
        return torch.zeros(grid[0] * grid[1], dtype=torch.bool)
    union = coverage.amax(0, keepdim=True)
    cells = F.adaptive_avg_pool2d(torch.cat([coverage, union]).unsqueeze(1).float(), grid).flatten(1)  # (n + 1, N)
    fullest = cells.amax(-1, keepdim=True)
    fallback = (fullest < 0.5) & (cells == fullest) & (cells > 0)
    return (cells[-1] >= 0.5) | fallback[:-1].any(0)


def centred_discs(grid: Grid) -> Tensor:
    """All discs about the centre of a grid that differ, from the smallest up: bool (R, N).

    >>> centred_discs((2, 2)).tolist()
    [[True, True, True, True]]
    """
    rows, columns = (torch.arange(edge) - (edge - 1) / 2 for edge in grid)
    distance = (rows[:, None].square() + columns.square()).flatten()  # (N,), squared: exact
    discs: Tensor = distance <= distance.unique()[:, None]
    return discs


@dataclass(frozen=True)
class SaliencyScores:
    """Per image with objects: `heads` (n, L, H); `merged` (n, L), heads averaged first.

    Who looks ("source"): cls, spatial (the mean of the spatial tokens), centre (the token there), pool (the query of a
    pooling head, at the last layer alone).

    heads, merged: IoU by (source, protocol); precision_heads, precision_merged: average precision by source, against
    the truth of `corrected`.
    """

    heads: dict[tuple[str, str], Tensor]
    merged: dict[tuple[str, str], Tensor]
    precision_heads: dict[str, Tensor]
    precision_merged: dict[str, Tensor]
    share: Tensor  # (n,) of the grid that objects cover: the average precision of a map that knows nothing
    discs: Tensor  # (n, R): IoU of every disc about the centre
    n: dict[str, int]  # images with objects, by protocol
    without_object: dict[str, int]  # images whose objects all lie outside the crop, or vanish as they are reduced


class SaliencyStatistic(AttentionStatistic):
    """IoU of each head's most attended tokens with the union of object masks. Needs batches with annotations.

    `paper`, where it differs: spatial sources are summed as they are and renormalised once; the centre of an even grid
    is the upper left one of four tokens; the heads of CLS and centre are renormalised before they are merged; any
    trace that an object leaves in a cell makes it foreground. mass: of a map, that the predicted mask must hold.
    """

    name = "saliency"
    wants = frozenset({"attention", "pool"})
    needs_annotations = True

    def __init__(self, layout: TokenLayout, depth: int, mass: float = MASS) -> None:
        super().__init__(layout, depth)
        self.mass = mass

    def begin(self, batch: Batch) -> None:
        super().begin(batch)
        assert batch.annotations is not None, "saliency needs masks"
        corrected = [grid_mask(one.coverage.float() / 255, self.layout.grid) for one in batch.annotations]
        paper = [(one.published > 0).flatten(1).any(0) for one in batch.annotations]
        self._truth = self._annotated = {"corrected": torch.stack(corrected), "paper": torch.stack(paper)}

    def see(self, layer: int, view: AttentionView) -> None:
        prefix, (h, w) = self.layout.prefix, self.layout.grid
        centre = {"corrected": self.layout.centre, "paper": (h - 1) // 2 * w + (w - 1) // 2}
        looks = {  # corrected, paper
            "spatial": [view.column_means[at][..., prefix:] for at in (2, 1)],
            "centre": [view.probs[:, :, prefix + centre[protocol], prefix:] for protocol in PROTOCOLS],
        }
        if view.cls_map is not None:
            looks["cls"] = [view.cls_map] * 2
        for source, (corrected, paper) in looks.items():
            self._look(source, corrected, paper)

    def pool(self, layer: int, probs: Tensor, x: Tensor) -> None:
        maps = probs.float()
        self._look("pool", maps, maps)

    def _look(self, source: str, corrected: Tensor, paper: Tensor) -> None:
        """Score the maps of a source, (B, H, N), of both protocols."""
        self._truth = {protocol: truth.to(corrected.device) for protocol, truth in self._truth.items()}
        ranking = rank(corrected)
        top = ranked_mass_mask(ranking, corrected.sum(-1, keepdim=True), self.mass)
        self._score("corrected", source, top, merged := corrected.mean(1))
        truth = self._truth["corrected"]
        self.note(f"precision_heads/{source}", ranked_precision(ranking, truth.unsqueeze(1)))
        self.note(f"precision_merged/{source}", average_precision(merged, truth))
        if paper is not corrected:
            top = top_mass_mask(paper, self.mass)
        if source != "spatial":
            paper = paper / paper.sum(-1, keepdim=True).clamp_min(TINY)
        self._score("paper", source, top, paper.mean(1))

    def _score(self, protocol: str, source: str, top: Tensor, merged: Tensor) -> None:
        """IoU of the heads' masks (B, H, N), and of the heads' mean (B, N)."""
        truth = self._truth[protocol]
        self.note(f"heads/{source}/{protocol}", iou(top, truth.unsqueeze(1)))
        self.note(f"merged/{source}/{protocol}", iou(top_mass_mask(merged, self.mass), truth))

    def end(self) -> None:
        for protocol, truth in self._annotated.items():  # on the host, where it came from: nothing waits for a device
            self.put(f"has_object/{protocol}", truth.any(-1))
        truth = self._annotated["corrected"]
        self.put("share", truth.float().mean(-1))
        self.put("discs", iou(centred_discs(self.layout.grid), truth.unsqueeze(1)))
        super().end()

    def result(self, places: Tensor | None = None) -> SaliencyScores:
        """places: as for `rows_of`."""
        keep = {protocol: self.rows_of(f"has_object/{protocol}", places).bool() for protocol in PROTOCOLS}
        heads: dict[tuple[str, str], Tensor] = {}
        merged: dict[tuple[str, str], Tensor] = {}
        precision: dict[str, dict[str, Tensor]] = {"precision_heads": {}, "precision_merged": {}}
        for name in self._rows:
            kind, *rest = name.split("/")
            if kind in ("heads", "merged"):
                source, protocol = rest
                scores = self.rows_of(name, places)[keep[protocol]].double()
                (heads if kind == "heads" else merged)[source, protocol] = scores
            elif kind in precision:
                precision[kind][rest[0]] = self.rows_of(name, places)[keep["corrected"]].double()
        n = {protocol: int(kept.sum()) for protocol, kept in keep.items()}
        lost = {protocol: len(kept) - n[protocol] for protocol, kept in keep.items()}
        share, discs = (self.rows_of(name, places)[keep["corrected"]].double() for name in ("share", "discs"))
        return SaliencyScores(heads, merged, n=n, without_object=lost, share=share, discs=discs, **precision)


def best_heads(heads: Tensor, protocol: str) -> tuple[Tensor, Tensor]:
    """The best head of each layer and its score. heads: (n, L, H) -> score (n, L), head (L,).

    `corrected`: the head with the best mean over images, and its scores. `paper`: the best head of each image
    (an oracle that grows with the number of heads); the head named is the most frequent one.
    """
    if protocol == "paper":
        scores, which = heads.max(-1)
        return scores, which.mode(0).values
    which = heads.mean(0).argmax(-1)  # (L,)
    return heads.gather(-1, which.expand(len(heads), -1).unsqueeze(-1)).squeeze(-1), which


def saliency_tables(saliency: SaliencyScores, mass: float = MASS) -> list[pl.DataFrame]:
    """mass: other than the protocols' own is part of the variant, so that nobody takes its rows for theirs."""
    rows = []
    depth = max((values.shape[1] for values in saliency.heads.values()), default=0)
    for (source, protocol), values in saliency.heads.items():
        if not len(values):
            continue
        variant = source if mass == MASS else f"{source}, mass {mass:g}"
        first = depth - values.shape[1] + 1
        options: dict[str, Any] = {"variant": variant, "protocol": protocol, "first_layer": first}
        best, which = best_heads(values, protocol)
        rows.append(tidy_mean(NOBODY, "saliency_iou", values, **options))
        rows.append(tidy_mean(NOBODY, "saliency_best_head", best, axes=("layer",), **options))
        number = (which + 1).double()
        rows.append(tidy(NOBODY, "saliency_best_head_name", number, axes=("layer",), n=len(values), **options))
        rows.append(tidy_mean(NOBODY, "saliency_merged", saliency.merged[source, protocol], axes=("layer",), **options))
    for source, values in saliency.precision_heads.items():
        if len(values):
            best, _ = best_heads(values, "corrected")
            merged = saliency.precision_merged[source]
            options = {"variant": source, "first_layer": depth - values.shape[1] + 1}
            rows.append(tidy_mean(NOBODY, "saliency_ap", values, **options))
            rows.append(tidy_mean(NOBODY, "saliency_ap_best_head", best, axes=("layer",), **options))
            rows.append(tidy_mean(NOBODY, "saliency_ap_merged", merged, axes=("layer",), **options))
    if len(saliency.share):
        rows.append(tidy_mean(NOBODY, "object_share", saliency.share, axes=()))
        best = saliency.discs[:, saliency.discs.mean(0).argmax()]
        rows.append(tidy_mean(NOBODY, "saliency_disc", best, axes=()))
    return rows


class Saliency(Analysis):
    """Does attention fall on the objects? Under both protocols from one pass."""

    name = "saliency"
    title = "attention saliency"
    domain = "how"
    kind = "masks"
    measures = (
        Measure("saliency_iou", "saliency", "IoU of a head's most attended patches with object masks"),
        Measure("saliency_best_head", "saliency of the best head", "the same for the best head of each layer"),
        Measure("saliency_merged", "saliency, heads merged", "the same after averaging the heads"),
        Measure("saliency_ap", "saliency, average precision", "how well attention ranks object patches above others"),
        Measure("saliency_ap_best_head", "average precision of the best head", "the same for each layer's best head"),
        Measure("saliency_ap_merged", "average precision, heads merged", "the same after averaging the heads"),
        Measure("object_share", "share of objects", "of the grid: the average precision of a map that knows nothing"),
        Measure("saliency_disc", "centred disc", "IoU of the best disc about the centre, the same for all images"),
    )

    mass: float = Field(MASS, gt=0, lt=1, description="Share of a map that the predicted mask of IoU must hold")

    def passes(self, dataset: MaskSet, shape: ModelShape) -> Sequence[Stream]:
        settings = {} if self.mass == MASS else {"mass": self.mass}
        return [Stream(dataset.shuffled, (Watch.by(SaliencyStatistic, **settings),))]

    def reduce(self, dataset: MaskSet, found: Found) -> Outcome:
        scores: SaliencyScores = found.statistic("saliency").result(dataset.order)
        notes = []
        for protocol, lost in scores.without_object.items():
            under = "" if protocol == "corrected" else f" under {protocol}"
            if not scores.n[protocol]:
                notes.append(f"{{model}}: no object lies inside any crop: there is no saliency{under}")
            elif lost:
                notes.append(
                    f"{{model}}: {lost} images have no object inside the crop; saliency leaves them out{under}"
                )
        return Outcome(saliency_tables(scores, self.mass), notes=notes)
