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
    one, other = _packed(truth), _packed(predicted)
    if void is not None:
        one, other = one & ~_packed(void), other & ~_packed(void)
    shared, either = _count(one & other), _count(one | other)
    return np.where(either == 0, 1.0, shared / np.maximum(either, 1))


def boundary_accuracy(
    truth: np.ndarray, predicted: np.ndarray, void: np.ndarray | None = None, tolerance: float = TOLERANCE
) -> np.ndarray:
    """F of bool masks (..., H, W); 1 where both are without boundary, 0 where only one is."""
    if void is not None:
        truth, predicted = truth & ~void, predicted & ~void
    size = truth.shape[-2:]
    radius = boundary_radius(size, tolerance)
    of_truth, of_predicted = (_boundary(_packed(mask, gap=radius), size[1]) for mask in (truth, predicted))
    in_truth, in_predicted = _count(of_truth), _count(of_predicted)
    found = _count(of_predicted & _dilated(of_truth, radius))
    recalled = _count(of_truth & _dilated(of_predicted, radius))
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
    return _unpacked(_boundary(_packed(mask), mask.shape[-1]), mask.shape[-1])


def dilate(mask: np.ndarray, radius: int) -> np.ndarray:
    """Everything within `radius` pixels (a disk) of a set pixel: bool (..., H, W)."""
    return _unpacked(_dilated(_packed(mask, gap=radius), radius), mask.shape[-1])


# -- 64 pixels of a row in one number -------------------------------------------------------------------------
# One operation then does for 64 pixels what it would for one, and a 480p mask of 410 KB is 54 KB, which caches hold.
# Rows follow one another with a gap between them, so that a whole mask is shifted as one line of pixels: what leaves a
# row falls into the gap, and means nothing there.

WORD = 64
SET = np.array([number.bit_count() for number in range(1 << 16)], np.uint8)  # bits of each 16-bit number


def _packed(mask: np.ndarray, gap: int = 1) -> np.ndarray:
    """bool (..., H, W) -> uint64 (..., H, words), the first pixel in the lowest bit; at least `gap` zeros follow."""
    size = -(-(mask.shape[-1] + gap) // WORD) * WORD // 8
    words = np.zeros((*mask.shape[:-1], size), np.uint8)
    bits = np.packbits(mask, axis=-1, bitorder="little")
    words[..., : bits.shape[-1]] = bits
    return words.view("<u8")


def _unpacked(words: np.ndarray, width: int) -> np.ndarray:
    return np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little", count=width).view(bool)


def _from_right(words: np.ndarray) -> np.ndarray:
    """Each pixel becomes its right neighbour."""
    line = words.reshape(-1)
    moved: np.ndarray = line >> np.uint64(1)
    moved[:-1] |= line[1:] << np.uint64(WORD - 1)
    return moved.reshape(words.shape)


def _from_left(words: np.ndarray) -> np.ndarray:
    """Each pixel becomes its left neighbour."""
    line = words.reshape(-1)
    moved: np.ndarray = line << np.uint64(1)
    moved[1:] |= line[:-1] >> np.uint64(WORD - 1)
    return moved.reshape(words.shape)


def _boundary(words: np.ndarray, width: int) -> np.ndarray:
    right = _from_right(words)
    beside = np.zeros(words.shape[-1] * WORD, bool)  # pixels that have a right neighbour
    beside[: width - 1] = True
    inside = _packed(beside, gap=0)
    edge: np.ndarray = (words ^ right) & inside
    edge[..., :-1, :] |= (words[..., :-1, :] ^ words[..., 1:, :]) | ((words[..., :-1, :] ^ right[..., 1:, :]) & inside)
    return edge


def _dilated(words: np.ndarray, radius: int) -> np.ndarray:
    """A disk is a stack of horizontal runs: what is set is spread sideways step by step, and each width that is reached
    is laid over the rows that the disk has that width in. words: with a gap of at least the radius."""
    steps = np.arange(radius + 1)
    half_widths = np.floor(np.sqrt(radius**2 - steps**2)).astype(int)  # of the disk's row at each vertical step
    height = words.shape[-2]
    spread, grown = words, np.zeros_like(words)
    for width in range(radius + 1):
        if width:
            wider = _from_left(spread)
            wider |= _from_right(spread)
            wider |= spread
            spread = wider
        for step in steps[(half_widths == width) & (steps < height)]:
            grown[..., step:, :] |= spread[..., : height - step, :]
            if step:
                grown[..., : height - step, :] |= spread[..., step:, :]
    return grown


def _count(words: np.ndarray) -> np.ndarray:
    """Set pixels of each mask, (...)."""
    flat = np.ascontiguousarray(words).reshape(*words.shape[:-2], -1)
    if hasattr(np, "bitwise_count"):  # NumPy 2
        return np.asarray(np.bitwise_count(flat).sum(-1, dtype=np.int64))
    return np.asarray(SET[flat.view(np.uint16)].sum(-1, dtype=np.int64))


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
