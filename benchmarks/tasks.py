"""Speed and memory of the downstream tasks: one extraction for all layers, search, propagation, J&F, matching."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import cv2
import faiss
import numpy as np
import torch
from PIL import Image
from scipy.ndimage import gaussian_filter
from skimage.morphology import disk
from sklearn.neighbors import NearestNeighbors
from torch.nn import functional as F

from benchmarks.attention import images
from benchmarks.timing import Row, architecture, interleaved
from vitscope.core.analysis import BATCH
from vitscope.features.dense import dense_features
from vitscope.features.pooling import PooledStatistic
from vitscope.models import load_model
from vitscope.tasks.davis_scores import boundary_accuracy, boundary_radius, region_similarity
from vitscope.tasks.logistic import fit
from vitscope.tasks.matching import best_matches
from vitscope.tasks.nearest import nearest
from vitscope.tasks.propagation import normalised, propagate

LAYERS, WIDTH, NEIGHBOURS = 12, 768, 200


def rows(quick: bool = False) -> Iterator[Row]:
    yield from extraction_rows(quick)
    yield from knn_rows(bank=2_000, queries=16) if quick else knn_rows()
    yield from probe_rows(count=300 if quick else 1500)
    yield from propagation_rows(rounds=1 if quick else 4)
    yield from davis_rows(frames=1, objects=1) if quick else davis_rows()
    yield from matching_rows(layers=1 if quick else LAYERS)


def extraction_rows(quick: bool) -> list[Row]:
    """Pooled features of twelve layers in one pass against one bare pass; the published code made twelve."""
    backbone = load_model(architecture(quick))
    batch = images(backbone, BATCH)

    def bare() -> None:
        with torch.no_grad():
            backbone.module.forward_features(backbone.preprocessing.normalise(batch.images))  # type: ignore[operator]

    def pooled() -> None:
        statistic = PooledStatistic(backbone.layout)
        statistic.begin(batch)
        backbone.trace(batch.images, [statistic])
        statistic.end()

    best = interleaved({"bare": bare, "pooled": pooled}, rounds=1 if quick else 6)
    frame = Image.fromarray(np.random.default_rng(0).integers(0, 256, (480, 854, 3), dtype=np.uint8))
    tiles = images(backbone, 8)

    def bare_tiles() -> None:
        with torch.no_grad():
            backbone.module.forward_features(backbone.preprocessing.normalise(tiles.images))  # type: ignore[operator]

    framed = {"bare": bare_tiles, "dense": lambda: dense_features(backbone, frame, dtype=torch.float16)}
    dense = interleaved(framed, rounds=1 if quick else 4)
    return [
        Row("pooled features of 12 layers / bare forward", best["pooled"] / best["bare"], 1.05, note="ViT-B/16"),
        Row("features of a 480p frame, 12 layers / bare forward", dense["dense"] / dense["bare"], 1.05, note="8 tiles"),
    ]


def knn_rows(bank: int = 50_000, queries: int = 256) -> list[Row]:
    """Exact search of 50,000 x 768 at twelve layers, from raw features to the 200 nearest."""
    generator = torch.Generator().manual_seed(0)
    known, asked = (torch.randn(count, WIDTH, generator=generator) for count in (bank, queries))

    def ours() -> None:
        for _ in range(LAYERS):
            nearest(asked, known, NEIGHBOURS)

    def scikit_learn() -> None:
        for _ in range(LAYERS):
            search = NearestNeighbors(n_neighbors=NEIGHBOURS, algorithm="brute")  # fastest: Euclid on unit vectors
            search.fit(F.normalize(known, dim=1).numpy()).kneighbors(F.normalize(asked, dim=1).numpy())

    candidates: dict[str, Callable[[], object]] = {"ours": ours, "scikit-learn": scikit_learn}
    candidates["faiss"] = lambda: _faiss(asked, known)
    best = interleaved(candidates, rounds=2)
    seconds = best.pop("ours")
    rival = min(best, key=lambda name: best[name])
    note = f"{bank} x {WIDTH} x {LAYERS} layers, {queries} queries, {seconds:.1f} s; " + ", ".join(
        f"{name} {value:.1f} s" for name, value in best.items()
    )
    return [Row(f"exact k-NN, speed against {rival}", best[rival] / seconds, 1.0, better="larger", note=note)]


def _faiss(asked: torch.Tensor, known: torch.Tensor) -> None:
    faiss.omp_set_num_threads(torch.get_num_threads())
    for _ in range(LAYERS):
        index = faiss.IndexFlatIP(WIDTH)
        index.add(F.normalize(known, dim=1).numpy())
        index.search(F.normalize(asked, dim=1).numpy(), NEIGHBOURS)


def probe_rows(count: int = 1500) -> list[Row]:
    """Twelve logistic regressions at once against scikit-learn's, one after the other."""
    from sklearn.linear_model import LogisticRegression

    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 20, (count,), generator=generator)
    centres = torch.randn(20, 192, generator=generator)
    layers = torch.stack(
        [0.1 * s * centres[labels] + torch.randn(count, 192, generator=generator) for s in range(LAYERS)]
    )
    penalty = torch.full((LAYERS,), 1e-3)

    def one_by_one() -> None:
        for layer in layers:
            LogisticRegression(C=1 / (len(labels) * 1e-3), max_iter=1000).fit(layer.numpy(), labels.numpy())

    best = interleaved({"ours": lambda: fit(layers, labels, 20, penalty), "scikit-learn": one_by_one}, rounds=2)
    ratio, note = best["scikit-learn"] / best["ours"], f"{count} x 192, 20 classes"
    return [Row("12 linear probes, speed against scikit-learn", ratio, None, better="larger", note=note)]


def propagation_rows(rounds: int = 4) -> list[Row]:
    """One frame of one layer from eight frames, against the whole affinity; memory at patch 8."""
    generator = torch.Generator().manual_seed(0)
    frames = [normalised(torch.randn(28, 49, WIDTH, generator=generator)) for _ in range(9)]
    labels = [torch.rand(28, 49, 3, generator=generator) for _ in range(8)]
    mask = _whole_mask(28, 49, 12)

    def whole() -> None:
        sources = torch.stack(frames[:8]).flatten(1, 2)  # (8, N, D)
        affinity = (torch.bmm(frames[8].flatten(0, 1).expand(8, -1, -1), sources.mT) / 0.1).exp() * mask
        affinity = affinity.mT.reshape(-1, mask.shape[0])  # (8 N, N)
        affinity[affinity < affinity.topk(5, dim=0).values.amin(0)] = 0
        (torch.stack(labels).flatten(0, 2).T @ (affinity / affinity.sum(0))).sum()

    def ours() -> None:
        propagate(frames[8], frames[:8], labels, radius=12, neighbours=5, temperature=0.1)

    best = interleaved({"whole": whole, "ours": ours}, rounds=rounds)
    speed = best["whole"] / best["ours"]
    note = f"{best['ours'] * 1000:.0f} ms per frame and layer, 28 x 49 tokens of ViT-B/16 at 480p, 8 frames before"
    peak = Row(
        "label propagation, memory beyond the features", measured_propagation_peak(), 300, unit="MB",
        note="ViT-B/8 at 480p, 56 x 98 tokens, 8 frames before; the whole affinity would be 920 MB",
    )  # fmt: skip
    return [Row("label propagation, speed against the whole affinity", speed, 1.0, better="larger", note=note), peak]


def _whole_mask(h: int, w: int, radius: int) -> torch.Tensor:
    rows, columns = torch.arange(h).repeat_interleave(w), torch.arange(w).repeat(h)
    near = [(axis[:, None] - axis[None, :]).abs() <= radius for axis in (rows, columns)]
    return (near[0] & near[1]).float()


MEMORY = """
import torch
from pathlib import Path
from vitscope.tasks.propagation import propagate
def peak():  # of this program alone; what `resource` gives includes the one that started it
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024
frames = [torch.full((56, 98, 768), 0.036, dtype=torch.float16) for _ in range(9)]
labels = [torch.rand(56, 98, 4) for _ in range(8)]
small = [[part[:9, :9] for part in parts[:1]] for parts in (frames, labels)]
propagate(frames[8][:9, :9], *small, radius=2, neighbours=5, temperature=0.1)
before = peak()
propagate(frames[8], frames[:8], labels, radius=12, neighbours=5, temperature=0.1)
print(peak() - before)
"""


def measured_propagation_peak() -> float:
    run = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    return float(run.stdout)


def davis_rows(frames: int = 6, objects: int = 2) -> list[Row]:
    """J and F of 480p masks against the official algorithm, object by object, with the dilation of OpenCV."""
    generator = np.random.default_rng(0)
    fields = gaussian_filter(generator.normal(size=(2, frames, objects, 480, 854)), (0, 0, 0, 40, 40))
    truth, predicted = (fields[0] > 0.004), (0.9 * fields[0] + 0.3 * fields[1] > 0.004)  # blobs, roughly found
    pairs = list(zip(truth.reshape(-1, 480, 854), predicted.reshape(-1, 480, 854), strict=True))
    footprint = disk(boundary_radius((480, 854)))
    cv2.setNumThreads(1)

    def official() -> np.ndarray:
        scores: np.ndarray = np.array([_official(a, b, footprint) for a, b in pairs]).T
        return scores

    def ours() -> np.ndarray:
        return np.stack([region_similarity(truth, predicted).ravel(), boundary_accuracy(truth, predicted).ravel()])

    difference = np.abs(official() - ours()).max()
    best = interleaved({"official": official, "ours": ours}, rounds=3, clock=time.process_time)
    note = f"{1000 * best['ours'] / frames / objects:.2f} ms per frame and object at 480p, CPU time; "
    note += f"largest difference {difference:.0e}"
    ratio = best["official"] / best["ours"]
    return [Row("J&F, speed against the official algorithm with OpenCV", ratio, 5.0, better="larger", note=note)]


def _official(truth: np.ndarray, predicted: np.ndarray, footprint: np.ndarray) -> tuple[float, float]:
    """J and F as the DAVIS evaluation writes them, for one object of one frame."""
    region = np.sum(truth & predicted) / np.sum(truth | predicted)
    edges = _edge(truth), _edge(predicted)
    near = [cv2.dilate(edge.astype(np.uint8), footprint) for edge in edges]
    recall, precision = np.sum(edges[0] * near[1]) / np.sum(edges[0]), np.sum(edges[1] * near[0]) / np.sum(edges[1])
    return float(region), float(2 * precision * recall / (precision + recall))


def _edge(mask: np.ndarray) -> np.ndarray:
    right, below, across = np.zeros_like(mask), np.zeros_like(mask), np.zeros_like(mask)
    right[:, :-1], below[:-1], across[:-1, :-1] = mask[:, 1:], mask[1:], mask[1:, 1:]
    edge: np.ndarray = (mask ^ right) | (mask ^ below) | (mask ^ across)
    edge[-1], edge[:, -1] = mask[-1] ^ right[-1], mask[:, -1] ^ below[:, -1]
    edge[-1, -1] = 0
    return edge


def matching_rows(points: int = 10, layers: int = LAYERS) -> list[Row]:
    """Twelve layers of one pair: cosines at every pixel from maps of tokens, against enlarged feature maps."""
    generator = torch.Generator().manual_seed(0)
    maps = torch.randn(layers, 14, 14, WIDTH, generator=generator)
    queries = torch.randn(layers, points, WIDTH, generator=generator)
    cells = (torch.arange(224) + 0.5) / 16 - 0.5

    def enlarged() -> None:
        for layer in range(layers):
            dense = F.interpolate(maps[layer].permute(2, 0, 1)[None], size=(224, 224), mode="bilinear")[0]
            (queries[layer] @ F.normalize(dense, dim=0).flatten(1)).argmax(1)

    best = interleaved({"enlarged": enlarged, "ours": lambda: best_matches(queries, maps, cells, cells)}, rounds=2)
    note = f"{1000 * best['ours']:.0f} ms for {layers} layers of a pair of {points} points; "
    note += "enlarged maps are 154 MB a layer"
    ratio = best["enlarged"] / best["ours"]
    return [Row("keypoint matching, speed against enlarged maps", ratio, 5.0, better="larger", note=note)]
