"""Shared by all tests: no hub, few threads, small images."""

from __future__ import annotations

import os
import signal

os.environ["HF_HUB_OFFLINE"] = "1"  # no test may reach a hub
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # or Ray would leave the loopback address; before it is imported
os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import vitscope._torchvision  # noqa: F401  (makes timm importable)
from tests.browser import MISSING
from tests.hostile.campaign import COUNTS, summary
from vitscope.core.statistic import Statistic
from vitscope.data.batches import Batch

torch.set_num_threads(1)  # tests run in several processes: threads on top of that only get in each other's way
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it, and so would ours


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Page tests that no browser could run must not be overlooked in a green run; and what hostile files came to."""
    skipped = [report for report in terminalreporter.getreports("skipped") if MISSING in str(report.longrepr)]
    if skipped:
        terminalreporter.section("THE PAGE WAS NOT TESTED", sep="!", red=True, bold=True)
        terminalreporter.line(f"{len(skipped)} tests were skipped: {MISSING}", red=True, bold=True)
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    counts = [found for report in reports for name, found in report.user_properties if name == COUNTS]
    if counts:
        terminalreporter.section("hostile files")
        for line in summary(counts):
            terminalreporter.line(line)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder of twelve small colourful images in two class folders."""
    return make_photos(tmp_path / "photos", count=12)


def make_photos(folder: Path, *, count: int, size: tuple[int, int] = (60, 48), classes: int = 2) -> Path:
    """Smooth random images (width, height), dealt into class folders."""
    generator = np.random.default_rng(0)
    for i in range(count):
        where = folder / f"class{i % classes}"
        where.mkdir(parents=True, exist_ok=True)
        coarse = generator.integers(0, 256, (6, 6, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC).save(where / f"{i:03}.png")
    return folder


def make_batch(indices: Sequence[int], size: int = 8) -> Batch:
    """A batch that names its images; for statistics that look at attention only."""
    images = torch.zeros(len(indices), 3, size, size, dtype=torch.uint8)
    return Batch(images, torch.tensor(list(indices)), [str(i) for i in indices], None, None)


def random_attention(n: int, layers: int, heads: int, tokens: int, seed: int = 0) -> Tensor:
    """(n, L, H, T, T), rows sum to 1, peaked and different for every image; float32."""
    generator = torch.Generator().manual_seed(seed)
    return (2 * torch.randn(n, layers, heads, tokens, tokens, generator=generator)).softmax(-1)


def stream(statistic: Statistic, attention: Tensor, indices: Sequence[int], batch: Callable[..., Batch]) -> None:
    """Show a statistic one batch, layer by layer. attention: (n, L, H, T, T) of all images."""
    statistic.begin(batch(indices))
    for layer in range(attention.shape[1]):
        statistic.attention(layer, attention[list(indices), layer])
    statistic.end()
