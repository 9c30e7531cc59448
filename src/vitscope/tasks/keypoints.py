"""Keypoint correspondence: the left eye of one cat, by its feature alone, found on another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl
import torch
from torch import Tensor

from vitscope.data.batches import SkippedImages
from vitscope.data.keypoints import KeypointSet
from vitscope.errors import BadData
from vitscope.models.backbone import Backbone
from vitscope.observe import observe
from vitscope.progress import Progress, silent
from vitscope.results import Label, tidy, tidy_mean
from vitscope.statistic import Statistic
from vitscope.tasks.confidence import grouped_ratio, grouped_ratio_interval
from vitscope.tasks.geometry import PaddedPreprocessing
from vitscope.tasks.pairs import PairMatcher

# -- protocol ------------------------------------------------------------------------------------------------

ALPHAS = (0.1, 0.05, 0.01)  # a point is right if it is nearer than this share of the target box's longer side


@dataclass(frozen=True)
class Protocol:
    """`paper`: points cut to whole pixels (x truncated, y rounded), features normalised before they are interpolated,
    and matches that may land in the padding. `corrected`: none of that. Both are asked about all pairs."""

    name: str = "corrected"
    whole_pixels: bool = False
    renormalise: bool = True
    match_padding: bool = False


PAPER = Protocol("paper", whole_pixels=True, renormalise=False, match_padding=True)
CORRECTED = Protocol()


@dataclass(frozen=True)
class KeypointConfig:
    protocol: Protocol = CORRECTED


DEFAULT = KeypointConfig()


# -- scores --------------------------------------------------------------------------------------------------


def correct_points(predicted: Tensor, truth: Tensor, box: Sequence[float], alphas: Sequence[float] = ALPHAS) -> Tensor:
    """Which points are near enough: predicted (L, K, 2), truth (K, 2), box (x1, y1, x2, y2) -> bool (A, L, K)."""
    longer = max(box[2] - box[0], box[3] - box[1])
    distance = (predicted.double() - truth.double()).norm(dim=-1)  # (L, K)
    return torch.stack([distance < alpha * longer for alpha in alphas])


@dataclass(frozen=True)
class KeypointScores:
    """For every pair that could be asked: how many points are right at each layer, (P, A, L), of how many, (P,)."""

    right: Tensor
    points: Tensor
    category: Tensor  # int64 (P,): position in categories
    categories: tuple[str, ...]
    pairs: tuple[int, ...]  # which pair of the set each row is
    predicted: Mapping[int, Tensor] = field(default_factory=dict)  # pair -> (L, K, 2) in pixels of the target

    def rows(self, label: Label, protocol: str, seed: int = 0) -> list[pl.DataFrame]:
        """Mean over categories (variant ""), `per_image`, `per_point`, and each category; intervals over pairs."""
        tables = []
        together = torch.zeros_like(self.category)
        for i, alpha in enumerate(ALPHAS):
            right, measure = self.right[:, i], f"pck@{alpha}"
            options: dict[str, Any] = {"axes": ("layer",), "protocol": protocol}
            everything = torch.ones_like(self.category, dtype=torch.bool)
            groupings = {"": (self.category, everything), "per_point": (together, everything)}
            if len(self.categories) > 1:
                groupings |= {n: (together, self.category == c) for c, n in enumerate(self.categories)}
            for variant, (groups, some) in groupings.items():
                chosen = (right[some], self.points[some], groups[some])
                low, high = grouped_ratio_interval(*chosen, seed=seed)
                n = len(chosen[0])
                tables.append(
                    tidy(label, measure, grouped_ratio(*chosen), low=low, high=high, n=n, variant=variant, **options)
                )
            share = right.double() / self.points.unsqueeze(1)
            tables.append(tidy_mean(label, measure, share, variant="per_image", **options))
        return tables


def score(dataset: KeypointSet, predicted: Mapping[int, Tensor]) -> KeypointScores:
    """Count what is right. predicted: pair -> (L, K, 2), x and y in pixels of the target; pairs may be missing."""
    if not predicted:
        raise BadData("no pair could be matched: none of them has two readable images")
    done = sorted(predicted)
    pairs = [dataset.pairs[number] for number in done]
    right = [
        correct_points(predicted[number], torch.tensor(pair.target_points), pair.target_box).sum(-1)
        for number, pair in zip(done, pairs, strict=True)
    ]
    categories = tuple(sorted({pair.category for pair in pairs}))
    return KeypointScores(
        torch.stack(right),
        torch.tensor([len(pair.target_points) for pair in pairs]),
        torch.tensor([categories.index(pair.category) for pair in pairs]),
        categories,
        tuple(done),
        predicted,
    )


# -- evaluation on features ----------------------------------------------------------------------------------


def evaluate(
    maps: Mapping[int, Tensor], dataset: KeypointSet, size: tuple[int, int], *, protocol: Protocol = CORRECTED
) -> KeypointScores:
    """Match every pair on feature maps that are there.

    maps: image -> (L, h, w, D) of its padded picture; size: (height, width) of that picture in pixels.
    """
    matcher = matcher_of(dataset, size, protocol)
    for image, tokens in maps.items():
        matcher.add(image, tokens)
    return score(dataset, matcher.predicted)


def matcher_of(dataset: KeypointSet, size: tuple[int, int], protocol: Protocol) -> PairMatcher:
    return PairMatcher(
        dataset,
        size,
        whole_pixels=protocol.whole_pixels,
        renormalise=protocol.renormalise,
        match_padding=protocol.match_padding,
    )


# -- evaluation of a model -----------------------------------------------------------------------------------


class KeypointStatistic(Statistic):
    """Hands the spatial tokens of every picture to a matcher; keeps nothing itself."""

    name = "keypoints"
    wants = frozenset({"tokens"})

    def __init__(self, backbone: Backbone, matcher: PairMatcher) -> None:
        super().__init__()
        self.layout, self.matcher = backbone.layout, matcher
        self._layers: list[Tensor] = []

    def tokens(self, layer: int, x: Tensor) -> None:
        self._layers.append(x[:, self.layout.prefix :].unflatten(1, self.layout.grid).float())

    def end(self) -> None:
        for row, image in enumerate(self.batch.indices.tolist()):
            self.matcher.add(image, torch.stack([layer[row] for layer in self._layers]))
        self._layers.clear()
        super().end()

    def result(self) -> KeypointScores:
        return score(self.matcher.dataset, self.matcher.predicted)


def run(
    backbone: Backbone,
    dataset: KeypointSet,
    config: KeypointConfig = DEFAULT,
    *,
    skipped: SkippedImages | None = None,
    progress: Progress = silent,
) -> KeypointScores:
    """Every image through the network once, however many pairs it is in."""
    backbone = replace(backbone, preprocessing=PaddedPreprocessing.like(backbone.preprocessing, config.protocol.name))
    statistic = KeypointStatistic(backbone, matcher_of(dataset, backbone.preprocessing.size, config.protocol))
    observe(backbone, dataset.images, [statistic], skipped=skipped, progress=progress)
    return statistic.result()
