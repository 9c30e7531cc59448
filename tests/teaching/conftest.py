"""Fixtures of the tests of this folder."""

from __future__ import annotations

import pytest
import torch
from timm.models.vision_transformer import VisionTransformer
from torch import nn

from tests.teaching.tiny import ARCH, OPTIONS
from vitscope.teaching.vit import create_encoder


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


def plain(encoder: nn.Module) -> VisionTransformer:
    assert isinstance(encoder, VisionTransformer)
    return encoder


@pytest.fixture
def vit() -> VisionTransformer:
    return plain(create_encoder(ARCH, OPTIONS, 0))


@pytest.fixture
def any_size_vit() -> VisionTransformer:
    return plain(create_encoder(ARCH, OPTIONS, 0, any_size=True))
