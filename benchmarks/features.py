"""Speed of the feature study: what Grams and pooled features add to a pass, CKA against its peers, clusters."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import torch
from ckatorch.core import cka_batch
from sklearn.cluster import KMeans
from torch import Tensor
from torch.nn import functional as F

from benchmarks.attention import images
from benchmarks.published_cka import published
from benchmarks.timing import Row, architecture, interleaved
from vitscope.core.analysis import BATCH
from vitscope.core.statistic import Statistic
from vitscope.data.batches import Batch, BatchAnnotations
from vitscope.features.cka import cka
from vitscope.features.clustering import INITIALISATIONS, best_of
from vitscope.features.gram_statistic import Grams, GramStatistic, NormGramStatistic
from vitscope.features.pooling import PooledStatistic
from vitscope.features.regions import RegionStatistic
from vitscope.features.residual import ResidualStatistic
from vitscope.models import Backbone, TokenLayout, load_model

LAYOUT, DEPTH, WIDTH = TokenLayout(grid=(14, 14)), 12, 768
SINGLE = TokenLayout(grid=(1, 1), prefix=0, has_cls=False)  # one vector per image
REGIONS = 7  # per image, as in COCO


def rows(quick: bool = False) -> Iterator[Row]:
    yield from pass_rows(quick)
    yield from cka_rows(rounds=1, width=16) if quick else cka_rows()
    yield from pooled_cka_rows(rounds=1, width=16) if quick else pooled_cka_rows()
    yield from clustering_rows(layers=1, n=500, k=10) if quick else clustering_rows()


def annotated(backbone: Backbone, count: int) -> Batch:
    """A batch of images with random regions."""
    batch = images(backbone, count)
    generator = torch.Generator().manual_seed(1)
    sizes = ((REGIONS, *backbone.preprocessing.size), (REGIONS, *backbone.layout.grid))
    batch.annotations = [
        BatchAnnotations(
            torch.arange(REGIONS),
            *(torch.randint(0, 256, size, generator=generator, dtype=torch.uint8) for size in sizes),
        )
        for _ in range(count)
    ]
    return batch


def pass_rows(quick: bool) -> Iterator[Row]:
    """One block of 32 images through ViT-B/16, bare and watched."""
    block = BATCH
    backbone = load_model(architecture(quick))
    batch = annotated(backbone, block)

    def watched(make: Callable[[], list[Statistic]]) -> Callable[[], None]:
        def run() -> None:
            statistics = make()
            for statistic in statistics:
                statistic.begin(batch)
            backbone.trace(batch.images, statistics)
            for statistic in statistics:
                statistic.end()

        return run

    def study() -> list[Statistic]:
        return [
            GramStatistic(backbone.layout, backbone.depth, block=block),
            NormGramStatistic(backbone.layout, backbone.depth, block=block),
            PooledStatistic(backbone.layout),
            RegionStatistic(backbone.layout),
        ]

    def residual() -> list[Statistic]:
        return [*study(), ResidualStatistic(backbone.layout, backbone.depth, block=block)]

    candidates = {"bare": watched(list), "study": watched(study), "residual": watched(residual)}
    threads = torch.get_num_threads()
    for count, clock, unit in ((threads, time.perf_counter, "wall"), (1, time.process_time, "CPU")):
        torch.set_num_threads(count)
        best = interleaved(candidates, rounds=1 if quick else 2, clock=clock)
        note = f"{unit} time, {count} thread(s), bare {best['bare'] / block:.3f} s per image"
        study_ratio, residual_ratio = best["study"] / best["bare"], best["residual"] / best["bare"]
        yield Row("Grams, pooled and region features / bare forward", study_ratio, 1.05, note=note)
        yield Row("the same with the residual analysis / bare forward", residual_ratio, None, note=note)
    torch.set_num_threads(threads)


def grams_of(layers: Sequence[Tensor], block: int, layout: TokenLayout = LAYOUT) -> Grams:
    """Grams of 24 sites of one model."""
    statistic = NormGramStatistic(layout, DEPTH, block=block)
    indices = torch.arange(len(layers[0]))
    statistic.begin(Batch(torch.empty(len(indices), 0), indices, [str(i) for i in indices.tolist()], None, None))
    for layer in range(DEPTH):
        statistic.norms(layer, "attention", layers[2 * layer])
        statistic.norms(layer, "mlp", layers[2 * layer + 1])
    statistic.end()
    return statistic.result()


def cka_rows(block: int = 8, rounds: int = 4, width: int = WIDTH) -> list[Row]:
    """All layers of two ViT-B by all tokens, features given: Grams, and the comparison alone."""
    generator = torch.Generator().manual_seed(0)
    size = (2 * DEPTH, block, LAYOUT.tokens, width)
    first = list(torch.randn(size, generator=generator))
    second = list(0.5 * torch.stack(first) + torch.randn(size, generator=generator))
    stored = [grams_of(side, block) for side in (first, second)]
    sites = 2 * DEPTH

    def compare(grams: list[Grams]) -> Tensor:
        return cka([g.packed["all"] for g in grams], grams[0].members).value

    difference = (compare(stored)[:sites, sites:] - published(first, second, block)).abs().max().item()

    def published_maps() -> None:
        for pair in ((first, first), (first, second), (second, second)):
            published(*pair, block)

    best = interleaved(
        {
            "torch_cka": published_maps,
            "ours": lambda: compare([grams_of(first, block), grams_of(second, block)]),
            "stored": lambda: compare(stored),
        },
        rounds=rounds,
    )
    pair, grams = best["torch_cka"] / 3, best["ours"] - best["stored"]
    seven = interleaved({"seven": lambda: compare([stored[i % 2] for i in range(7)])}, rounds=rounds)["seven"]
    note = f"{1000 * pair:.0f} ms a comparison, ours {1000 * best['ours']:.0f} ms in all, per batch of {block}; "
    note += f"largest difference {difference:.0e}"
    return [
        Row("CKA over depth of two ViT-B: both maps and the pair's, against torch_cka", 3 * pair / best["ours"], 20,
            better="larger", note=note),
        Row("the pair's map alone", pair / best["ours"], None, better="larger",
            note="all tokens, features given: 48 Grams where torch_cka forms 600"),
        Row("the pair's map from the Grams that the pass leaves", pair / best["stored"], 20, better="larger",
            note=f"{1000 * best['stored']:.1f} ms, with intervals and nulls"),
        Row("CKA of all pairs of 7 models from features", 28 * pair / (3.5 * grams + seven), 20, better="larger",
            note="torch_cka's 28 comparisons taken as 28 times one; it would also run every model 8 times"),
    ]  # fmt: skip


def pooled_cka_rows(block: int = BATCH, rounds: int = 4, width: int = WIDTH) -> Iterator[Row]:
    """All layers of two ViT-B by one vector per image; ckatorch's comparison of one pair is taken three times."""
    generator = torch.Generator().manual_seed(0)
    first, second = torch.randn(2, 2 * DEPTH, block, width, generator=generator)
    second = 0.5 * first + second

    def theirs() -> Tensor:
        return torch.stack([torch.stack([cka_batch(x[None], y[None]) for y in second]) for x in first])

    def ours() -> Tensor:
        sides = [grams_of(side.unsqueeze(2), block, SINGLE) for side in (first, second)]
        found = cka([grams.packed["all"] for grams in sides], sides[0].members)
        return found.value[: 2 * DEPTH, 2 * DEPTH :]

    difference = (ours() - theirs()).abs().max().item()
    best = interleaved({"ckatorch": theirs, "ours": ours}, rounds=rounds)
    note = f"{1000 * best['ckatorch']:.0f} ms against {1000 * best['ours']:.1f} ms, {block} images, CLS tokens given; "
    note += f"largest difference {difference:.0e}"
    pair = best["ckatorch"] / best["ours"]
    title = "CKA over depth of two ViT-B by CLS: both maps and the pair's, against ckatorch"
    yield Row(title, 3 * pair, 20, better="larger", note=note)
    yield Row("the pair's map alone, by CLS", pair, None, better="larger", note="ours comes with the other two")


def clustering_rows(layers: int = 2, n: int = 5000, k: int = 50) -> list[Row]:
    """k-means of some layers, 5,000 x 768, ten initialisations each; every layer costs the same."""
    generator = torch.Generator().manual_seed(0)
    centres = 0.35 * torch.randn(k, WIDTH, generator=generator)
    labels = torch.arange(n) % k
    points = [F.normalize(centres[labels] + torch.randn(n, WIDTH, generator=generator), dim=1) for _ in range(layers)]

    def scikit_learn() -> None:
        for layer in points:
            KMeans(k, n_init=INITIALISATIONS, random_state=0).fit(layer.numpy())

    def ours() -> None:
        for layer in points:
            best_of(layer, k, seed=0)

    best = interleaved({"ours": ours, "scikit-learn": scikit_learn}, rounds=1)
    note = f"{n} x {WIDTH}, k = {k}, n_init = {INITIALISATIONS}: {best['ours'] / layers:.1f} s per layer against "
    note += f"{best['scikit-learn'] / layers:.1f} s"
    ratio = best["scikit-learn"] / best["ours"]
    return [Row("k-means, speed against scikit-learn in a loop", ratio, 1.0, better="larger", note=note)]
