"""Every statistic once more, in float64 and as plainly as it can be written: all images at once, no sharing, no tricks.

A reference takes what was shown (and the settings of the statistic) and returns some or all of its numbers, by the
names that `flatten` gives them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.linalg
import torch
from sklearn.metrics import average_precision_score
from torch import Tensor

from tests.support.signals import CELL, Shown
from vitscope.data.batches import BatchAnnotations

Numbers = dict[str, Tensor]


def split(shown: Shown, rows: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
    """Attention in float64: of all tokens, among patch tokens, and that renormalised to sum 1."""
    attention, prefix = shown.attention[list(rows)].double(), shown.shape.layout.prefix
    patches = attention[..., prefix:, prefix:]
    return attention, patches, patches / patches.sum(-1, keepdim=True)


def looked_at(shown: Shown, rows: Sequence[int]) -> Tensor:
    """(n, L, H, N): where CLS looks, or patch tokens on average."""
    attention, _, pure = split(shown, rows)
    return attention[..., 0, shown.shape.layout.prefix :] if shown.shape.layout.has_cls else pure.mean(-2)


def places(shown: Shown) -> list[tuple[int, int]]:
    h, w = shown.shape.layout.grid
    return [(i, j) for i in range(h) for j in range(w)]


def maps(shown: Shown, rows: Sequence[int]) -> Numbers:
    attention, _, pure = split(shown, rows)
    prefix, grid = shown.shape.layout.prefix, shown.shape.layout.grid
    found = {"all": attention.mean(-2), "spatial": attention[..., prefix:, :].mean(-2)}
    if shown.shape.layout.has_cls:
        found["cls"] = attention[..., 0, :]
    h, w = grid
    edges = {"top": (0, w // 2), "left": (h // 2, 0), "centre": (h // 2, w // 2)}
    edges |= {"right": (h // 2, w - 1), "bottom": (h - 1, w // 2)}
    at = {name: attention[..., prefix + places(shown).index(where), :] for name, where in edges.items()}
    numbers = {name: value.mean(0)[..., prefix:].unflatten(-1, grid) for name, value in found.items()}
    numbers |= {f"places.{name}": value.mean(0)[..., prefix:].unflatten(-1, grid) for name, value in at.items()}
    numbers |= {f"cells.{name}": value.mean(0)[..., :prefix] for name, value in (found | at).items()}
    return numbers | {"pure": pure.mean((0, -2)).unflatten(-1, grid), "n": torch.tensor(len(rows))}


def distance(shown: Shown, rows: Sequence[int]) -> Numbers:
    _, _, pure = split(shown, rows)
    steps = torch.tensor([[math.dist(a, b) for b in places(shown)] for a in places(shown)], dtype=torch.float64)
    mean, edge = (pure * steps).sum(-1).mean(-1), max(shown.shape.layout.grid)
    return {"grid": mean / (edge - 1), "patch_free": mean / edge, "pixels": mean * CELL}


def dispersion(shown: Shown, rows: Sequence[int]) -> Numbers:
    attention, patches, _ = split(shown, rows)
    prefix = shown.shape.layout.prefix
    return {
        "prefix_mass": attention[..., prefix:, :prefix].sum(-1).mean(-1),
        "first_spatial_mass": attention[..., prefix:, prefix].mean(-1),
        "entropy": -(attention * attention.log()).sum(-1).mean(-1),
        "head_deviation": patches.std(2).mean((-1, -2)),
        "position_deviation": patches.std(-2).mean(-1),
    }


def patterns(shown: Shown, rows: Sequence[int]) -> Numbers:
    seen = looked_at(shown, rows)
    n, (h, w), depth = seen.shape[-1], shown.shape.layout.grid, shown.shape.depth
    difference = (seen.unsqueeze(-1) - seen.unsqueeze(-2)).abs().sum((-1, -2))
    central = [abs((i + 0.5) / h - 0.5) <= 0.25 and abs((j + 0.5) / w - 0.5) <= 0.25 for i, j in places(shown)]
    inside = torch.tensor(central)
    late = depth - math.ceil(depth / 4)
    correlations = [np.corrcoef(image[late:].flatten(0, 1)) for image in seen]
    repetition = torch.full(seen.shape[:3], torch.nan, dtype=torch.float64)
    for image, matrix in zip(repetition, correlations, strict=True):
        others = (matrix.sum(-1) - 1) / (len(matrix) - 1)
        image[late:] = torch.from_numpy(others).unflatten(0, (depth - late, -1))
    in_layer = torch.full(seen.shape[:3], torch.nan, dtype=torch.float64)
    heads = seen.shape[2]
    for image, layer in np.ndindex(*seen.shape[:2]) if heads > 1 else ():
        in_layer[image, layer] = torch.from_numpy((np.corrcoef(seen[image, layer]).sum(-1) - 1) / (heads - 1))
    return {
        "gini": difference / (2 * n * seen.sum(-1)),
        "top_share": seen.sort(-1, descending=True).values[..., :5].sum(-1) / seen.sum(-1),
        "centre_lift": seen[..., inside].sum(-1) / seen.sum(-1) / inside.double().mean(),
        "compactness": _per_map(seen, lambda one: _compactness(top_tokens(one), h, w)),
        "repetition": repetition,
        "repetition_in_layer": in_layer,
    }


def pool(shown: Shown, rows: Sequence[int]) -> Numbers:
    """The mean over images; the look of the maps is the same arithmetic as that of `patterns`."""
    seen = pool_looks(shown, rows)
    return {"": seen.mean(0).unflatten(-1, shown.shape.layout.grid)}


def pool_looks(shown: Shown, rows: Sequence[int]) -> Tensor:
    """(n, 1, H, N): where the pooling head of the last layer looks."""
    return shown.attention[list(rows), -1:, :, -1, -shown.shape.layout.spatial :].double()


def _per_map(seen: Tensor, function: Callable[[Tensor], float]) -> Tensor:
    values = [function(one) for one in seen.flatten(0, 2)]
    return torch.tensor(values, dtype=torch.float64).unflatten(0, seen.shape[:3])


def top_tokens(one: Tensor) -> set[int]:
    """The fewest tokens that hold 60 % of a map."""
    chosen: set[int] = set()
    held = 0.0
    for token in one.argsort(descending=True).tolist():
        if held >= 0.6 * one.sum().item():
            break
        chosen.add(token)
        held += one[token].item()
    return chosen


def _compactness(chosen: set[int], h: int, w: int) -> float:
    neighbours = inside = 0
    for token in chosen:
        i, j = divmod(token, w)
        for k, m in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
            if 0 <= k < h and 0 <= m < w:
                neighbours += 1
                inside += k * w + m in chosen
    return inside / max(neighbours, 1)


def aligned(shown: Shown, rows: Sequence[int]) -> Numbers:
    _, _, pure = split(shown, rows)
    h, w = shown.shape.layout.grid
    canvas = torch.zeros(*pure.shape[:3], 2 * h - 1, 2 * w - 1, dtype=torch.float64)
    counts = torch.zeros(2 * h - 1, 2 * w - 1, dtype=torch.float64)
    for s, (i, j) in enumerate(places(shown)):
        for d, (k, m) in enumerate(places(shown)):
            canvas[..., k - i + h - 1, m - j + w - 1] += pure[..., s, d]
            counts[k - i + h - 1, m - j + w - 1] += 1
    groups = torch.zeros(16, *canvas.shape[1:], dtype=torch.float64)
    for row, one in zip(rows, canvas, strict=True):
        groups[row // 4 % 16] += one / (h * w)
    return {"paper": canvas.mean(0) / (h * w), "corrected": canvas.mean(0) / counts, "groups": groups}


def rollout(shown: Shown, rows: Sequence[int]) -> Numbers:
    attention, _, _ = split(shown, rows)
    layout = shown.shape.layout
    product = torch.eye(layout.tokens, dtype=torch.float64)
    ends = []
    for layer in attention.mean(2).unbind(1):
        product = 0.5 * (layer + torch.eye(layout.tokens, dtype=torch.float64)) @ product
        ends.append(product[:, 0] if layout.has_cls else product[:, layout.prefix :].mean(1))
    reached = torch.stack(ends, dim=1)[..., layout.prefix :]
    return {"": (reached / reached.sum(-1, keepdim=True)).mean(0).unflatten(-1, layout.grid)}


def examples(shown: Shown, rows: Sequence[int]) -> Numbers:
    first = [row for row in rows if row < 6]  # the images that people look at, one by one
    attention, patches, _ = split(shown, first)
    layout = shown.shape.layout
    seen = attention[..., 0, layout.prefix :] if layout.has_cls else patches.mean(-2)
    return {"images": shown.images[first], "maps": seen.unflatten(-1, layout.grid)}


def saliency(shown: Shown, rows: Sequence[int]) -> Numbers:
    numbers: Numbers = {}
    for protocol, truth_of in (("corrected", _objects), ("paper", _objects_paper)):
        truths = {row: truth_of(shown.annotations[row], shown.shape.layout.grid) for row in rows}
        kept = [row for row in rows if truths[row]]
        numbers[f"n.{protocol}"] = torch.tensor(len(kept))
        numbers[f"without_object.{protocol}"] = torch.tensor(len(rows) - len(kept))
        if not kept:
            continue
        for source, (heads, merged) in _looking(shown, kept, protocol).items():
            for kind, values in (("heads", heads), ("merged", merged.unsqueeze(2))):
                scores = torch.zeros(values.shape[:3], dtype=torch.float64)
                for n, row in enumerate(kept):
                    for layer in range(values.shape[1]):
                        for head in range(values.shape[2]):
                            chosen = top_tokens(values[n, layer, head])
                            scores[n, layer, head] = len(chosen & truths[row]) / len(chosen | truths[row])
                numbers[f"{kind}.('{source}', '{protocol}')"] = scores if kind == "heads" else scores.squeeze(2)
                if protocol == "corrected":
                    inside = [[token in truths[row] for token in range(values.shape[-1])] for row in kept]
                    scores = torch.tensor(
                        [
                            [[average_precision_score(true, head) for head in layer] for layer in image]
                            for true, image in zip(inside, values.numpy(), strict=True)
                        ]
                    )
                    name = f"precision_{kind}.{source}"
                    numbers[name] = scores if kind == "heads" else scores.squeeze(2)
                    numbers["share"] = torch.tensor(inside).double().mean(-1)
                    numbers["discs"] = torch.tensor([_discs(truths[row], shown.shape.layout.grid) for row in kept])
    return numbers


def _discs(truth: set[int], grid: tuple[int, int]) -> list[float]:
    """IoU of all discs about the centre, from the smallest; distances in half cells, so that they are whole numbers."""
    h, w = grid
    distance = [(2 * (n // w) - h + 1) ** 2 + (2 * (n % w) - w + 1) ** 2 for n in range(h * w)]
    discs = [{n for n in range(h * w) if distance[n] <= radius} for radius in sorted(set(distance))]
    return [len(disc & truth) / len(disc | truth) for disc in discs]


def _looking(shown: Shown, rows: Sequence[int], protocol: str) -> dict[str, tuple[Tensor, Tensor]]:
    """Where each source looks: by head (n, L, H, N), and with heads merged (n, L, N)."""
    attention, patches, pure = split(shown, rows)
    (h, w), prefix = shown.shape.layout.grid, shown.shape.layout.prefix
    i, j = ((h + 1) // 2 - 1, (w + 1) // 2 - 1) if protocol == "paper" else (h // 2, w // 2)
    heads = {
        "spatial": patches.sum(-2) if protocol == "paper" else pure.mean(-2),
        "centre": patches[..., i * w + j, :],
    }
    if shown.shape.layout.has_cls:
        heads["cls"] = attention[..., 0, prefix:]
    heads["pool"] = pool_looks(shown, rows)
    merged = {source: values.sum(2) for source, values in heads.items()}
    if protocol == "paper":
        for source in heads.keys() - {"spatial"}:
            merged[source] = (heads[source] / heads[source].sum(-1, keepdim=True)).sum(2)
    return {source: (heads[source], merged[source]) for source in heads}


def _cells(coverage: Tensor, grid: tuple[int, int]) -> Tensor:
    """(h_px, w_px) -> (N,): mean over each cell."""
    return coverage.double().reshape(grid[0], CELL, grid[1], CELL).mean((1, 3)).flatten()


def _objects(annotations: BatchAnnotations, grid: tuple[int, int]) -> set[int]:
    """Cells that objects together cover by half; and of an object that covers none so much by itself its best one."""
    if not annotations.coverage.any():
        return set()
    found = set((_cells(annotations.coverage.amax(0), grid) >= 127.5).nonzero().flatten().tolist())
    for one in annotations.coverage:
        cells = _cells(one, grid)
        if 0 < cells.max() < 127.5:
            found |= set((cells == cells.max()).nonzero().flatten().tolist())
    return found


def _objects_paper(annotations: BatchAnnotations, grid: tuple[int, int]) -> set[int]:
    return {cell for one in annotations.published for cell in one.flatten().nonzero().flatten().tolist()}


def regions(shown: Shown, rows: Sequence[int], protocol: str) -> Numbers:
    layout = shown.shape.layout
    features, categories, images, outside = [], [], [], 0
    for row in rows:
        annotations = shown.annotations[row]
        coverage = [_cells(one, layout.grid) for one in annotations.coverage]
        published = [one.double().flatten() for one in annotations.published]
        masks = published if protocol == "paper" else coverage
        for category, weights in zip(annotations.categories.tolist(), masks, strict=True):
            if weights.sum() == 0:
                outside += 1
                continue
            tokens = shown.tokens[row, :, layout.prefix :].double()  # (L, N, D)
            features.append((tokens * weights.unsqueeze(-1)).sum(1) / weights.sum())
            categories.append(category)
            images.append(row)
    numbers = {"category": torch.tensor(categories), "image": torch.tensor(images), "outside": torch.tensor(outside)}
    return {"features": torch.stack(features), **numbers}


def pooled(
    shown: Shown, rows: Sequence[int], poolings: Sequence[str] = ("cls", "mean"), pixels: bool = False, **_: Any
) -> Numbers:
    tokens, layout = shown.tokens[list(rows)].double(), shown.shape.layout
    patches = tokens[:, :, layout.prefix :]
    every = {"cls": tokens[:, :, 0], "mean": patches.mean(2), "max": patches.amax(2), "tokens": tokens}
    found = {name: every[name] for name in poolings if name != "cls" or layout.has_cls}
    if "cls" in poolings:  # then what a pooling head makes of the image comes too
        found["pool"] = tokens[:, -1:].amax(2)
    if pixels:
        small = torch.stack([_reduced(shown.images[row].double() / 255, 16) for row in rows]).flatten(1)
        found["pixels"] = small - small.mean(1, keepdim=True)
    return found


def _reduced(image: Tensor, edge: int) -> Tensor:
    """Means over cells (3, edge, edge) that begin and end with whole pixels, outwards."""
    _, h, w = image.shape
    spans = [[(i * side // edge, -(-(i + 1) * side // edge)) for i in range(edge)] for side in (h, w)]
    cells = [[image[:, a:b, c:d].mean((1, 2)) for c, d in spans[1]] for a, b in spans[0]]
    return torch.stack([torch.stack(row, -1) for row in cells], -2)


def kinds_of(x: Tensor, shown: Shown) -> dict[str, Tensor]:
    """Features (n, ...) of each kind of tokens, flattened. x: (n, T, D)."""
    layout = shown.shape.layout
    kinds = {"cls": x[:, 0]} if layout.has_cls else {}
    return kinds | {"spatial": x[:, layout.prefix :].flatten(1), "all": x.flatten(1)}


def centred(features: Tensor, scaled: bool) -> Tensor:
    """U-centred Gram: off the diagonal, minus what rows and columns have in common."""
    gram = features @ features.T
    n = len(gram)
    hollow = gram.clone().fill_diagonal_(0)
    sums = hollow.sum(0)
    found = hollow - sums[:, None] / (n - 2) - sums[None, :] / (n - 2) + hollow.sum() / ((n - 1) * (n - 2))
    return found.fill_diagonal_(0) / (gram.max() - gram.min() if scaled else 1)


def blocks(rows: Sequence[int], size: int) -> list[list[int]]:
    return [
        b for start in range(0, max(rows) + 1, size) if len(b := [r for r in rows if start <= r < start + size]) > 3
    ]


def grams_of(sites: Tensor, shown: Shown, rows: Sequence[int], block: int, scaled: bool) -> Numbers:
    """sites: (n, sites, T, D)."""
    found: dict[str, list[Tensor]] = {}
    for members in blocks(rows, block):
        per_kind: dict[str, list[Tensor]] = {}
        at = [row % block for row in members]
        for site in sites[members].double().unbind(1):
            for kind, features in kinds_of(site, shown).items():
                full = torch.zeros(block, block, dtype=torch.float64)
                full[np.ix_(at, at)] = centred(features, scaled)
                above, beside = torch.triu_indices(block, block, 1)
                per_kind.setdefault(kind, []).append(full[above, beside])
        for kind, several in per_kind.items():
            found.setdefault(kind, []).append(torch.stack(several))
    return {f"packed.{kind}": torch.stack(several) for kind, several in found.items()}


def grams(shown: Shown, rows: Sequence[int], block: int, scaled: bool) -> Numbers:
    return grams_of(shown.tokens, shown, rows, block, scaled)


def norm_grams(shown: Shown, rows: Sequence[int], block: int, scaled: bool) -> Numbers:
    return grams_of(shown.norms.flatten(1, 2), shown, rows, block, scaled)


def residual(shown: Shown, rows: Sequence[int], block: int, scaled: bool) -> Numbers:
    numbers: Numbers = {}
    for number, part in enumerate(("attention", "mlp")):
        skip, branch = shown.skip[:, :, number].double(), shown.branch[:, :, number].double()
        ratios = []
        for layer in range(shown.shape.depth):
            a, b = (kinds_of(x[list(rows), layer], shown) for x in (skip, branch))
            ratios.append(torch.stack([a[kind].norm(dim=1) / b[kind].norm(dim=1) for kind in a], dim=-1))
        numbers[f"ratios.{part}"] = torch.stack(ratios, dim=1)
        numbers[f"cka.{part}"] = _cka(skip, branch, shown, rows, block, scaled)
    return numbers


def _cka(skip: Tensor, branch: Tensor, shown: Shown, rows: Sequence[int], block: int, scaled: bool) -> Tensor:
    """Minibatch CKA of every layer's skip with every layer's branch: (kinds, L, L)."""
    totals: dict[str, Tensor] = {}
    for members in blocks(rows, block):
        weight = 1 / (len(members) * (len(members) - 3)) if scaled else 1.0
        sides = []
        for x in (skip, branch):
            layers = [kinds_of(x[members, layer], shown) for layer in range(shown.shape.depth)]
            sides.append([{kind: centred(f, scaled) for kind, f in kinds.items()} for kinds in layers])
        for kind in sides[0][0]:
            a, b = (torch.stack([layer[kind].flatten() for layer in side]) for side in sides)
            inner = torch.stack([a @ b.T, torch.diag((a * a).sum(1)), torch.diag((b * b).sum(1))])
            totals[kind] = totals.get(kind, torch.zeros_like(inner)) + weight * inner
    found = []
    for cross, own, other in totals.values():
        found.append(cross / own.diagonal().sqrt()[:, None] / other.diagonal().sqrt()[None, :])
    return torch.stack(found)


def sinks(shown: Shown, rows: Sequence[int]) -> Numbers:
    attention, _, _ = split(shown, rows)
    prefix, received = shown.shape.layout.prefix, attention.mean(-2)
    middle = (received.shape[-1] - 1) // 2  # of an even number, the lower of the two
    numbers = {
        "ratio": received.max(-1).values / received.sort(-1).values[..., middle],
        "token": received.max(-1).indices,
        "received_entropy": torch.special.entr(received).sum(-1),
        "patch_self": torch.stack([attention[..., i, i] for i in range(prefix, attention.shape[-1])]).mean(0),
    }
    if shown.shape.layout.has_cls:
        cls = attention[..., 0, prefix:]
        numbers["cls_self"] = attention[..., 0, 0]
        numbers["cls_entropy"] = torch.special.entr(cls / cls.sum(-1, keepdim=True)).sum(-1)
    return numbers


def tokens(shown: Shown, rows: Sequence[int], block: int, **_: Any) -> Numbers:
    x, layout = shown.tokens[list(rows)].double(), shown.shape.layout
    patches = x[:, :, layout.prefix :]
    unit, mean = patches / patches.norm(dim=-1, keepdim=True), patches.mean(2)
    cosines = unit @ unit.mT  # (n, L, N, N)
    n = cosines.shape[-1]
    fourier = torch.fft.fft2(patches.unflatten(2, layout.grid), dim=(2, 3)).abs()
    fourier += 1e-3 * patches.square().sum(2).mean(-1).sqrt()[:, :, None, None, None]  # of white noise as strong
    high, low = fourier[:, :, layout.grid[0] // 2, layout.grid[1] // 2], fourier[:, :, 0, 0]
    shared, shared_mean = (torch.empty(x.shape[:2], dtype=torch.float64) for _ in range(2))
    for a, row in enumerate(rows):
        others = [b for b, other in enumerate(rows) if other // block == row // block and b != a]
        shared[a] = torch.stack([(patches[a] * patches[b]).sum(-1).mean(-1) for b in others]).mean(0)
        shared_mean[a] = torch.stack([(mean[a] * mean[b]).sum(-1) for b in others]).mean(0)
    numbers = {
        "norm": x.square().sum(-1).sqrt(),
        "patch_patch": (cosines.sum((-1, -2)) - n) / (n * (n - 1)),
        "high_over_low": (high.log() - low.log()).mean(-1),
        "power": patches.square().sum(-1).mean(-1),
        "mean_power": mean.square().sum(-1),
        "shared": shared,
        "shared_mean": shared_mean,
    }
    if layout.has_cls:
        cls = x[:, :, :1] / x[:, :, :1].norm(dim=-1, keepdim=True)
        numbers["cls_patch"] = (cls * unit).sum(-1).mean(-1)
    return numbers


def writes(shown: Shown, rows: Sequence[int]) -> Numbers:
    mixed, weight, layout = shown.mixed[list(rows)].double(), shown.weight.double(), shown.shape.layout
    heads = [mixed[..., 2 * h : 2 * h + 2] @ weight[..., 2 * h : 2 * h + 2].mT for h in range(shown.shape.heads)]
    norms = torch.stack([head.norm(dim=-1) for head in heads], -1)  # (n, L, T, H)
    shares = norms / norms.sum(-1, keepdim=True)
    numbers = {"patches": shares[:, :, range(layout.prefix, layout.tokens, 4)].mean(2)}
    return numbers | ({"cls": shares[:, :, 0]} if layout.has_cls else {})


def example_tokens(shown: Shown, rows: Sequence[int]) -> Numbers:
    first = [row for row in rows if row < 6]
    return {"0": shown.tokens[first][:, :, shown.shape.layout.prefix :].half(), "1": shown.images[first]}


def patch_sample(shown: Shown, rows: Sequence[int], images: int, each: int) -> Numbers:
    layout, kept = shown.shape.layout, []
    each = min(each, layout.spatial)
    for row in [row for row in rows if row < images]:
        places = [(row * 7919 % layout.spatial + j * layout.spatial // each) % layout.spatial for j in range(each)]
        kept += [shown.tokens[row, :, layout.prefix + place] for place in places]
    return {"": torch.stack(kept)}


def pixel_labels(annotations: BatchAnnotations, size: tuple[int, int], background: bool) -> list[list[int]]:
    """Class by class for every pixel: of the regions that hold it the smallest one's."""
    held = [(one >= 128).tolist() for one in annotations.coverage]
    areas = [sum(map(sum, one)) for one in held]
    found: list[list[int]] = []
    for i in range(size[0]):
        found.append([])
        for j in range(size[1]):
            over = [(areas[n], -n) for n in range(len(held)) if held[n][i][j]]
            category = int(annotations.categories[-min(over)[1]]) if over else -1
            found[-1].append(category + 1 if background else category)
    return found


def labelled_patches(
    shown: Shown, rows: Sequence[int], images: int, each: int | None, classes: int, background: bool
) -> Numbers:
    (h, w), prefix = shown.shape.layout.grid, shown.shape.layout.prefix
    image, labels, counts, tokens = [], [], [], []
    for row in [row for row in rows if row < images]:
        pixels = pixel_labels(shown.annotations[row], (h * CELL, w * CELL), background)
        cells = []
        for i, j in places(shown):
            inside = [pixels[i * CELL + a][j * CELL + b] for a in range(CELL) for b in range(CELL)]
            cells.append([inside.count(name) for name in range(classes)])
        own = [cell.index(max(cell)) if sum(cell) else -1 for cell in cells]
        assert each is None or each >= len(cells)  # all that are not void are kept
        kept = [p for p in range(len(cells)) if each is None or own[p] >= 0]
        image += [row] * len(kept)
        labels += [own[p] for p in kept]
        counts += [cells[p] for p in kept]
        tokens += [shown.tokens[row, :, prefix + p].half() for p in kept]
    numbers = {"image": torch.tensor(image), "classes": torch.tensor(labels), "counts": torch.tensor(counts)}
    return {**numbers, "layers": torch.stack(tokens, 1)}


def discovery(shown: Shown, rows: Sequence[int], tau: float, whole: bool) -> Numbers:
    """By the generalised eigenproblem itself, a flood fill, and sets of pixels."""
    layout = shown.shape.layout
    found = torch.full((2, len(rows), shown.shape.depth), torch.nan, dtype=torch.float64)
    everything = torch.full((len(rows),), torch.nan, dtype=torch.float64)
    pixels = CELL * layout.grid[0] * CELL * layout.grid[1]
    for n, row in enumerate(rows):
        objects = [{tuple(p) for p in (one >= 128).nonzero().tolist()} for one in shown.annotations[row].coverage]
        objects = [one for one in ([set().union(*objects)] if whole else objects) if one]
        if objects:  # the box of the whole image against each box inside it
            everything[n] = float(max(len(_box(one)) for one in objects) / pixels >= 0.5)
        for layer in range(shown.shape.depth if objects else 0):
            x = shown.tokens[row, layer, layout.prefix :].double().numpy()
            x = x / np.linalg.norm(x, axis=1, keepdims=True)
            weights = np.where(x @ x.T > tau, 1.0, 1e-5)
            degree = np.diag(weights.sum(1))
            vector = scipy.linalg.eigh(degree - weights, degree)[1][:, 1]
            vector = vector / np.abs(vector).max()
            seed = next(p for p in range(len(vector)) if abs(vector[p]) >= 1 - 1e-6)  # the first of equals
            vector = vector / vector[seed]
            side = {seed} | {p for p in range(len(vector)) if vector[p] > vector.mean() + 1e-6}
            grown, edge = {seed}, [seed]
            while edge:
                i, j = divmod(edge.pop(), layout.grid[1])
                for a, b in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
                    p = a * layout.grid[1] + b
                    if 0 <= a < layout.grid[0] and 0 <= b < layout.grid[1] and p in side - grown:
                        grown.add(p)
                        edge.append(p)
            corners = [divmod(p, layout.grid[1]) for p in grown]
            mask = {(CELL * i + a, CELL * j + b) for i, j in corners for a in range(CELL) for b in range(CELL)}
            overlaps = [len(_box(mask) & _box(one)) / len(_box(mask) | _box(one)) for one in objects]
            found[0, n, layer] = float(max(overlaps) >= 0.5)
            found[1, n, layer] = max(len(mask & one) / len(mask | one) for one in objects)
    return {"corloc": found[0], "mask_iou": found[1], "whole": everything}


def _box(pixels: set[tuple[int, ...]]) -> set[tuple[int, int]]:
    """All pixels of the smallest box around some."""
    rows, columns = zip(*pixels, strict=True)
    return {(i, j) for i in range(min(rows), max(rows) + 1) for j in range(min(columns), max(columns) + 1)}


def attention(shown: Shown, rows: Sequence[int]) -> Numbers:
    parts = (maps, aligned, distance, dispersion, patterns, rollout, sinks, examples)
    return {f"{p.__name__}.{key}".rstrip("."): value for p in parts for key, value in p(shown, rows).items()}


REFERENCES: dict[str, Callable[..., Numbers]] = {
    reference.__name__: reference
    for reference in (
        *(maps, distance, dispersion, patterns, aligned, rollout, examples, saliency, attention),
        *(
            pool,
            writes,
            labelled_patches,
            discovery,
            example_tokens,
            sinks,
            tokens,
            patch_sample,
            regions,
            pooled,
            grams,
            norm_grams,
            residual,
        ),
    )
}
