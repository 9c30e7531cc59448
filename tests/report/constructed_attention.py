"""Attention results of a model that was never run: planted kinds of heads, and maps and numbers that fit them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tests.report.constructed_scores import PICTURES, curve
from vitscope.attention.kinds import KINDS, LATE_KINDS
from vitscope.core.results import Label, Results, tidy
from vitscope.core.teachings import teaching

LOCAL_UNTIL = {"fs": 0.45, "clip": 0.5, "dino": 0.4, "moco": 0.35, "mae": 0.6, "beit": 0.75}  # of the depth
REACH = {
    "cls-bound": 0.3, "offset local": 0.16, "strict local": 0.07, "axial local": 0.3, "soft local": 0.2, "global": 0.52,
}  # fmt: skip
EXAMPLES = 3  # single pictures whose maps are kept
OFFSET_HEAD = (1, 0)  # layer and head, 0-based, that looks to the left in every model
LOOKS = {"explicit": "sparse-repeating", "contrastive": "object-centred"}


@dataclass(frozen=True)
class Shape:
    depth: int
    heads: int
    grid: tuple[int, int]


def planted_kind(key: str, layer: int, head: int, depth: int) -> str:
    """Local heads early; where they end differs by teaching."""
    if (layer, head) == OFFSET_HEAD:
        return "offset local"
    if layer / depth < LOCAL_UNTIL.get(key, 0.0):
        return ("strict local", "soft local", "axial local", "global")[(layer + head) % 4]
    return "cls-bound" if key in ("fs", "clip") and (layer + head) % 3 == 0 else "global"


def aligned_map(kind: str, grid: tuple[int, int], noise: Tensor) -> Tensor:
    """An aligned map (2h-1, 2w-1) of that kind, with a little noise."""
    h, w = grid
    i = torch.arange(-(h - 1), h).double()[:, None]
    j = torch.arange(-(w - 1), w).double()[None, :]
    shapes = {
        "cls-bound": torch.exp(-(i**2 + j**2) / 8) * 0.02,
        "offset local": torch.exp(-(i**2 + (j + 1) ** 2) / 0.5) * 0.5,
        "strict local": torch.exp(-(i**2 + j**2) / 0.4) * 0.7,
        "axial local": torch.exp(-(i**2) / 0.4 - j.abs() / 4) * 0.18,
        "soft local": torch.exp(-(i**2 + j**2) / 3) * 0.1,
        "global": 0.8 / (h * w) * torch.exp(-(i**2 + j**2) / (4 * h * w)),
    }
    return shapes[kind] + 0.3 / (h * w) * noise


def cls_maps(key: str, shape: Shape, noise: Tensor) -> Tensor:
    """(L, H, h, w): even at first, and at the end what the kind of teaching is known for."""
    h, w = shape.grid
    rows, columns = torch.arange(h).double() - (h - 1) / 2, torch.arange(w).double() - (w - 1) / 2
    blob = torch.exp(-(rows[:, None] ** 2 + columns[None, :] ** 2) / (0.08 * h * w))
    spots = (noise[0, 0] > 0.93).double() + 0.02
    late = {"explicit": spots, "contrastive": blob}.get(teaching(key).kind, noise**6)
    weight = torch.linspace(0, 1, shape.depth).double()[:, None, None, None]
    maps = (1 - weight) * (0.6 + 0.4 * noise) + weight * late * (0.7 + 0.3 * noise)
    return maps / maps.sum((-1, -2), keepdim=True)


def add_attention(results: Results, label: Label, shape: Shape) -> None:
    depth, heads, (h, w) = shape.depth, shape.heads, shape.grid
    key = label.teaching
    generator = torch.Generator().manual_seed(sum(map(ord, key)))

    def random(*size: int) -> Tensor:
        return torch.rand(*size, generator=generator, dtype=torch.float64)

    names = [[planted_kind(key, layer, head, depth) for head in range(heads)] for layer in range(depth)]
    kind = torch.tensor([[KINDS.index(name) for name in row] for row in names])
    offset = torch.zeros(depth, heads, 2, dtype=torch.long)
    offset[OFFSET_HEAD] = torch.tensor([0, -1])
    noise = random(depth, heads, 2 * h - 1, 2 * w - 1)
    aligned = torch.stack(
        [
            torch.stack([aligned_map(name, shape.grid, noise[i, j]) for j, name in enumerate(row)])
            for i, row in enumerate(names)
        ]
    )
    late = torch.full((depth, heads), -1)
    late[depth - -(-depth // 4) :] = LATE_KINDS.index(LOOKS.get(teaching(key).kind, "diverse"))
    stability = 0.8 + 0.2 * random(depth, heads)
    cls, pure = cls_maps(key, shape, random(depth, heads, h, w)), random(depth, heads, h, w)
    maps = {
        "aligned.corrected": aligned, "cls": cls, "pure": pure / pure.sum((-1, -2), keepdim=True),
        "rollout": cls.mean(1), "kind": kind, "kind.late": late, "kind.offset": offset, "kind.stability": stability,
        "kind.axis": torch.zeros_like(kind), "examples": cls.expand(EXAMPLES, *cls.shape),
        "examples.images": torch.arange(EXAMPLES).mul(80).byte()[:, None, None, None].expand(-1, 3, 64, 64),
    }  # fmt: skip
    results.maps |= {f"{label.model}/{n}": m.float() if m.is_floating_point() else m for n, m in maps.items()}

    def put(measure: str, value: Tensor, spread: float, variant: str = "", protocol: str = "corrected") -> None:
        options: dict[str, Any] = {"axes": ("layer", "head")[: value.ndim], "n": PICTURES, "variant": variant}
        low, high = value - spread, value + spread
        results.extend([tidy(label, measure, value, low=low, high=high, protocol=protocol, **options)])

    distance = torch.tensor([[REACH[name] for name in row] for row in names]).double() + 0.04 * random(depth, heads)
    ramp = torch.linspace(0, 1, depth).double()[:, None].expand(depth, heads)
    saliency = 0.2 + 0.3 * curve(1.0, 0.6 if key in ("fs", "clip") else 0.95, depth)[:, None] * random(depth, heads)
    put("attention_distance", distance, 0.01, "grid")
    put("attention_distance", distance * (h - 1) / h, 0.01, "patch_free")
    put("attention_distance", distance * 8 * h, 0.6, "pixels")
    put("prefix_mass", (0.1 + 0.5 * (kind == KINDS.index("cls-bound"))) + 0.05 * random(depth, heads), 0.02)
    put("entropy", 1 + 5 * distance, 0.05)
    put("head_deviation", distance.std(1) / 10, 0.001)
    put("gini", 0.2 + 0.6 * ramp, 0.02, "cls")
    put("centre_lift", 0.9 + 0.5 * ramp, 0.02, "cls")
    put("self_attention", aligned[:, :, h - 1, w - 1], 0.01)
    put("saliency_iou", saliency, 0.02, "cls")
    for protocol, lift in (("corrected", 1.0), ("paper", 1.15)):
        put("saliency_best_head", lift * saliency.max(1).values, 0.02, "cls", protocol)
        put("saliency_best_head", lift * 0.9 * saliency.max(1).values, 0.02, "spatial", protocol)
        put("saliency_merged", lift * 0.8 * saliency.mean(1), 0.02, "cls", protocol)
