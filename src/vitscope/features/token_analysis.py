"""The analysis of tokens: norms and outliers, cosines, share of position, frequency and spectrum, from one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl
import torch
from torch import Tensor

from vitscope.core.analysis import Analysis, Found, Measure, Outcome, Stream, Watch, batch_of
from vitscope.core.results import NOBODY, tidy, tidy_mean
from vitscope.features.outliers import norm_histogram, outlier_cut
from vitscope.features.pooling import MOST_FLOAT32, pooled
from vitscope.features.record import VARIANTS
from vitscope.features.spectrum import FIRST, GROUPS, spectrum
from vitscope.features.tokens import PatchSample, TokenStatistic, likeness_without_position, position_share
from vitscope.models.layout import TokenLayout

if TYPE_CHECKING:
    from vitscope.data.dataset import ImageSet
    from vitscope.models.shape import ModelShape

POINTS = 1024  # whose spectrum is taken: images, or patch tokens
LEAST_POINTS = 4 * FIRST * GROUPS // (GROUPS - 1)  # fewer have no slope once a group is left out


class Tokens(Analysis):
    """What becomes of tokens on their way: do some grow out of proportion, do they become alike, do they keep their
    place, and how many directions do they use?"""

    name = "tokens"
    title = "tokens"
    domain = "what"
    kind = "images"
    measures = (
        Measure("token_norm", "token norm", "length of tokens: median and 99th percentile of patches, CLS, registers"),
        Measure("norm_spread", "largest norm", "largest norm of an image's patch tokens over their median norm"),
        Measure(
            "norm_outliers",
            "outlier tokens",
            "share of patch tokens whose norm lies beyond the gap of the histogram; 0 where there is no gap",
        ),
        Measure("outlier_cut", "norm of outliers", "where the gap is: tokens with a larger norm are outliers"),
        Measure("cls_patch_cosine", "CLS and patches", "mean cosine of CLS with the patch tokens"),
        Measure("patch_patch_cosine", "patches among each other", "mean cosine of two patch tokens of an image"),
        Measure(
            "position_share", "share of position", "share of the variance of patch tokens that their position explains"
        ),
        Measure(
            "patch_patch_without_position",
            "patches without position",
            "how alike two patch tokens of an image are once the mean of each position is taken away",
        ),
        Measure(
            "frequency",
            "fine over coarse",
            "log amplitude of patch tokens at the highest frequency of the grid minus that at zero",
        ),
        Measure("rankme", "RankMe", "exponential of the entropy of singular values: how many directions are used"),
        Measure("spectrum_slope", "slope of the spectrum", "alpha of eigenvalues that fall like i^-alpha"),
    )

    def passes(self, dataset: ImageSet, shape: ModelShape) -> Sequence[Stream]:
        samples = dataset.shuffled
        count = len(samples)
        dtype = "float16" if count > MOST_FLOAT32 else "float32"
        watch = (
            Watch.by(TokenStatistic, block=batch_of(count), dtype=dtype),
            Watch.by(PatchSample, images=POINTS, each=-(-POINTS // count)),
            pooled(samples),
        )
        return [Stream(samples, watch)]

    def reduce(self, dataset: ImageSet, found: Found) -> Outcome:
        seen: TokenStatistic = found.statistic("tokens")
        outcome = Outcome()
        _add_norms(seen, found.shape.layout, outcome)
        means = {"patch_patch": "patch_patch_cosine", "high_over_low": "frequency", "cls_patch": "cls_patch_cosine"}
        for row, measure in means.items():
            if seen.has_rows(row):
                outcome.tables.append(tidy_mean(NOBODY, measure, seen.blocks_of(row), axes=("layer",)))
        power, shared, mean_power, shared_mean = map(seen.rows_of, ("power", "shared", "mean_power", "shared_mean"))
        of_position = {
            "position_share": position_share(power, shared, shared_mean),
            "patch_patch_without_position": likeness_without_position(
                power, shared, mean_power, shared_mean, found.shape.layout.spatial
            ),
        }
        options: dict[str, Any] = {"axes": ("layer",), "n": seen.count}
        for measure, (value, low, high) in of_position.items():
            outcome.tables.append(tidy(NOBODY, measure, value, low=low, high=high, **options))
        _add_spectrum(found, outcome)
        outcome.tables = [table.filter(pl.col("value").is_not_nan()) for table in outcome.tables]
        return outcome


def _add_norms(seen: TokenStatistic, layout: TokenLayout, outcome: Outcome) -> None:
    """Norms, and what stands apart from them; images come in blocks."""
    prefix, per_layer = layout.prefix, {"axes": ("layer",)}
    histogram: Tensor | None = None
    summaries: dict[str, list[Tensor]] = {}
    for block in seen.blocks_of("norm"):  # (m, L, T)
        norms = block.double()
        counts = torch.stack([norm_histogram(layer[:, prefix:]) for layer in norms.unbind(1)])  # (L, bins)
        histogram = counts if histogram is None else histogram + counts
        for name, value in norm_summaries(norms, layout).items():
            summaries.setdefault(name, []).append(value)
    assert histogram is not None, "no images"
    for name, blocks in summaries.items():
        measure = "norm_spread" if name == "largest" else "token_norm"
        variant = "" if name == "largest" else name
        outcome.tables.append(tidy_mean(NOBODY, measure, blocks, variant=variant, **per_layer))
    cuts = torch.tensor([outlier_cut(layer) for layer in histogram], dtype=torch.float64)  # (L,)
    shares = (beyond(block[..., prefix:], cuts).double().mean(-1) for block in seen.blocks_of("norm"))
    outcome.tables.append(tidy_mean(NOBODY, "norm_outliers", shares, **per_layer))
    outcome.tables.append(tidy(NOBODY, "outlier_cut", cuts, n=seen.count, axes=("layer",)))
    often = sum(beyond(block[..., prefix:], cuts).double().sum(0) for block in seen.blocks_of("norm"))
    assert isinstance(often, Tensor)
    outcome.maps["norm_outliers"] = (often / seen.count).unflatten(-1, layout.grid).float()  # (L, h, w)


def norm_summaries(norms: Tensor, layout: TokenLayout) -> dict[str, Tensor]:
    """Of every image and layer: norms (m, L, T) -> (m, L) by name."""
    patches = norms[..., layout.prefix :]
    middle = patches.median(-1).values
    found = {
        "patches, median": middle,
        "patches, 99th percentile": torch.quantile(patches, 0.99, dim=-1),
        "largest": patches.amax(-1) / middle.clamp_min(1e-12),
    }
    if layout.has_cls:
        found["cls"] = norms[..., 0]
    if layout.prefix > layout.has_cls:
        found["registers"] = norms[..., int(layout.has_cls) : layout.prefix].mean(-1)
    return found


def beyond(norms: Tensor, cuts: Tensor) -> Tensor:
    """Which patch tokens are outliers: norms (m, L, N), cuts (L,) or NaN for none -> bool (m, L, N)."""
    return norms > cuts.nan_to_num(torch.inf).view(1, -1, 1)


def _add_spectrum(found: Found, outcome: Outcome) -> None:
    for variant, layers, n in _features(found):
        if n < LEAST_POINTS:
            outcome.notes.append(f"{n} points are too few for a spectrum: it takes {LEAST_POINTS}")
            continue
        both = [spectrum(layer) for layer in layers]
        value, reach = (torch.stack(part, 1) for part in zip(*both, strict=True))  # (2, L)
        for measure, v, r in zip(("rankme", "spectrum_slope"), value, reach, strict=True):
            options: dict[str, Any] = {"axes": ("layer",), "n": n, "variant": variant}
            outcome.tables.append(tidy(NOBODY, measure, v, low=v - r, high=v + r, **options))


def _features(found: Found) -> Iterator[tuple[str, Iterator[Tensor], int]]:
    """(variant, features (n, D) of every layer, n)."""
    whole = found.features()
    for pooling in whole.kinds:
        n = min(len(whole), POINTS)
        yield VARIANTS[pooling], (layer.whole(POINTS) for layer in whole.layers(pooling)), n
    tokens: Tensor = found.statistic("patch_sample").result()  # (m, L, D)
    yield "patch", iter(tokens.unbind(1)), len(tokens)
