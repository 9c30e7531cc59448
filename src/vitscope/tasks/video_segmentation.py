"""Video object segmentation: how far does the mask of the first frame travel by the likeness of features alone?"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
import torch
from PIL import Image
from pydantic import Field, model_validator
from torch import Tensor

from vitscope.core.analysis import Analysis, Drive, Found, Headline, Measure, Outcome
from vitscope.core.results import NOBODY, Label, tidy
from vitscope.data.davis import VideoSequence, VideoSet
from vitscope.features.dense import dense_features, dense_size, whole_features
from vitscope.tasks.confidence import grouped_ratio, grouped_ratio_interval
from vitscope.tasks.davis_scores import boundary_accuracy, frame_statistics, region_similarity
from vitscope.tasks.propagation import (
    BLOCK,
    LabelPropagation,
    labels_on_grid,
    labels_on_grid_paper,
    to_mask,
    to_mask_paper,
)
from vitscope.tasks.units import kept_units, linearised

if TYPE_CHECKING:
    from vitscope.data.batches import SkippedImages
    from vitscope.models.backbone import Backbone
    from vitscope.models.shape import ModelShape

# -- protocol ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Protocol:
    """What a token asks. `paper` and `corrected` differ in the tiles (see `features/dense.py`), in how the first mask
    comes to the grid (nearest pixel; most of the cell, no object lost), and in how labels become a mask: `paper`
    stretches every object to 0..1 before the strongest wins, so that a faint trace of a lost object beats what is
    really there. Features are kept in half precision, which moves J by some thousandths in single frames, except under
    `paper`, whose numbers are to be compared."""

    name: str = "corrected"
    previous: int = 7  # frames before, besides frame 0
    radius: int = 12  # tokens, down and across
    neighbours: int = 5
    temperature: float = 0.1
    dtype: torch.dtype = torch.float16  # of the eight frames of features that are kept; arithmetic is float32


PAPER = Protocol("paper", dtype=torch.float32)
CORRECTED = Protocol()
PROTOCOLS = {"paper": PAPER, "corrected": CORRECTED}
SCORED = ("region", "boundary", "copied_region", "copied_boundary")  # of a sequence
SNAPSHOTS = 5  # frames of each video that are kept to be looked at
EXAMPLES = 3  # videos of which they are shown
WIDEST = 427  # pixels of a kept mask: half of DAVIS's


# -- scores --------------------------------------------------------------------------------------------------

SUMMARY = ("mean", "recall", "decay")
COPIED = "first mask copied"  # the variant of rows that no network is needed for


@dataclass(frozen=True)
class SequenceScores:
    """J and F of every layer, object and frame that counts (all but the first and the last): (L, O, F) each.

    copied_region, copied_boundary: of the first mask, left where it is: (1, O, F).
    """

    name: str
    region: np.ndarray
    boundary: np.ndarray
    copied_region: np.ndarray
    copied_boundary: np.ndarray

    @property
    def copied(self) -> SequenceScores:
        """The scores of copying the first mask, as those of a network of one layer."""
        both = (self.copied_region, self.copied_boundary)
        return SequenceScores(self.name, *both, *both)


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

    def means(self, measure: str) -> np.ndarray:
        """The mean over objects of every layer, (L,)."""
        mean: np.ndarray = np.concatenate(self.per_object()[measure], axis=1).mean(1)
        return mean

    @property
    def copied(self) -> VideoScores:
        """What copying the first mask to every frame gives: no network that understands anything is below it."""
        return VideoScores(tuple(sequence.copied for sequence in self.sequences))

    def units(self) -> Tensor:
        """What each sequence adds to the mean J&F over objects: (S, L)."""
        values = self.per_object()["j&f"]
        sums = torch.from_numpy(np.stack([value.sum(1) for value in values]))  # (S, L)
        objects = torch.tensor([value.shape[1] for value in values])
        return linearised(sums.unsqueeze(-1), objects.reshape(-1, 1, 1))

    @property
    def best_layer(self) -> int:
        """By J&F, counted from 0: the layer that the table of best layers names too."""
        return int(self.means("j&f").argmax())

    def rows(self, label: Label, protocol: str, seed: int = 0) -> list[pl.DataFrame]:
        """Means over objects with intervals over sequences, each object's own, and those of copying the first mask."""
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
                copied = torch.tensor(self.copied.means(measure)[0])
                options |= {"axes": (), "n": len(values), "variant": COPIED}
                tables.append(tidy(label, f"video_{measure}", copied, **options))
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
            scores.append((*score_frame(known, masks, objects), *score_frame(known, first[None], objects)))
    if not scores:
        return None
    return SequenceScores(name, *(np.stack(values, -1) for values in zip(*scores, strict=True)))  # (L, O, F) each


class LazyTruth(Sequence[Any]):
    """The labels of a sequence, read when they are asked for."""

    def __init__(self, sequence: VideoSequence) -> None:
        self.sequence = sequence

    def __len__(self) -> int:
        return len(self.sequence)

    def __getitem__(self, index: Any) -> Any:
        return self.sequence.labels(index)


# -- the analysis ---------------------------------------------------------------------------------------------


class Video(Analysis):
    """Video object segmentation: how far does the mask of the first frame travel by the likeness of features alone?

    `paper` and `corrected` differ in the tiles, in how the first mask comes to the grid, and in how labels become
    masks. Beside every score stands that of copying the first mask, which coarse grids of tokens fall below: a network
    of small inputs needs a larger `short_side`, for about 30 tokens (64-pixel inputs with patches of 8: 256).
    """

    name = "video"
    title = "video segmentation"
    domain = "why"
    kind = "video"
    measures = (
        Measure("video_j&f", "J&F", "mean of region similarity and boundary accuracy over objects and frames"),
        Measure("video_j_mean", "J", "intersection over union of predicted and true masks"),
        Measure("video_f_mean", "F", "agreement of the masks' boundaries"),
    )
    headline = Headline("video_j&f", "J&F", unit="video", chance=COPIED)

    protocol: Literal["corrected", "paper"] = "corrected"
    seed: int = Field(0, description="Of resampling for intervals")
    short_side: int | None = Field(
        None, ge=16, le=4096, description="Of frames as they are cut into tiles, in pixels; twice the input if absent"
    )
    dense: bool = Field(
        True,
        description="Cut frames into tiles at twice the input; if not, squeeze each into one input: a coarser grid",
    )
    masks: bool = Field(False, description="Keep the predicted masks of all frames and layers, to be written as PNGs")

    @model_validator(mode="after")
    def _short_side_is_of_tiles(self) -> Video:
        if not self.dense and self.short_side is not None:
            raise ValueError("short_side is of frames that are cut into tiles: leave it out, or dense = false")
        return self

    @property
    def keeps_states(self) -> bool:
        return self.masks

    def passes(self, dataset: VideoSet, shape: ModelShape) -> Sequence[Drive]:
        sizes = tuple(len(sequence) for sequence in dataset.sequences)
        grids = [self._grid(sequence, shape) for sequence in dataset.sequences]
        h, w = shape.layout.grid
        most = max((-(-down // h) * -(-across // w) for down, across in grids), default=1)
        disk = 4e6 * len(sizes) * (1 + 10 * self.masks)
        return [Drive(sizes, [range(i, i + 1) for i in range(len(sizes))], tiles=most, disk=disk)]

    def _grid(self, sequence: VideoSequence, shape: ModelShape) -> tuple[int, int]:
        """Tokens of a frame, down and across."""
        (ph, pw), (h, w) = shape.patch, shape.layout.grid
        if not self.dense:
            return h, w
        height, width = dense_size(sequence.size, (h * ph, w * pw), shape.patch, self.short_side)
        return height // ph, width // pw

    def operations(self, dataset: VideoSet, shape: ModelShape) -> float:
        protocol, total = PROTOCOLS[self.protocol], 0.0
        reach = BLOCK + 2 * protocol.radius
        for sequence in dataset.sequences:
            h, w = self._grid(sequence, shape)
            asked = min(h, reach) * min(w, reach) * (1 + protocol.previous)
            total += float(len(sequence)) * h * w * asked * shape.width * shape.depth
        return total

    def drive(
        self, backbone: Backbone, dataset: VideoSet, units: range, skipped: SkippedImages
    ) -> Mapping[str, Tensor]:
        sequence, protocol = dataset.sequences[units.start], PROTOCOLS[self.protocol]
        frames = snapshot_frames(len(sequence))
        snapshots: list[Tensor] = []
        files: list[bytes] = []

        def watch(number: int, masks: np.ndarray) -> None:
            if number in frames:
                snapshots.append(torch.from_numpy(_small(masks)))
            if self.masks:
                files.extend(as_png(mask) for mask in masks)

        def features() -> Iterator[Tensor]:
            how: Any = {"protocol": self.protocol, "short_side": self.short_side} if self.dense else {}
            of_frame = dense_features if self.dense else whole_features
            for number in range(len(sequence)):
                yield of_frame(backbone, sequence.frame(number), dtype=protocol.dtype, **how)

        scores = evaluate(
            features(),
            LazyTruth(sequence),
            backbone.patch,
            name=sequence.name,
            protocol=protocol,
            watch=watch,
        )
        state = {"snapshots": torch.stack(snapshots)}  # (frames, L, h, w)
        if files:
            state["files"] = torch.from_numpy(np.frombuffer(b"".join(files), np.uint8).copy())
            state["lengths"] = torch.tensor([len(file) for file in files])
        if scores is not None:
            state |= {name: torch.from_numpy(getattr(scores, name)) for name in SCORED}
        return state

    def reduce(self, dataset: VideoSet, found: Found) -> Outcome:
        scored, numbers = [], []
        for units, state in found.states():
            if "region" in state:
                numbers.append(units.start)
                name = dataset.sequences[units.start].name
                scored.append(SequenceScores(name, *(state[part].numpy() for part in SCORED)))
        scores, outcome = VideoScores(tuple(scored)), Outcome()
        if len(scored) < len(dataset):
            outcome.notes.append("videos without masks beyond the first frame were followed but could not be scored")
        best = 3 * found.shape.depth // 4
        if scored:
            outcome.tables += scores.rows(NOBODY, self.protocol, self.seed)
            floor = scores.copied.units()[:, 0]
            outcome.maps |= kept_units(self.name, scores.units(), floor, torch.tensor(numbers), len(dataset))
            best = scores.best_layer
            reached, copied = scores.means("j&f")[best], scores.copied.means("j&f")[0]
            if reached < copied:
                remedy = "a larger short_side of video lets" if self.dense else "tiles (dense) let"
                outcome.notes.append(
                    f"{{model}}: a J&F of {reached:.3f} is below that of copying the first mask, {copied:.3f} "
                    f"({self.protocol}): {remedy} objects cover more tokens"
                )
        for units, state in found.states():
            if units.start < EXAMPLES:
                outcome.maps[f"video.{units.start}"] = state["snapshots"][:, best]
        outcome.maps["video.layer"] = torch.tensor([best])
        return outcome


def snapshot_frames(length: int) -> list[int]:
    """Frames to look at: the first, the last, and some evenly between."""
    return sorted({round(i * (length - 1) / (SNAPSHOTS - 1)) for i in range(SNAPSHOTS)})


def _small(masks: np.ndarray) -> np.ndarray:
    """(L, H, W) thinned out to at most `WIDEST` pixels across."""
    step = max(1, -(-max(masks.shape[1:]) // WIDEST))
    small: np.ndarray = masks[:, ::step, ::step].copy()  # of its own: what is decoded may not be written to
    return small


def as_png(mask: np.ndarray) -> bytes:
    """An indexed PNG with the colours of DAVIS."""
    buffer = io.BytesIO()
    image = Image.fromarray(mask)
    image.putpalette(davis_palette())
    image.save(buffer, format="PNG")
    return buffer.getvalue()


@cache
def davis_palette() -> bytes:
    """The 256 colours of DAVIS and PASCAL VOC: the bits of a label dealt out to red, green and blue from the top.

    >>> list(davis_palette()[:9])
    [0, 0, 0, 128, 0, 0, 0, 128, 0]
    """
    colours = np.zeros((256, 3), np.uint8)
    for label in range(256):
        for place in range(8):
            for channel in range(3):
                colours[label, channel] |= ((label >> (3 * place + channel)) & 1) << (7 - place)
    return colours.tobytes()


def write_masks(folder: Path, dataset: VideoSet, states: Iterable[tuple[range, Mapping[str, Tensor]]]) -> int:
    """Kept masks as files in the official result layout: <folder>/layer-NN/<sequence>/<frame>.png; returns how many."""
    written = 0
    for units, state in states:
        sequence, files = dataset.sequences[units.start], state["files"].split(state["lengths"].tolist())
        layers = len(files) // len(sequence)
        for number, file in enumerate(files):
            frame, layer = divmod(number, layers)
            place = folder / f"layer-{layer + 1:02}" / sequence.name
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{sequence.frames[frame].stem}.png").write_bytes(file.numpy().tobytes())
            written += 1
    return written
