"""J and F: how the official DAVIS evaluation scores a segmented video, to the last pixel.

J is the intersection over union of the regions; F the harmonic mean of precision and recall of their boundaries, a
boundary pixel counting as found if the other boundary passes within 0.8 % of the image's diagonal. Both are taken per
object and frame; over the frames of an object, `mean`, `recall` and `decay` follow; a dataset's score is the mean over
all objects of all sequences.

Masks are bool arrays (..., H, W) and leading axes broadcast, so that twelve layers' predictions (L, O, H, W) meet one
ground truth (O, H, W) whose boundary is prepared once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

TOLERANCE = 0.008  # of the diagonal: how near two boundaries must be to count as the same
SUCCESS = 0.5  # a frame above it counts for the recall
DECAY_BINS = 4  # decay: the first quarter of a sequence against its last


@dataclass(frozen=True)
class FrameStatistics:
    """Over the frames of each object, (...): the official evaluation's M, R and D."""

    mean: np.ndarray
    recall: np.ndarray  # share of frames above 0.5
    decay: np.ndarray  # mean of the first quarter minus mean of the last: what is lost on the way


def region_similarity(truth: np.ndarray, predicted: np.ndarray, void: np.ndarray | None = None) -> np.ndarray:
    """J of bool masks (..., H, W); 1 where both are empty. Pixels that are void count for nothing.

    >>> region_similarity(np.array([[True, True, False]]), np.array([[False, True, True]])).item()
    0.333...
    """
    intersection, union = truth & predicted, truth | predicted
    if void is not None:
        intersection, union = intersection & ~void, union & ~void
    shared, either = _count(intersection), _count(union)
    return np.where(either == 0, 1.0, shared / np.maximum(either, 1))


def boundary_accuracy(
    truth: np.ndarray, predicted: np.ndarray, void: np.ndarray | None = None, tolerance: float = TOLERANCE
) -> np.ndarray:
    """F of bool masks (..., H, W); 1 where both are without boundary, 0 where only one is."""
    if void is not None:
        truth, predicted = truth & ~void, predicted & ~void
    radius = boundary_radius(truth.shape[-2:], tolerance)
    of_truth, of_predicted = boundary(truth), boundary(predicted)
    in_truth, in_predicted = _count(of_truth), _count(of_predicted)
    found = _count(of_predicted & dilate(of_truth, radius))
    recalled = _count(of_truth & dilate(of_predicted, radius))
    # no boundary to be right or wrong about: precision (recall) is perfect, and the other one decides
    precision = np.where(in_predicted == 0, 1.0, found / np.maximum(in_predicted, 1))
    recall = np.where(in_truth == 0, 1.0, recalled / np.maximum(in_truth, 1))
    both = precision + recall
    return np.where(both == 0, 0.0, 2 * precision * recall / np.where(both == 0, 1.0, both))


def boundary_radius(size: tuple[int, ...], tolerance: float = TOLERANCE) -> int:
    """How far apart, in pixels, two boundaries may be. size: (H, W).

    >>> boundary_radius((480, 854))
    8
    """
    return int(np.ceil(tolerance * np.hypot(size[0], size[1])))


def boundary(mask: np.ndarray) -> np.ndarray:
    """Pixels whose right, lower, or lower right neighbour is on the other side: bool (..., H, W).

    The boundary lies half a pixel towards the origin; the last row looks right only, the last column down only.
    """
    edge = np.zeros_like(mask)
    edge[..., :, :-1] |= mask[..., :, :-1] ^ mask[..., :, 1:]
    edge[..., :-1, :] |= mask[..., :-1, :] ^ mask[..., 1:, :]
    edge[..., :-1, :-1] |= mask[..., :-1, :-1] ^ mask[..., 1:, 1:]
    return edge


def dilate(mask: np.ndarray, radius: int) -> np.ndarray:
    """Everything within `radius` pixels (a disk) of a set pixel: bool (..., H, W).

    A disk is a stack of horizontal runs: the mask is spread sideways step by step, and each width that is reached is
    laid over the rows that the disk has that width in; all on the bounding box of what is set.
    """
    grown = np.zeros_like(mask)
    for index in np.ndindex(mask.shape[:-2]):
        rows, columns = np.flatnonzero(mask[index].any(-1)), np.flatnonzero(mask[index].any(-2))
        if len(rows):
            top, left = max(rows[0] - radius, 0), max(columns[0] - radius, 0)
            box = (slice(top, rows[-1] + radius + 1), slice(left, columns[-1] + radius + 1))
            _dilate_into(grown[index][box], mask[index][box], radius)
    return grown


def _dilate_into(grown: np.ndarray, mask: np.ndarray, radius: int) -> None:
    steps = np.arange(radius + 1)
    half_widths = np.floor(np.sqrt(radius**2 - steps**2)).astype(int)  # of the disk's row at each vertical step
    spread = mask.copy()
    for width in range(radius + 1):
        if width:
            spread[:, width:] |= mask[:, :-width]
            spread[:, :-width] |= mask[:, width:]
        for step in steps[(half_widths == width) & (steps < len(mask))]:
            grown[step:] |= spread[: len(spread) - step]
            grown[: len(grown) - step] |= spread[step:]


def frame_statistics(values: np.ndarray) -> FrameStatistics:
    """Mean, recall and decay over the last axis, the frames that count (the first and the last frame do not)."""
    frames = values.shape[-1]
    ends = np.round(np.linspace(1, frames, DECAY_BINS + 1) + 1e-10).astype(int) - 1
    first, last = values[..., ends[0] : ends[1] + 1], values[..., ends[-2] : ends[-1] + 1]
    return FrameStatistics(
        mean=values.mean(-1),
        recall=(values > SUCCESS).mean(-1),
        decay=first.mean(-1) - last.mean(-1),
    )


def _count(mask: np.ndarray) -> np.ndarray:
    """Set pixels of each mask, (...)."""
    flat = mask.reshape(*mask.shape[:-2], -1)
    found: np.ndarray = np.count_nonzero(flat, axis=-1)
    return found
