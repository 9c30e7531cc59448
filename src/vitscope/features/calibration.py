"""Likeness of layers that is calibrated: how far CKA and mutual neighbours exceed what unrelated features would give.

Both are inner products of two matrices of images by images, one of each layer: U-centred Grams of norm 1, or who is
whose neighbour. Permuting the images of one side is permuting rows and columns of its matrices, so the null of all
layers with all layers takes one matrix product per permutation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import polars as pl
import torch
from torch import Tensor

from vitscope.core.analysis import Analysis, Found, Measure, Member, Outcome, Stream
from vitscope.core.digest import digest_of
from vitscope.core.results import Label, tidy
from vitscope.features.hsic import LEAST, u_centre
from vitscope.features.neighbours import NEIGHBOURS, nearest
from vitscope.features.pooling import pooled
from vitscope.features.record import VARIANTS, FeatureRecord, check_comparable
from vitscope.features.similarity import SIMILARITIES

if TYPE_CHECKING:
    from vitscope.data.dataset import ImageSet
    from vitscope.models.shape import ModelShape

IMAGES = 256  # that are compared, at most: the null of all layers of all pairs of models takes their square
PERMUTATIONS = 100
QUANTILE = 0.95
DISTANT = 0.01  # share of images, the most distant ones, that the outlier check leaves out
MOVED = 0.1  # a CKA that moves by more than this without them is told
GROUPS = 8  # of images, each left out once for the interval
TITLES = {"cka": "CKA", "neighbours": f"mutual {NEIGHBOURS}-NN"}


def gram_matrices(layers: Sequence[Tensor]) -> Tensor:
    """U-centred Grams of norm 1: L of (n, D) -> (L, n, n) float32. Constant features give NaN."""
    found = []
    for x in layers:
        x = x.double() - x.double().mean(0)
        gram = u_centre(x @ x.T)
        found.append((gram / gram.norm()).float())
    return torch.stack(found)


def neighbour_matrices(layers: Sequence[Tensor], k: int = NEIGHBOURS) -> Tensor:
    """Who is among whose k nearest, scaled so that inner products are mutual shares: L of (n, D) -> (L, n, n)."""
    found = []
    for x in layers:
        near = nearest(x, k)
        found.append(torch.zeros(len(x), len(x)).scatter_(1, near, (len(x) * k) ** -0.5))
    return torch.stack(found)


@dataclass(frozen=True)
class Calibrated:
    """All layers of one model with all of another, (L, L') each.

    raw: the score; tau: the 95 % quantile of scores when images are permuted; value: max(0, (raw - tau) / (1 - tau));
    p: share of permutations that reach the score, corrected for the number of pairs of layers.
    """

    raw: Tensor
    tau: Tensor
    p: Tensor

    @property
    def value(self) -> Tensor:
        return calibrate(self.raw, self.tau)


def calibrate(raw: Tensor, tau: Tensor) -> Tensor:
    """
    >>> calibrate(torch.tensor([0.625, 0.125]), torch.tensor(0.25)).tolist()
    [0.5, 0.0]
    """
    return ((raw - tau) / (1 - tau)).clamp_min(0)


def calibrated(first: Tensor, second: Tensor, *, permutations: int = PERMUTATIONS, seed: int = 0) -> Calibrated:
    """first: (L, n, n), second: (L', n, n), of the same images.

    p is corrected as Westfall and Young do: a permutation counts if any pair of layers deviates as far from its own
    null, in that null's standard deviations.
    """
    generator = torch.Generator().manual_seed(seed)
    mine, n = first.flatten(1), first.shape[-1]
    raw = (mine @ second.flatten(1).T).double()
    null = torch.empty(permutations, *raw.shape, dtype=torch.float64)
    for turn in range(permutations):
        order = torch.randperm(n, generator=generator)
        null[turn] = (mine @ second[:, order][:, :, order].flatten(1).T).double()
    spread = null.std(0).clamp_min(1e-12)
    furthest = ((null - null.mean(0)) / spread).flatten(1).amax(1)  # (P,)
    reached = (furthest.view(-1, 1, 1) >= (raw - null.mean(0)) / spread).sum(0)
    tau = torch.quantile(null, QUANTILE, dim=0)
    return Calibrated(raw, tau, (1 + reached.double()) / (1 + permutations))


def distant(features: Sequence[Tensor], share: float = DISTANT) -> Tensor:
    """Which images are the most distant from the mean, in either model: n of (n, D) -> bool (n,).

    Distances are in units of their median, so that models are heard alike.
    """
    far = []
    for x in features:
        distance = (x.double() - x.double().mean(0)).norm(dim=1)
        far.append(distance / distance.median().clamp_min(1e-12))
    furthest = torch.stack(far).amax(0)
    count = max(round(share * len(furthest)), 1)
    found = torch.zeros(len(furthest), dtype=torch.bool)
    found[furthest.topk(count).indices] = True
    return found


class Calibration(Analysis):
    """How alike all layers of two models are, beyond what unrelated features are; and whether a few images make it.

    A score is calibrated by the 95 % quantile of scores when the images of one side are permuted: 0 is no more than
    chance, 1 is identity, whatever the number of images and of dimensions.
    """

    name = "calibration"
    title = "calibrated similarity"
    domain = "what"
    kind = "images"
    measures = (
        Measure(
            "calibrated_cka", "CKA, calibrated", "CKA of last layers beyond what permuted images give: 0 is chance"
        ),
        Measure("calibrated_neighbours", "mutual neighbours, calibrated", "the same for mutual nearest neighbours"),
        Measure("calibrated_cka_p", "p value of CKA", "share of permutations that reach it, corrected for all layers"),
        Measure("calibrated_neighbours_p", "p value of mutual neighbours", "the same for mutual nearest neighbours"),
        Measure("cka_without_outliers", "CKA without outliers", "CKA with the 1 % most distant images left out"),
    )

    permutations: int = PERMUTATIONS
    images: int = IMAGES

    def passes(self, dataset: ImageSet, shape: ModelShape) -> Sequence[Stream]:
        return [Stream(dataset.shuffled, (pooled(dataset.shuffled),))]

    def reduce(self, dataset: ImageSet, found: Found) -> Outcome:
        return Outcome()

    def compare(self, dataset: ImageSet, members: Sequence[Member]) -> Outcome | None:
        records = [FeatureRecord(m.found, m.title, m.teaching, m.digest) for m in members]
        if len(records) < 2:
            return None
        check_comparable(records)
        n = min(len(records[0].pooled), self.images)
        outcome = Outcome()
        for pooling, variant in VARIANTS.items():
            having = [record for record in records if pooling in record.pooled.kinds]
            layers = [[r.features(pooling, layer, n) for layer in range(r.depth)] for r in having]
            for name, matrices in (("cka", gram_matrices), ("neighbours", neighbour_matrices)):
                least = LEAST if name == "cka" else NEIGHBOURS + 1
                if n <= least:
                    note = f"calibrated {TITLES[name]} takes more than {least} images, there are {n}"
                    outcome.notes += [note] if note not in outcome.notes else []
                    continue
                made = [matrices(one) for one in layers]
                for i, j in combinations(range(len(having)), 2):
                    found = calibrated(made[i], made[j], permutations=self.permutations)
                    _add_pair(having[i], having[j], name, variant, found, (layers[i][-1], layers[j][-1]), outcome)
        return outcome


def _add_pair(
    a: FeatureRecord,
    b: FeatureRecord,
    name: str,
    variant: str,
    found: Calibrated,
    last: tuple[Tensor, Tensor],
    outcome: Outcome,
) -> None:
    outcome.maps[f"{a.title}/calibrated.{name}.{variant}.{b.title}"] = found.value.float()
    outcome.maps[f"{a.title}/calibrated.{name}.{variant}.{b.title}.p"] = found.p.float()
    value, tau, p = (side[-1, -1] for side in (found.value, found.tau, found.p))
    reach = jackknife_reach(name, *last) / (1 - tau)
    options: dict[str, Any] = {"n": len(last[0]), "variant": variant}
    rows = [_row(a, b, f"calibrated_{name}", value, (value - reach).clamp_min(0), value + reach, **options)]
    rows.append(_row(a, b, f"calibrated_{name}_p", p, **options))
    if name == "cka":
        inside = ~distant(last)
        without = SIMILARITIES["cka"].function(*(x[inside] for x in last))
        rows.append(_row(a, b, "cka_without_outliers", torch.tensor(without), **options))
        if abs(without - found.raw[-1, -1].item()) > MOVED:
            count = int((~inside).sum())
            images, them = ("a distant image", "it") if count == 1 else (f"{count} distant images", "them")
            outcome.notes.append(
                f"CKA of {a.title} and {b.title} ({variant}) rests on {images}: "
                f"{found.raw[-1, -1].item():.2f} with {them}, {without:.2f} without"
            )
    outcome.tables += [row.filter(pl.col("value").is_not_nan()) for row in rows]


def jackknife_reach(name: str, x: Tensor, y: Tensor) -> Tensor:
    """1.96 jackknife deviations of a similarity, images being left out in eight groups."""
    groups = torch.arange(len(x)) * GROUPS // len(x)
    smallest = SIMILARITIES[name].least
    if len(x) - len(x) // GROUPS - 1 < smallest:
        return torch.tensor(float("nan"), dtype=torch.float64)
    values = [SIMILARITIES[name].function(x[groups != g], y[groups != g]) for g in range(GROUPS)]
    scores = torch.tensor(values, dtype=torch.float64)
    return 1.959964 * ((scores - scores.mean()).square().sum() * (GROUPS - 1) / GROUPS).sqrt()


def _row(
    a: FeatureRecord,
    b: FeatureRecord,
    measure: str,
    value: Tensor,
    low: Tensor | None = None,
    high: Tensor | None = None,
    **options: Any,
) -> pl.DataFrame:
    """One row about the last layers of two models."""
    label = Label(a.title, a.teaching, "", digest_of([a.digest, b.digest]))
    options |= {name: end.reshape(1) for name, end in (("low", low), ("high", high)) if end is not None}
    rows = tidy(label, measure, value.reshape(1), axes=("layer",), **options)
    return rows.with_columns(
        layer=pl.lit(a.depth, pl.Int32), other_model=pl.lit(b.title), other_layer=pl.lit(b.depth, pl.Int32)
    )
