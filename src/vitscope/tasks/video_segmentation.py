"""Video object segmentation: how far does the mask of the first frame travel by the likeness of features alone?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from vitscope.data.davis import VideoSequence, VideoSet
from vitscope.features.dense import dense_features
from vitscope.models.backbone import Backbone
from vitscope.progress import Progress, silent
from vitscope.results import Label, tidy
from vitscope.tasks.confidence import grouped_ratio, grouped_ratio_interval
from vitscope.tasks.davis_scores import boundary_accuracy, frame_statistics, region_similarity
from vitscope.tasks.propagation import LabelPropagation, labels_on_grid, labels_on_grid_paper, to_mask, to_mask_paper

# -- protocol ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Protocol:
    """What a token asks. `paper` and `corrected` differ in the tiles (see `features/dense.py`), in how the first mask
    comes to the grid (nearest pixel; most of the cell, no object lost), and in how labels become a mask: `paper`
    stretches every object to 0..1 before the strongest wins, so that a faint trace of a lost object beats what is
    really there."""

    name: str = "corrected"
    previous: int = 7  # frames before, besides frame 0
    radius: int = 12  # tokens, down and across
    neighbours: int = 5
    temperature: float = 0.1


PAPER = Protocol("paper")
CORRECTED = Protocol()


@dataclass(frozen=True)
class VideoConfig:
    protocol: Protocol = CORRECTED
    storage: torch.dtype = torch.float16  # of the eight frames of features that are kept; arithmetic is float32


DEFAULT = VideoConfig()


# -- scores --------------------------------------------------------------------------------------------------

SUMMARY = ("mean", "recall", "decay")


@dataclass(frozen=True)
class SequenceScores:
    """J and F of every layer, object and frame that counts (all but the first and the last): (L, O, F) each."""

    name: str
    region: np.ndarray
    boundary: np.ndarray


@dataclass(frozen=True)
class VideoScores:
    """All sequences that are annotated throughout. A dataset's score is the mean over objects, as in DAVIS-2017."""

    sequences: tuple[SequenceScores, ...]

    def per_object(self) -> dict[str, list[np.ndarray]]:
        """Measure -> for every sequence (L, O): `j_mean`, `j_recall`, `j_decay`, the same of F, and `j&f`."""
        scores: dict[str, list[np.ndarray]] = {}
        for sequence in self.sequences:
            for letter, values in (("j", sequence.region), ("f", sequence.boundary)):
                statistics = frame_statistics(values)
                for what in SUMMARY:
                    scores.setdefault(f"{letter}_{what}", []).append(getattr(statistics, what))
        both = zip(scores.get("j_mean", []), scores.get("f_mean", []), strict=True)
        return scores | {"j&f": [(j + f) / 2 for j, f in both]}

    def rows(self, label: Label, protocol: str, seed: int = 0) -> list[pl.DataFrame]:
        """Means over objects with intervals over sequences; and each object's own J&F."""
        tables = []
        for measure, values in self.per_object().items():
            sums = torch.from_numpy(np.stack([value.sum(1) for value in values]))  # (S, L)
            counts = torch.tensor([value.shape[1] for value in values])
            together = torch.zeros(len(values), dtype=torch.int64)
            low, high = grouped_ratio_interval(sums, counts, together, seed=seed)
            options: dict[str, Any] = {"axes": ("layer",), "protocol": protocol}
            mean = grouped_ratio(sums, counts, together)
            tables.append(tidy(label, f"video_{measure}", mean, low=low, high=high, n=len(values), **options))
            if measure in ("j_mean", "f_mean", "j&f"):
                for sequence, value in zip(self.sequences, values, strict=True):
                    for number, per_layer in enumerate(torch.from_numpy(value).T, start=1):
                        variant = f"{sequence.name} {number}"
                        tables.append(tidy(label, f"video_{measure}", per_layer, n=1, variant=variant, **options))
        return tables


def score_frame(truth: np.ndarray, predicted: np.ndarray, objects: int) -> tuple[np.ndarray, np.ndarray]:
    """J and F of one frame: truth (H, W), predicted (L, H, W), both labels -> (L, O) each.

    As officially: void pixels of the ground truth are background by now, and labels above `objects` do not count.
    """
    numbers = np.arange(1, objects + 1)[:, None, None]
    there, found = truth == numbers, predicted[:, None] == numbers  # (O, H, W), (L, O, H, W)
    return region_similarity(there, found), boundary_accuracy(there, found)


# -- evaluation on features ----------------------------------------------------------------------------------


def follow(
    features: Iterable[Tensor], first: np.ndarray, patch: tuple[int, int], protocol: Protocol = CORRECTED
) -> Iterator[np.ndarray]:
    """The masks of all frames at all layers, uint8 (L, H, W), one frame after the other; frame 0 as it was given.

    features: (L, h, w, D) of each frame in turn; first: labels (H, W) of frame 0; patch: (height, width) in pixels.
    """
    stream = iter(features)
    start = next(stream)
    present = np.union1d([0], first).astype(np.uint8)  # labels may have gaps
    mask, classes = torch.from_numpy(np.searchsorted(present, first)), len(present)
    to_grid = labels_on_grid_paper if protocol.name == "paper" else labels_on_grid
    labels = to_grid(mask, classes, (start.shape[1], start.shape[2])).to(start.device)
    propagation = LabelPropagation(
        start,
        labels,
        previous=protocol.previous,
        radius=protocol.radius,
        neighbours=protocol.neighbours,
        temperature=protocol.temperature,
    )
    yield np.broadcast_to(first.astype(np.uint8), (len(start), *first.shape))
    size = (first.shape[0], first.shape[1])
    for frame in stream:
        shares = propagation.step(frame)  # (L, h, w, C)
        masks = [
            to_mask_paper(layer, size, patch) if protocol.name == "paper" else to_mask(layer, size) for layer in shares
        ]
        yield present[torch.stack(masks).cpu().numpy()]


def evaluate(
    features: Iterable[Tensor],
    truth: Sequence[np.ndarray | None],
    patch: tuple[int, int],
    *,
    name: str = "video",
    protocol: Protocol = CORRECTED,
    watch: Callable[[int, np.ndarray], None] | None = None,
) -> SequenceScores | None:
    """Follow a video from its first mask and score it. features: (L, h, w, D) per frame; truth: labels per frame.

    watch: is shown each frame's number and masks (L, H, W). None if no frame but the first and the last is annotated.
    """
    first = truth[0]
    assert first is not None, "the first frame must have a mask"
    objects = int(first.max())
    scores = []
    for number, masks in enumerate(follow(features, first, patch, protocol)):
        if watch is not None:
            watch(number, masks)
        known = truth[number]
        if 0 < number < len(truth) - 1 and known is not None:
            scores.append(score_frame(known, masks, objects))
    if not scores:
        return None
    region, boundary = (np.stack(values, -1) for values in zip(*scores, strict=True))  # (L, O, F)
    return SequenceScores(name, region, boundary)


# -- evaluation of a model -----------------------------------------------------------------------------------


def run(
    backbone: Backbone,
    dataset: VideoSet,
    config: VideoConfig = DEFAULT,
    *,
    watch: Callable[[VideoSequence, int, np.ndarray], None] | None = None,
    progress: Progress = silent,
) -> VideoScores:
    """Follow every video, each frame through the network once for all layers.

    watch: is shown the sequence, the frame's number and its masks (L, H, W), to write or draw them.
    """
    scored = []
    with progress(f"{backbone.title}: video", sum(len(sequence) for sequence in dataset.sequences)) as advance:
        for sequence in dataset.sequences:

            def features(sequence: VideoSequence = sequence) -> Iterator[Tensor]:
                for number in range(len(sequence)):
                    picture = sequence.frame(number)
                    yield dense_features(backbone, picture, protocol=config.protocol.name, dtype=config.storage)
                    advance(1)

            def seen(number: int, masks: np.ndarray, sequence: VideoSequence = sequence) -> None:
                if watch is not None:
                    watch(sequence, number, masks)

            truth = LazyTruth(sequence)
            scores = evaluate(
                features(), truth, backbone.patch, name=sequence.name, protocol=config.protocol, watch=seen
            )
            if scores is not None:
                scored.append(scores)
    return VideoScores(tuple(scored))


class LazyTruth(Sequence[Any]):
    """The labels of a sequence, read when they are asked for."""

    def __init__(self, sequence: VideoSequence) -> None:
        self.sequence = sequence

    def __len__(self) -> int:
        return len(self.sequence)

    def __getitem__(self, index: Any) -> Any:
        return self.sequence.labels(index)
