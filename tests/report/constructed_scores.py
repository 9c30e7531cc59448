"""Task and feature results of a model that was never run: curves with a planted height and best layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import torch
from torch import Tensor

from vitscope.core.results import Label, Results, tidy
from vitscope.core.teachings import teaching
from vitscope.pipeline.best_layers import tasks

PICTURES = 640

# Height of each teaching's curve, and its best layer as a share of the depth.
GLOBAL_TASK = {
    "fs": (0.84, 1.0), "clip": (0.76, 1.0), "dino": (0.75, 1.0), "moco": (0.7, 1.0), "mae": (0.45, 0.95),
    "beit": (0.31, 0.66), "none": (0.08, 0.3), "other": (0.5, 0.8),
}  # fmt: skip
LOCAL_TASK = {
    "fs": (0.27, 0.75), "clip": (0.29, 0.66), "dino": (0.31, 0.75), "moco": (0.305, 0.83), "mae": (0.26, 0.9),
    "beit": (0.25, 0.66), "none": (0.03, 0.3), "other": (0.2, 0.8),
}  # fmt: skip
TASKS = {  # measure, variant, dataset -> whose curve, scaled by
    ("knn_top1", "cls k=20", "menagerie"): (GLOBAL_TASK, 1.0),
    ("probe_top1", "cls", "menagerie"): (GLOBAL_TASK, 1.06),
    ("retrieval_map", "cls medium", "herd"): (GLOBAL_TASK, 0.54),
    ("video_j&f", "", "films"): (LOCAL_TASK, 2.0),
    ("pck@0.1", "", "pairs"): (LOCAL_TASK, 1.0),
}


def curve(height: float, peak: float, depth: int) -> Tensor:
    """A score over depth: `height` at the layer nearest to peak * depth, rising before it, falling after it."""
    best = max(1, round(peak * depth))
    layer = torch.arange(1, depth + 1, dtype=torch.float64)
    rising = 0.25 + 0.75 * (layer / best).clamp(max=1) ** 1.6
    return height * rising * (1 - 0.35 * (layer - best).clamp(min=0) / max(depth - best, 1))


def add_tasks(results: Results, label: Label, depth: int) -> None:
    for (measure, variant, dataset), (heights, scale) in TASKS.items():
        value = scale * curve(*heights[teaching(label.teaching).key], depth)
        here = Label(label.model, label.teaching, dataset, label.provenance)
        options: dict[str, Any] = {"axes": ("layer",), "n": 500, "variant": variant}
        results.extend([tidy(here, measure, value, low=value - 0.012, high=value + 0.012, **options)])
        results.maps |= {f"{label.model}/{name}@{dataset}": found for name, found in units(measure, value).items()}
        if measure == "retrieval_map":
            options["protocol"] = "paper"
            results.extend([tidy(here, measure, 0.9 * value, low=0.88 * value, high=0.92 * value, **options)])


def units(measure: str, value: Tensor) -> dict[str, Tensor]:
    """500 units whose mean is `value` (L,): some are harder than others for everybody; what is own is a tenth of it."""
    task = next(task.key for task in tasks() if task.measure == measure)
    hard = torch.randn(500, 1, generator=torch.Generator().manual_seed(0)).double()
    own = torch.randn(500, len(value), generator=torch.Generator().manual_seed(int(1e6 * value.sum()))).double()
    scores = value + 0.3 * (hard - hard.mean()) + 0.03 * (own - own.mean(0))
    return {
        f"units.{task}": scores,
        f"units.{task}.floor": torch.full((500,), 0.01),
        f"units.{task}.ids": torch.arange(500),
    }


def likeness(a: str, b: str) -> float:
    """Similarity of last layers: high within a kind of teaching."""
    kinds = [teaching(a).kind, teaching(b).kind]
    if "none" in kinds:
        return 0.08
    return 0.72 if kinds[0] == kinds[1] else 0.22 if "reconstruction" in kinds else 0.41


def add_features(results: Results, label: Label, depth: int, models: Mapping[str, str]) -> None:
    height, peak = GLOBAL_TASK[teaching(label.teaching).key]
    generator = torch.Generator().manual_seed(len(label.model))

    def put(measure: str, value: Tensor, spread: float, variant: str) -> None:
        options: dict[str, Any] = {"axes": ("layer",), "n": PICTURES, "variant": variant}
        results.extend([tidy(label, measure, value, low=value - spread, high=value + spread, **options)])

    for variant, scale in (("cls", 0.9), ("spatial", 0.8), ("regions", 0.6)):
        put("purity", scale * curve(height, peak, depth), 0.02, variant)
        put("purity_chance", torch.full((depth,), 0.11, dtype=torch.float64), 0.0, variant)
        put("nmi", 0.8 * scale * curve(height, peak, depth), 0.02, variant)
    depths = torch.linspace(0, 1, depth, dtype=torch.float64)
    for part, scale in (("attention", 4.0), ("mlp", 1.8)):
        put("skip_over_branch", scale * (0.6 + (depths - peak / 2).abs() * 3), 0.05, f"{part}/spatial")
    put("effective_rank", 20 + 60 * curve(1.0, peak, depth), 1.0, "cls")

    later = list(models)[list(models).index(label.model) + 1 :]
    for other in later:
        for tokens, scale in (("cls", 1.0), ("spatial", 0.8)):
            value = torch.tensor([scale * likeness(label.teaching, models[other])]).double()
            options: dict[str, Any] = {"axes": ("layer",), "n": PICTURES, "variant": tokens}
            rows = [
                tidy(label, "cka", value, low=value - 0.03, high=value + 0.03, **options),
                tidy(label, "cka_null", 0 * value + 0.01, **options),
            ]
            last = pl.lit(depth, dtype=pl.Int32)
            results.extend([row.with_columns(layer=last, other_model=pl.lit(other), other_layer=last) for row in rows])
            pair = value * torch.rand(2 * depth, 2 * depth, generator=generator, dtype=torch.float64)
            results.maps[f"{label.model}/cka.depth.{tokens}.{other}"] = pair
    sites = torch.linspace(0, 1, 2 * depth, dtype=torch.float64)
    near = 1 - (sites[:, None] - sites[None, :]).abs()
    mirrored = 1 - (1 - sites[:, None] - sites[None, :]).abs()
    whole = torch.maximum(near, 0.9 * mirrored) if teaching(label.teaching).kind == "reconstruction" else near
    for tokens in ("cls", "spatial"):
        results.maps[f"{label.model}/cka.depth.{tokens}"] = whole**2

    labels = torch.arange(240) % 8
    angles = labels * (2 * torch.pi / 8)
    centres = height * 4 * torch.stack([angles.cos(), angles.sin()], 1)
    for name in ("tsne", "pca"):
        results.maps[f"{label.model}/projection.{name}"] = centres + torch.randn(240, 2, generator=generator)
    results.maps[f"{label.model}/projection.labels"] = labels
