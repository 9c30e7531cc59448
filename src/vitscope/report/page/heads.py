"""Every head of every model for the atlas: its maps, its kind, its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from torch import Tensor

from vitscope.attention.kinds import KINDS, LATE_KINDS, THRESHOLDS
from vitscope.core.results import Results
from vitscope.report.page.maps import aligned_reach, crop, encode, pooled, pooling_factor
from vitscope.report.page.models import PageModel
from vitscope.report.page.pictures import data_uri
from vitscope.report.page.words import rounded

PLAIN_MAPS = ("cls", "pure", "rollout")  # shown at their place in the image
NUMBERS = (  # measure, variant (None: the one there is), and what it is
    ("attention_distance", "grid", "distance, edge = 1"),
    ("entropy", "", "entropy, nats"),
    ("prefix_mass", "", "attention on CLS"),
    ("self_attention", "", "attention on itself"),
    ("gini", None, "sparsity, Gini"),
    ("saliency_iou", "cls", "object IoU, from CLS"),
    ("saliency_iou", "spatial", "object IoU, from spatial"),
    ("head_write", None, "share of what heads write"),
    ("head_importance", None, "importance, 1 - cosine"),
    ("head_importance_knn", None, "k-NN lost without it"),
)
KIND_WORDS = {
    "cls-bound": f"gives at least {THRESHOLDS.prefix_mass:.0%} of its attention to CLS and other prefix tokens",
    "offset local": "looks at one fixed neighbour, not at the token itself",
    "strict local": "looks at the token itself",
    "axial local": "looks along the token's own row or column",
    "soft local": "looks at the neighbourhood of the token",
    "global": "looks across the whole image",
}
LATE_WORDS = {
    "sparse-repeating": "the same few tokens as other late heads",
    "object-centred": "one blob around the middle",
    "diverse": "neither sparse and repeating nor one central blob",
}


def kinds() -> dict[str, Any]:
    """The taxonomy in words; a kind's colour is that of the CSS class k-INDEX."""
    return {
        "kinds": [{"name": name, "words": KIND_WORDS[name]} for name in KINDS],
        "late": [{"name": name, "words": LATE_WORDS[name]} for name in LATE_KINDS],
    }


def head_data(results: Results, models: Sequence[PageModel]) -> tuple[list[dict[str, Any] | None], list[str]]:
    """One entry per model; None for a model without attention results. And the pictures that they show, each once."""
    shown = [model for model in models if _shown(results, model)]
    reach = aligned_reach([tuple(_map(results, model, "aligned.corrected").shape) for model in shown])
    factors = {
        name: pooling_factor([_map(results, m, name).numel() for m in shown if f"{m.title}/{name}" in results.maps])
        for name in PLAIN_MAPS
    }
    factors["examples"] = pooling_factor(
        [_map(results, m, "examples").numel() for m in shown if f"{m.title}/examples" in results.maps]
    )
    pictures: list[str] = []
    found = [_one(results, model, reach, factors, pictures) if model in shown else None for model in models]
    return found, pictures


def _shown(results: Results, model: PageModel) -> bool:
    return all(f"{model.title}/{name}" in results.maps for name in ("aligned.corrected", "kind"))


def _map(results: Results, model: PageModel, name: str) -> Tensor:
    return results.maps[f"{model.title}/{name}"]


def _one(
    results: Results, model: PageModel, reach: float, factors: dict[str, int], pictures: list[str]
) -> dict[str, Any]:
    maps = {name: results.maps.get(f"{model.title}/{name}") for name in (*PLAIN_MAPS, "kind.late", "kind.offset")}
    kind = _map(results, model, "kind")  # (L, H)
    axis, stability = (results.maps.get(f"{model.title}/{name}") for name in ("kind.axis", "kind.stability"))
    rows = results.table.filter((pl.col("model") == model.title) & pl.col("head").is_not_null())
    return {
        "layers": kind.shape[0],
        "heads": kind.shape[1],
        "kind": kind.flatten().tolist(),
        "late": None if maps["kind.late"] is None else maps["kind.late"].flatten().tolist(),
        "offset": None if maps["kind.offset"] is None else maps["kind.offset"].long().flatten(0, 1).tolist(),
        "axis": None if axis is None else axis.flatten().tolist(),
        "stability": None if stability is None else [rounded(v, 3) for v in stability.flatten().tolist()],
        "aligned": encode(crop(_map(results, model, "aligned.corrected"), reach)),
        "examples": _examples(results, model, factors["examples"], pictures),
        "maps": {name: encode(pooled(_by_picture(found), factors[name])) for name, found in _plain(maps)},
        "numbers": [found for wanted in NUMBERS if (found := _numbers(rows, *wanted, *kind.shape))],
    }


def _examples(results: Results, model: PageModel, factor: int, pictures: list[str]) -> dict[str, Any] | None:
    """Single images, as places in `pictures`, and their maps, image by image, layer by layer, head by head."""
    maps, images = (results.maps.get(f"{model.title}/{name}") for name in ("examples", "examples.images"))
    if maps is None or images is None:
        return None
    shown = [data_uri(image) for image in images]
    pictures += [one for one in shown if one not in pictures]
    return {
        "pictures": [pictures.index(one) for one in shown],
        "maps": encode(pooled(maps.flatten(0, 1), factor)),  # (n * L, H, h, w)
    }


def _plain(maps: dict[str, Tensor | None]) -> list[tuple[str, Tensor]]:
    return [(name, found) for name in PLAIN_MAPS if (found := maps[name]) is not None]


def _by_picture(maps: Tensor) -> Tensor:
    """(L, H, h, w) as it is; rollout, (L, h, w), with one head for all."""
    return maps if maps.ndim == 4 else maps.unsqueeze(1)


def _numbers(
    rows: pl.DataFrame, measure: str, variant: str | None, title: str, layers: int, heads: int
) -> dict[str, Any] | None:
    """Value and interval of every head, (L * H) each, in the protocol `corrected`."""
    mine = rows.filter((pl.col("measure") == measure) & (pl.col("protocol") == "corrected"))
    if variant is not None:
        mine = mine.filter(pl.col("variant") == variant)
    if mine.is_empty():
        return None
    first = mine.row(0, named=True)  # of several datasets, the first
    mine = mine.filter((pl.col("dataset") == first["dataset"]) & (pl.col("variant") == first["variant"]))
    columns: dict[str, list[float | None]] = {name: [None] * (layers * heads) for name in ("value", "low", "high")}
    for layer, head, *numbers in mine.select("layer", "head", "value", "ci_low", "ci_high").rows():
        for name, number in zip(columns, numbers, strict=True):
            columns[name][(layer - 1) * heads + head - 1] = rounded(number, 4)
    return {"title": title, "dataset": first["dataset"], **columns}
