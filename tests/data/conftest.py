"""Small pictures and annotation files that the data tests make for themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

MakePhoto = Callable[..., Path]


@pytest.fixture
def photo(tmp_path: Path) -> MakePhoto:
    """photo("a/b.jpg", size=(w, h), seed=0): a picture of noise, written under tmp_path."""

    def make(name: str, size: tuple[int, int] = (24, 16), seed: int = 0) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path)
        return path

    return make
