"""Fixtures of the tests of this folder."""

from __future__ import annotations

import pytest
import torch
from timm.models.vision_transformer import VisionTransformer

from tests.teaching.tiny import ARCH, OPTIONS
from vitscope.teaching.vit import create_encoder


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture
def vit() -> VisionTransformer:
    return create_encoder(ARCH, OPTIONS, 0)


@pytest.fixture
def any_size_vit() -> VisionTransformer:
    return create_encoder(ARCH, OPTIONS, 0, any_size=True)
