"""Shared by all tests: no hub, few threads, small pictures, and one check for every statistic."""

from __future__ import annotations

import os

os.environ["HF_HUB_OFFLINE"] = "1"  # no test may reach a hub
os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import vitscope  # noqa: F401  (makes timm importable)
from vitscope.data.batches import Batch
from vitscope.statistic import Statistic

torch.set_num_threads(1)  # tests run in several processes: threads on top of that only get in each other's way


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder of twelve small colourful pictures in two class folders."""
    return make_photos(tmp_path / "photos", count=12)


def make_photos(folder: Path, *, count: int, size: tuple[int, int] = (60, 48), classes: int = 2) -> Path:
    """Smooth random pictures (width, height), dealt into class folders."""
    generator = np.random.default_rng(0)
    for i in range(count):
        where = folder / f"class{i % classes}"
        where.mkdir(parents=True, exist_ok=True)
        coarse = generator.integers(0, 256, (6, 6, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC).save(where / f"{i:03}.png")
    return folder


def make_batch(indices: Sequence[int], size: int = 8) -> Batch:
    """A batch that names its pictures; for statistics that look at attention only."""
    images = torch.zeros(len(indices), 3, size, size, dtype=torch.uint8)
    return Batch(images, torch.tensor(list(indices)), [str(i) for i in indices], None, None)


def random_attention(n: int, layers: int, heads: int, tokens: int, seed: int = 0) -> Tensor:
    """(n, L, H, T, T), rows sum to 1, peaked and different for every picture; float32."""
    generator = torch.Generator().manual_seed(seed)
    return (2 * torch.randn(n, layers, heads, tokens, tokens, generator=generator)).softmax(-1)


def stream(statistic: Statistic, attention: Tensor, indices: Sequence[int], batch: Callable[..., Batch]) -> None:
    """Show a statistic one batch, layer by layer. attention: (n, L, H, T, T) of all pictures."""
    statistic.begin(batch(indices))
    for layer in range(attention.shape[1]):
        statistic.attention(layer, attention[list(indices), layer])
    statistic.end()


def check_merging(
    make: Callable[[], Statistic], attention: Tensor, flatten: Callable[[object], dict[str, Tensor]], batch=make_batch
) -> None:
    """What must hold for every statistic: however pictures are batched, sharded and merged, the result is the same;
    a state survives being written and read; a picture counted twice is an error; nothing seen is written into."""
    n = len(attention)
    before = attention.clone()
    whole = make()
    stream(whole, attention, range(n), batch)
    expected = flatten(whole.result())
    cuts = [0, 1, n // 2, n]
    parts = []
    for start, stop in pairwise(cuts):
        part = make()
        for i in range(start, stop, 2):
            stream(part, attention, range(i, min(i + 2, stop)), batch)
        again = make()
        again.load_state(part.state())
        parts.append(again)
    for order in ([0, 1, 2], [2, 0, 1]):
        merged = make()
        for i in order:
            merged.merge(parts[i])
        found = flatten(merged.result())
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            torch.testing.assert_close(
                found[name], value, rtol=1e-6, atol=1e-9, equal_nan=True, msg=lambda m, k=name: f"{k}: {m}"
            )
    with pytest.raises(ValueError, match="both states"):
        whole.merge(parts[0])
    assert torch.equal(attention, before)
