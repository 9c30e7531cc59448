"""Does attention fall on the object? Intersection over union of the most attended tokens with object masks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from vitscope.attention.view import AttentionStatistic, AttentionView
from vitscope.data.batches import Batch
from vitscope.models.layout import Grid

MASS = 0.6  # share of a map's mass that the predicted mask must hold
SOURCES = ("cls", "spatial", "centre")  # who looks: CLS, the mean of the spatial tokens, the token at the centre


def top_mass_mask(maps: Tensor, mass: float = MASS) -> Tensor:
    """The smallest set of top tokens that holds at least `mass` of a map, the crossing token kept.

    maps: (..., N), non-negative. Returns bool (..., N); an all-zero map has an empty mask.

    >>> top_mass_mask(torch.tensor([0.1, 0.5, 0.15, 0.25])).tolist()
    [False, True, False, True]
    """
    total = maps.sum(-1, keepdim=True)
    values, order = maps.sort(dim=-1, descending=True, stable=True)
    before = values.cumsum(-1) - values  # mass of the tokens ranked higher
    keep = (before < mass * total) & (total > 0)
    return torch.zeros_like(keep).scatter(-1, order, keep)


def iou(predicted: Tensor, truth: Tensor) -> Tensor:
    """Intersection over union of bool masks over the last axis; 0 if both are empty."""
    intersection = (predicted & truth).sum(-1)
    union = (predicted | truth).sum(-1)
    return intersection / union.clamp_min(1)


def grid_mask(coverage: Tensor, grid: Grid) -> Tensor:
    """`corrected`: a cell is foreground if objects cover at least half its area.

    coverage: (B, h_px, w_px) in [0, 1]. Returns bool (B, N). An object smaller than any cell marks the cell it covers
    most, so that no object vanishes.
    """
    cells = F.adaptive_avg_pool2d(coverage.unsqueeze(1).float(), grid).flatten(1)  # (B, N)
    mask = cells >= 0.5
    fullest = cells == cells.max(-1, keepdim=True).values
    fallback = ~mask.any(-1, keepdim=True) & fullest & (cells > 0)
    return mask | fallback


def grid_mask_paper(mask: Tensor, grid: Grid) -> Tensor:
    """`paper`: any non-zero coverage after a bicubic reduction is foreground. mask: (B, h_px, w_px) in [0, 1]."""
    reduced = F.interpolate(mask.unsqueeze(1).float(), size=grid, mode="bicubic", antialias=True).flatten(1)
    return reduced > 1e-6


@dataclass(frozen=True)
class Saliency:
    """IoU per picture with objects, by (source, protocol): `heads` (n, L, H); `merged` (n, L), heads averaged first."""

    heads: dict[tuple[str, str], Tensor]
    merged: dict[tuple[str, str], Tensor]
    n: int
    without_object: int  # pictures whose objects all lie outside the crop


class SaliencyStatistic(AttentionStatistic):
    """IoU of each head's most attended tokens with the union of object masks. Needs batches with annotations."""

    name = "saliency"
    needs_annotations = True

    def begin(self, batch: Batch) -> None:
        super().begin(batch)
        assert batch.annotations is not None, "saliency needs masks"
        h, w = batch.images.shape[-2:]
        union = torch.zeros(len(batch.images), h, w)
        for i, annotation in enumerate(batch.annotations):
            if len(annotation.coverage):
                union[i] = annotation.coverage.amax(0).float() / 255
        self._truth = {
            "corrected": grid_mask(union, self.layout.grid),
            "paper": grid_mask_paper(union, self.layout.grid),
        }

    def see(self, layer: int, view: AttentionView) -> None:
        prefix = self.layout.prefix
        maps = {
            "spatial": view.column_means[2][..., prefix:],
            "centre": view.probs[:, :, prefix + self.layout.centre, prefix:],
        }
        if view.cls_map is not None:
            maps["cls"] = view.cls_map
        for source, per_head in maps.items():
            predicted = top_mass_mask(per_head)
            merged = top_mass_mask(per_head.mean(1))
            for protocol, truth in self._truth.items():
                truth = truth.to(predicted.device)
                self.note(f"heads/{source}/{protocol}", iou(predicted, truth.unsqueeze(1)))
                self.note(f"merged/{source}/{protocol}", iou(merged, truth))

    def end(self) -> None:
        self.put("has_object", self._truth["paper"].any(-1))
        super().end()

    def result(self) -> Saliency:
        keep = self.rows_of("has_object").bool()
        heads: dict[tuple[str, str], Tensor] = {}
        merged: dict[tuple[str, str], Tensor] = {}
        for name in self._rows:
            kind, *rest = name.split("/")
            if kind in ("heads", "merged"):
                source, protocol = rest
                (heads if kind == "heads" else merged)[source, protocol] = self.rows_of(name)[keep].double()
        return Saliency(heads, merged, n=int(keep.sum()), without_object=int((~keep).sum()))


def best_heads(heads: Tensor, protocol: str) -> tuple[Tensor, Tensor]:
    """The best head of each layer and its score. heads: (n, L, H) -> score (n, L), head (L,).

    `corrected`: the head with the best mean over pictures, and its scores. `paper`: the best head of each picture
    (an oracle that grows with the number of heads); the head named is the most frequent one.
    """
    if protocol == "paper":
        scores, which = heads.max(-1)
        return scores, which.mode(0).values
    which = heads.mean(0).argmax(-1)  # (L,)
    return heads.gather(-1, which.expand(len(heads), -1).unsqueeze(-1)).squeeze(-1), which
