"""Centred kernel alignment (linear, debiased) between all layers of all models, in one matrix product per block.

The packed, U-centred Grams of all layers of all models are the rows of V; V V^T holds every HSIC. Each model was run
once; a model added later is compared with the stored Grams of the others.

Blocks are weighted by n (n - 3), the number of terms in their HSIC, so that a smaller last block counts for what it
is; with blocks of one size that is the mean over blocks. The published protocol weights all blocks alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import torch
from torch import Tensor

from vitscope.core.bootstrap import LEVEL, RESAMPLES, percentile_interval, resampling_counts
from vitscope.features.hsic import LEAST, pack, u_centre, unpack

BOOTSTRAP_FROM = 8  # blocks; with fewer, intervals come from leaving out images
GROUPS = 32  # at most: blocks are dealt into groups that are resampled together, and images left out together


@dataclass(frozen=True)
class Cka:
    """CKA of every site with every site, (S, S) each, float64; NaN where a site's features are constant.

    low, high: 95 % interval. null: standard deviation of CKA when the images of one side are permuted within their
    blocks (its mean is 0).
    """

    value: Tensor
    low: Tensor
    high: Tensor
    null: Tensor
    images: int
    blocks: int


def cka(packed: Tensor | Sequence[Tensor], members: Tensor, *, equal_weights: bool = False) -> Cka:
    """CKA of all pairs of sites.

    packed: (blocks, sites, pairs), or several models' of the same images, whose sites are put one after the other;
    members: (blocks, size) bool, the images that are there.
    """
    rows = torch.cat(list(packed), dim=1) if not isinstance(packed, Tensor) else packed  # (B, S, P)
    counts = members.sum(-1).double()  # (B,)
    usable = counts >= LEAST
    rows, members, counts = rows[usable], members[usable], counts[usable]
    if not len(rows):
        raise ValueError(f"no block has the {LEAST} images that CKA takes")
    weights = _weights(counts, equal_weights)
    groups = _grouped_products(rows, weights)  # (G, S, S)
    total = groups.sum(0)
    value = _normalised(total)
    if len(rows) >= BOOTSTRAP_FROM:
        low, high = _bootstrap(groups)
    else:
        low, high = _jackknife(rows, members, value, equal_weights)
    return Cka(value, low, high, _null_deviation(rows, counts, weights), int(counts.sum()), len(rows))


def _weights(counts: Tensor, equal: bool) -> Tensor:
    """What each block's inner product <K, L> is multiplied with."""
    return 1 / (counts * (counts - 3)) if equal else torch.ones_like(counts)


def _grouped_products(rows: Tensor, weights: Tensor) -> Tensor:
    """Weighted inner products of all pairs of sites, summed over groups of blocks: (B, S, P) -> (G, S, S) float64."""
    groups = min(len(rows), GROUPS)
    sums = torch.zeros(groups, rows.shape[1], rows.shape[1], dtype=torch.float64)
    for number, (block, weight) in enumerate(zip(rows, weights.tolist(), strict=True)):
        block = block.double()
        sums[number % groups] += 2 * weight * (block @ block.T)  # packed: half of the matrix
    return sums


def _normalised(products: Tensor) -> Tensor:
    """<K, L> / sqrt(<K, K> <L, L>): (..., S, S) -> (..., S, S); NaN where a site is constant."""
    own = products.diagonal(dim1=-1, dim2=-2)
    own = own.masked_fill(own <= 0, torch.nan).sqrt()
    return products / own.unsqueeze(-1) / own.unsqueeze(-2)


def _null_deviation(rows: Tensor, counts: Tensor, weights: Tensor) -> Tensor:
    """Standard deviation of CKA over permutations of the images of one side, exactly.

    U-centred matrices of n images form an irreducible representation of the permutations, of dimension n (n - 3) / 2;
    by Schur's lemma the inner product of K with a randomly permuted L has mean 0 and variance
    |K|^2 |L|^2 / (n (n - 3) / 2). Blocks are permuted independently.
    """
    own = 2 * torch.stack([block.double().square().sum(-1) for block in rows])  # (B, S): <K, K>
    scaled = own * (weights * (2 / (counts * (counts - 3))).sqrt()).unsqueeze(-1)
    total = (own * weights.unsqueeze(-1)).sum(0)
    total = total.masked_fill(total <= 0, torch.nan)
    return (scaled.T @ scaled).sqrt() / (total.unsqueeze(-1) * total.unsqueeze(-2)).sqrt()


def _bootstrap(groups: Tensor) -> tuple[Tensor, Tensor]:
    """Percentile intervals over groups of blocks. groups: (G, S, S)."""
    sites = groups.shape[1]
    counts = resampling_counts(len(groups), RESAMPLES)  # (R, G)
    own = counts @ groups.diagonal(dim1=-1, dim2=-2)  # (R, S)
    own = own.masked_fill(own <= 0, torch.nan).sqrt()
    interval = torch.empty(2, sites, sites, dtype=torch.float64)
    for site in range(sites):  # similarity is symmetric
        sampled = (counts @ groups[:, site, site:]) / own[:, site:] / own[:, site : site + 1]  # (R, S - site)
        interval[:, site, site:] = interval[:, site:, site] = percentile_interval(sampled)
    return interval[0], interval[1]


def _jackknife(rows: Tensor, members: Tensor, value: Tensor, equal: bool) -> tuple[Tensor, Tensor]:
    """Intervals from leaving out groups of images, for few blocks. rows: (B, S, P); members: (B, size)."""
    size = members.shape[1]
    groups = min(int(members.sum(1).max()), GROUPS)
    full = unpack(rows.double(), size)  # (B, S, size, size)
    without = []
    for group in range(groups):
        total = torch.zeros_like(value)
        for grams, present in zip(full, members, strict=True):
            places = present.nonzero().flatten()
            kept = places[torch.arange(len(places)) % groups != group]
            if len(kept) < LEAST:
                nothing = torch.full_like(value, torch.nan)
                return nothing, nothing.clone()
            block = pack(u_centre(grams[:, kept[:, None], kept[None, :]]))
            total += _weights(torch.tensor(float(len(kept))), equal) * (block @ block.T)
        without.append(_normalised(total))
    left_out = torch.stack(without)  # (groups, S, S)
    variance = (groups - 1) / groups * (left_out - left_out.mean(0)).square().sum(0)
    reach = NormalDist().inv_cdf((1 + LEVEL) / 2) * variance.sqrt()
    return value - reach, (value + reach).clamp_max(1)


def exact_cka(features: Sequence[Tensor], *, tile: int = 256) -> Tensor:
    """CKA of the full Gram of all images, for features that fit in memory: (S, S) float64.

    features: S arrays (n, D), whose widths may differ. The Grams (n, n) are never held: tiles of their rows are formed,
    U-centred and multiplied with each other. Constant features give NaN.
    """
    n = len(features[0])
    if n < LEAST or any(len(x) != n for x in features):
        raise ValueError(f"CKA takes the same images on both sides, {LEAST} or more: {[len(x) for x in features]}")
    centred, rows, totals = [], [], []
    for x in features:
        x = x.double() - x[0].double()  # exact zeros for constant features
        x = x - x.mean(0) if x.any() else x
        hollow = x @ x.sum(0) - x.square().sum(1)  # (n,): row sums of the Gram without its diagonal
        centred.append(x.float())
        rows.append(hollow / (n - 2))
        totals.append(hollow.sum() / ((n - 1) * (n - 2)))
    products = torch.zeros(len(features), len(features), dtype=torch.float64)
    for start in range(0, n, tile):
        stop = min(start + tile, n)
        inside = torch.arange(stop - start)
        grams = []
        for x, row, total in zip(centred, rows, totals, strict=True):
            gram = (x[start:stop] @ x.T).double() - row[start:stop, None] - row[None, :] + total  # (tile, n)
            gram[inside, inside + start] = 0
            grams.append(gram.flatten())
        stacked = torch.stack(grams)
        products += stacked @ stacked.T
    return _normalised(products)
