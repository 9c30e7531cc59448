"""The page frozen with its data: a few images as a few models see them, offline, small enough to send to somebody."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from vitscope.core.errors import VitscopeError
from vitscope.core.files import make_folder, write_text
from vitscope.data.decode import decode_image
from vitscope.data.preprocessing import Preprocessing
from vitscope.models.kept import Kept, trace_image
from vitscope.models.spec import Spec
from vitscope.report.explorer.arrays import packed
from vitscope.report.explorer.networks import as_uri, zipped
from vitscope.report.explorer.page import file_page, model_data
from vitscope.report.explorer.session import SHOWN

MOST_MODELS, MOST_IMAGES = 4, 12
BUDGET = 14_000_000  # bytes of a page, however many images it holds
RANK = 48  # directions of the tokens that are kept: cosines stay within a hundredth
STRIDES = (1, 2, 3, 4, 6, 8)  # heads are kept for every so many-th row and column of patches that look


def export_frozen(specs: Sequence[Spec], images: Sequence[Path], path: Path, device: str = "auto") -> Path:
    """Write one HTML file that holds all that it shows, in 8 bits: every layer, every head, every patch that looks.

    If that is too much, heads are kept for every second (third ...) patch that looks; their mean always for all.
    """
    if len(images) > MOST_IMAGES:
        raise VitscopeError(f"a page holds {MOST_IMAGES} images at most, and these are {len(images)}")
    specs = specs[:MOST_MODELS]
    decoded = [decode_image(image) for image in images]
    blocks: dict[str, str] = {}
    budget = BUDGET // (len(specs) * len(images))
    for i, spec in enumerate(specs):
        backbone = spec.load(device)
        kept = [trace_image(backbone, image) for image in decoded]
        tokens = reduced_tokens(kept)
        for j, one in enumerate(kept):
            for stride in STRIDES:
                blocks[f"trace-{i}-f{j}"] = zipped(packed(frozen_trace(one, tokens[j], stride)))
                if len(blocks[f"trace-{i}-f{j}"]) <= budget:
                    break
    shown = [Preprocessing((SHOWN, SHOWN)).geometry(image) for image in decoded]
    boot = {
        "source": "frozen",
        "models": model_data(specs),
        "given": len(specs),
        "gallery": [
            {"name": f"f{j}", "title": image.name, "picture": as_uri(picture)}
            for j, (image, picture) in enumerate(zip(images, shown, strict=True))
        ],
    }
    make_folder(path.parent)
    write_text(path, file_page(boot, blocks))
    return path


def frozen_trace(kept: Kept, tokens: Tensor, stride: int) -> dict[str, Tensor]:
    """One image in 8 bits. tokens: (L, T, R), reduced."""
    sources = kept_sources(kept.layout.grid, kept.layout.prefix, stride)
    heads, head_tops = roots(kept.attention[:, :, sources.long()])  # (L, H, S, T)
    means, mean_tops = roots(kept.attention.mean(1))  # (L, T, T)
    scales = (tokens.abs().amax(-1) / 127).clamp_min(1e-12)  # (L, T)
    return {
        "heads": heads,
        "headTops": head_tops.half(),
        "means": means,
        "meanTops": mean_tops.half(),
        "sources": sources,
        "tokens": (tokens / scales[..., None]).round().to(torch.int8),
        "scales": scales,
        "norms": kept.tokens[:, kept.layout.prefix :].norm(dim=-1),
    }


def kept_sources(grid: tuple[int, int], prefix: int, stride: int) -> Tensor:
    """Tokens whose heads are kept: all prefix tokens, and patches in the middle of squares of `stride`, int32."""
    rows, columns = (torch.arange(min(stride // 2, edge - 1), edge, stride) for edge in grid)
    patches = (rows[:, None] * grid[1] + columns[None, :]).flatten() + prefix
    return torch.cat([torch.arange(prefix), patches]).int()


def roots(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Rows (..., T) as bytes on a square-root scale, and the largest value of each."""
    tops = rows.amax(-1)
    return (255 * (rows / tops[..., None].clamp_min(1e-30)).sqrt()).round().to(torch.uint8), tops


def reduced_tokens(kept: Sequence[Kept]) -> list[Tensor]:
    """Tokens of several images, (L, T, R) each, in the directions that all together need most, layer by layer.

    Not centred: lengths and angles are kept as well as R directions can. They keep their own lengths elsewhere.
    """
    layers = []
    for layer in range(len(kept[0].tokens)):
        every = torch.cat([torch.nn.functional.normalize(one.tokens[layer], dim=-1) for one in kept])  # (n T, D)
        _, _, directions = torch.linalg.svd(every, full_matrices=False)
        layers.append(every @ directions[:RANK].T)  # (n T, R)
    whole = torch.stack(layers)  # (L, n T, R)
    return list(whole.split(kept[0].layout.tokens, dim=1))
