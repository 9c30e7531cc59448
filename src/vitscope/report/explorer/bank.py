"""What a model made of the gallery: tokens to find neighbours in, labelled patches to segment by, kinds of heads."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from vitscope.attention.analysis import AllAttention
from vitscope.attention.saliency import grid_mask
from vitscope.core.errors import VitscopeError
from vitscope.core.observer import Observer
from vitscope.data.batches import Batch, SkippedImages
from vitscope.data.samples import SampleList
from vitscope.models.backbone import Backbone
from vitscope.models.observe import observe
from vitscope.report.explorer.arrays import unit

VOTES = 10  # nearest labelled patches that say what a patch is
PATCHES, IMAGES = 10, 5  # neighbours that are shown


class Bank(Observer):
    """Watches the images of a gallery and keeps their patch tokens, scaled to length 1, in half precision."""

    wants = frozenset({"tokens"})

    def __init__(self, backbone: Backbone, samples: SampleList, budget: int = 128 << 20) -> None:
        """budget: bytes, which bounds how many of the images are looked at."""
        self.backbone, self.samples = backbone, samples
        layout, depth = backbone.layout, backbone.depth
        each = 2 * depth * layout.tokens * backbone.width
        self.planned = max(1, min(len(samples), budget // each))
        self.done = 0  # images of the plan that were tried
        self.seen: list[int] = []  # positions in the gallery
        self.attention_seen = AllAttention(layout, depth, backbone.patch)
        self.labelled = bool(samples.categories)
        self.needs_annotations = self.labelled
        self._patches: list[list[Tensor]] = [[] for _ in range(depth)]  # by layer: (B, N, D)
        self._summaries: list[list[Tensor]] = [[] for _ in range(depth)]  # by layer: (B, D)
        self._labels: list[Tensor] = []  # (N,) uint8: 0 nothing, else 1 + category
        self.kinds: Tensor | None = None  # (L, H) once all is done

    def begin(self, batch: Batch) -> None:
        self.seen += batch.indices.tolist()
        for one in batch.annotations or ():
            self._labels.append(patch_labels(one.categories, one.coverage, self.backbone.layout.grid))

    def tokens(self, layer: int, x: Tensor) -> None:
        layout = self.backbone.layout
        patches = x[:, layout.prefix :]
        summary = x[:, 0] if layout.has_cls else patches.mean(1)
        self._patches[layer].append(unit(patches).half().cpu())
        self._summaries[layer].append(unit(summary).half().cpu())

    def end(self) -> None: ...

    @property
    def complete(self) -> bool:
        return self.done >= self.planned

    def grow(self, enough: Callable[[], bool]) -> None:
        """Look at more images of the plan, one by one, until all are done or it is enough; at least at one."""
        watching: list[Bank | AllAttention] = [self, self.attention_seen]
        while not self.complete:
            stretch = range(self.done, self.done + 1)
            observe(self.backbone, self.samples, watching, stretch=stretch, skipped=SkippedImages(1))  # type: ignore[arg-type]
            self.done += 1
            if enough():
                break
        if self.complete and self.seen and self.kinds is None:
            self.kinds = self.attention_seen.kinds().kind

    def nearest(self, layer: int, patch: Tensor, summary: Tensor, without: int | None) -> dict[str, Tensor]:
        """The patches and images most like the ones given, by cosine similarity. patch, summary: (D,).

        without: a position in the gallery that is left out, since it is the image itself.
        """
        keep = self._others(without)
        numbers = torch.tensor(self.seen)[keep]
        patches = torch.cat(self._patches[layer])[keep]  # (n, N, D)
        scores = patches.flatten(0, 1).float() @ unit(patch)  # (n * N,)
        best, where = scores.topk(min(PATCHES, len(scores)))
        near = torch.cat(self._summaries[layer])[keep].float() @ unit(summary)  # (n,)
        alike, which = near.topk(min(IMAGES, len(near)))
        count = patches.shape[1]
        return {
            "patch_images": numbers[where // count].int(),
            "patches": (where % count).int(),
            "patch_scores": best,
            "images": numbers[which].int(),
            "image_scores": alike,
        }

    def segment(self, layer: int, patches: Tensor, without: int | None) -> dict[str, Tensor]:
        """What each patch is, by a vote of the nearest labelled ones. patches: (N, D).

        Returns labels uint8 (N,), 0 for background, and the share of similarity that voted for it, (N,).
        """
        if not self.labelled:
            raise VitscopeError("the images have no masks: there are no labelled patches to segment by")
        keep = self._others(without)
        known = torch.cat(self._patches[layer])[keep].flatten(0, 1).float()  # (M, D)
        labels = torch.stack(self._labels)[keep].flatten().long()  # (M,)
        weights, neighbours = (unit(patches) @ known.T).topk(min(VOTES, len(known)))  # (N, k)
        votes = torch.zeros(len(patches), len(self.samples.categories) + 1)
        votes.scatter_add_(1, labels[neighbours], weights.clamp_min(0))
        share, label = (votes / votes.sum(1, keepdim=True).clamp_min(1e-12)).max(1)
        return {"labels": label.byte(), "share": share}

    def _others(self, without: int | None) -> Tensor:
        keep = torch.tensor([i for i, number in enumerate(self.seen) if number != without], dtype=torch.int64)
        if not len(keep):
            raise VitscopeError("there is no other image to compare with: put more images into the folder")
        return keep


def patch_labels(categories: Tensor, coverage: Tensor, grid: tuple[int, int]) -> Tensor:
    """The category of every patch, uint8 (N,): 0 for background, else 1 + category; of two that cover a patch by half,
    the later one, as annotations are painted. coverage: uint8 (n, h, w)."""
    labels = torch.zeros(grid[0] * grid[1], dtype=torch.uint8)
    for category, covered in zip(categories.tolist(), coverage, strict=True):
        if covered.any():
            labels[grid_mask(covered[None].float() / 255, grid)] = 1 + category
    return labels
