"""Keypoint correspondence: the left eye of one cat, by its feature alone, found on another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
import torch
from pydantic import Field
from torch import Tensor

from vitscope.core.analysis import Analysis, Drive, Found, Headline, Measure, Outcome
from vitscope.core.errors import BadData
from vitscope.core.results import NOBODY, Label, tidy, tidy_mean
from vitscope.core.statistic import Statistic
from vitscope.data.keypoints import KeypointSet
from vitscope.models.observe import observe
from vitscope.tasks.confidence import grouped_ratio, grouped_ratio_interval
from vitscope.tasks.pairs import PairMatcher
from vitscope.tasks.units import chance_row, in_groups, kept_units, linearised

if TYPE_CHECKING:
    from vitscope.data.batches import SkippedImages
    from vitscope.models.backbone import Backbone
    from vitscope.models.shape import ModelShape

# -- protocol ------------------------------------------------------------------------------------------------

ALPHAS = (0.1, 0.05, 0.01)  # a point is right if it is nearer than this share of the target box's longer side


@dataclass(frozen=True)
class Protocol:
    """`paper`: points by one scale for both sides, corners of pixels for centres, cut to whole pixels (x truncated, y
    rounded); features normalised before they are interpolated; matches that may land in the padding. `corrected`: none
    of that. Both are asked about all pairs."""

    name: str = "corrected"
    whole_pixels: bool = False
    renormalise: bool = True
    match_padding: bool = False


PAPER = Protocol("paper", whole_pixels=True, renormalise=False, match_padding=True)
CORRECTED = Protocol()
PROTOCOLS = {"paper": PAPER, "corrected": CORRECTED}
LEAST_PAIRS, MOST_PAIRS = 32, 1024  # of a shard: SPair-71k has about 680 in a category
EXAMPLES = 18  # pairs whose matches are kept to be looked at


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

    def units(self) -> Tensor:
        """What each pair adds to the mean over categories, at the widest tolerance: (P, L)."""
        right, points = in_groups(self.right[:, 0], self.category), in_groups(self.points, self.category)
        return linearised(right, points.unsqueeze(1))

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


def same_place(dataset: KeypointSet) -> dict[int, Tensor]:
    """For every pair the points of the source, at the same place of the target's frame: (1, K, 2)."""
    found = {}
    for number, pair in enumerate(dataset.pairs):
        (high, wide), (target_high, target_wide) = dataset.sizes[pair.source], dataset.sizes[pair.target]
        scale = torch.tensor([target_wide / wide, target_high / high])
        found[number] = torch.tensor(pair.source_points).mul(scale).unsqueeze(0)
    return found


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

    maps: image -> (L, h, w, D) of its padded image; size: (height, width) of that image in pixels.
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


class KeypointStatistic(Statistic):
    """Hands the spatial tokens of every image to a matcher; keeps nothing itself."""

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


# -- the analysis ---------------------------------------------------------------------------------------------


class Keypoints(Analysis):
    """Keypoint correspondence: the left eye of one cat, by its feature alone, found on another.

    `paper`: images reduced by LANCZOS and padded with black; points by one scale for both sides, corners of pixels for
    centres, cut to whole pixels (x truncated, y rounded); features normalised before they are interpolated; matches
    that may land in the padding. `corrected`: none of that. Both are asked about all pairs.
    """

    name = "keypoints"
    title = "keypoints"
    domain = "why"
    kind = "keypoints"
    measures = tuple(
        Measure(f"pck@{alpha}", f"PCK@{alpha}", f"share of points found within {alpha} of the target box's longer side")
        for alpha in ALPHAS
    )
    headline = Headline("pck@0.1", "PCK@0.1 %", percent=True, unit="pair", chance="the same place in the other image")

    protocol: Literal["corrected", "paper"] = "corrected"
    seed: int = Field(0, description="Of resampling for intervals")

    def passes(self, dataset: KeypointSet, shape: ModelShape) -> Sequence[Drive]:
        order, shards = by_category(dataset)
        seen: set[int] = set()
        sizes = []
        for number in order:
            new = {dataset.pairs[number].source, dataset.pairs[number].target} - seen
            seen |= new
            sizes.append(len(new))
        return [Drive(tuple(sizes), shards)]

    def drive(
        self, backbone: Backbone, dataset: KeypointSet, units: range, skipped: SkippedImages
    ) -> Mapping[str, Tensor]:
        order, _ = by_category(dataset)
        numbers = [order[unit] for unit in units]
        part, protocol = dataset.part(numbers), PROTOCOLS[self.protocol]
        statistic = KeypointStatistic(backbone, matcher_of(part, backbone.preprocessing.size, protocol))
        geometry = "padded black" if self.protocol == "paper" else "padded"
        observe(backbone, part.images, [statistic], geometry=geometry, skipped=skipped)
        found = statistic.matcher.predicted
        done = sorted(found)
        return {
            "pairs": torch.tensor([numbers[i] for i in done], dtype=torch.int64),
            "points": torch.tensor([found[i].shape[1] for i in done], dtype=torch.int64),
            "predicted": torch.cat([found[i] for i in done], 1) if done else torch.empty(0, 0, 2),  # (L, points, 2)
        }

    def reduce(self, dataset: KeypointSet, found: Found) -> Outcome:
        predicted: dict[int, Tensor] = {}
        for _, state in found.states():
            numbers, points = state["pairs"].tolist(), state["points"].tolist()
            if numbers:
                predicted |= dict(zip(numbers, state["predicted"].split(points, 1), strict=True))
        scores = score(dataset, predicted)
        outcome = Outcome(scores.rows(NOBODY, self.protocol, self.seed))
        if left := len(dataset.pairs) - len(scores.pairs):
            outcome.notes.append(f"{left} pairs were left out: an image of theirs could not be read")
        copied = same_place(dataset)
        floor = score(dataset, {number: copied[number] for number in scores.pairs}).units()[:, 0]
        ids = torch.tensor(scores.pairs)
        outcome.maps |= kept_units(self.name, scores.units(), floor, ids, len(dataset.pairs))
        outcome.tables.append(chance_row("pck@0.1", floor, self.protocol))
        chosen = spread_over_categories(scores.pairs, dataset)
        outcome.maps["keypoints.pairs"] = torch.tensor(chosen)
        for number in chosen:
            outcome.maps[f"keypoints.{number}"] = predicted[number].float()
        return outcome


def by_category(dataset: KeypointSet) -> tuple[list[int], list[range]]:
    """The pairs category by category, and shards of them.

    Images are shared within a category alone, so that shards of whole categories trace every image once.
    """
    order = sorted(range(len(dataset.pairs)), key=lambda number: dataset.pairs[number].category)
    shards, start = [], 0
    for place in range(1, len(order) + 1):
        size = place - start
        new = place == len(order) or dataset.pairs[order[place]].category != dataset.pairs[order[place - 1]].category
        if place == len(order) or (new and size >= LEAST_PAIRS) or size >= MOST_PAIRS:
            shards.append(range(start, place))
            start = place
    return order, shards


def spread_over_categories(numbers: Sequence[int], dataset: KeypointSet) -> list[int]:
    """One pair of each category in turn, the ones with most points first."""
    turns: dict[str, int] = {}
    ranked = []
    for number in sorted(numbers, key=lambda n: -len(dataset.pairs[n].source_points)):
        category = dataset.pairs[number].category
        ranked.append((turns.get(category, 0), category, number))
        turns[category] = turns.get(category, 0) + 1
    return [number for _, _, number in sorted(ranked)[:EXAMPLES]]
