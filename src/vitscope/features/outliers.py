"""Tokens whose norm stands apart from all others: where a gap in the histogram of norms says that there are some."""

from __future__ import annotations

import math

import torch
from torch import Tensor

BINS_PER_OCTAVE = 8
OCTAVES = (-20, 20)  # of norms that are told apart
LEAST_FACTOR = 1.5  # an outlier's norm is at least so many times the most frequent norm
WINDOW = 4  # bins that are counted together: half an octave
SIGNIFICANCE = 4.0  # standard deviations by which the second hill must rise above the gap
DEPTH = 0.5  # the gap holds at most so much of the second hill


def norm_histogram(norms: Tensor) -> Tensor:
    """How many norms fall into each eighth of an octave: (...) -> (bins,) float64; norms of 0 are in none."""
    low, high = OCTAVES
    bins = (high - low) * BINS_PER_OCTAVE
    logs = norms[norms > 0].double().log2()
    place = ((logs - low) * BINS_PER_OCTAVE).floor().clamp(0, bins - 1).long()
    return place.bincount(minlength=bins).double()


def outlier_cut(histogram: Tensor) -> float:
    """The norm above which tokens are outliers: the gap right of the main hill of a histogram; NaN if there is none.

    A fixed number does not transfer between models. The histogram (of `norm_histogram`) is counted in windows of half
    an octave; a second hill to the right counts if it rises significantly above the emptiest window between the two,
    and lies at 1.5 times the norm of the main one or beyond.

    >>> norms = torch.cat([torch.linspace(9, 11, 980), torch.linspace(90, 110, 20)])
    >>> 11 < outlier_cut(norm_histogram(norms)) < 90
    True
    """
    padded = torch.nn.functional.pad(histogram, (WINDOW // 2 - 1, WINDOW // 2))
    counts = padded.unfold(0, WINDOW, 1).sum(-1)  # centred half a bin to the right of each
    if not counts.any():
        return math.nan
    main = int(counts.argmax())
    right = counts[main:]
    lowest = right.cummin(0).values  # between the main hill and each bin
    rise = (right - lowest) / (right + lowest).clamp_min(1).sqrt()
    second = int(rise.argmax())
    if rise[second] < SIGNIFICANCE or lowest[second] > DEPTH * right[second]:
        return math.nan
    gap = (right[: second + 1] == lowest[second]).nonzero().flatten()  # an empty gap is cut in its middle
    hill, cut, peak = (_norm(main + steps) for steps in (second, float(gap.double().mean()), 0))
    return max(cut, LEAST_FACTOR * peak) if hill >= LEAST_FACTOR * peak else math.nan


def _norm(bins: float) -> float:
    """The norm at the centre of the window of a bin."""
    return float(2 ** ((bins + 1) / BINS_PER_OCTAVE + OCTAVES[0]))
