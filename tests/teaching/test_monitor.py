"""What the monitor says of a network in training is what k-NN says of its blocks, and it leaves it as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor

from vitscope.teaching.monitor import NEIGHBOURS, Monitor


@pytest.fixture
def images() -> tuple[Tensor, Tensor]:
    """Images of three classes, told apart by their mean colour, with noise."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(90) % 3
    colours = torch.eye(3)[labels].view(-1, 3, 1, 1) * 40
    noise = torch.randint(0, 200, (90, 3, 16, 16), generator=generator)
    return (colours + noise).to(torch.uint8), labels


def blocks(vit: VisionTransformer, images: Tensor) -> list[tuple[np.ndarray, np.ndarray]]:
    """CLS and mean patch token of every block, by timm's own hand."""
    tokens: Any = vit.forward_intermediates(
        images / 127.5 - 1, intermediates_only=True, output_fmt="NLC", return_prefix_tokens=True
    )
    return [(prefix[:, 0].numpy(), patches.mean(1).numpy()) for patches, prefix in tokens]


def test_scores_are_those_of_scikit_learn_on_the_blocks_outputs(
    vit: VisionTransformer, images: tuple[Tensor, Tensor]
) -> None:
    pixels, labels = images
    monitor = Monitor(pixels[:60], labels[:60], {"a": (pixels[60:], labels[60:]), "b": (pixels[:30], labels[:30])})
    vit.train()
    before = {name: value.clone() for name, value in vit.state_dict().items()}
    scores = monitor(vit)
    assert vit.training
    assert all(parameter.requires_grad for name, parameter in vit.named_parameters() if name != "pos_embed")
    assert all(torch.equal(value, before[name]) for name, value in vit.state_dict().items())
    vit.eval()
    with torch.no_grad():
        bank, asked = blocks(vit, pixels[:60]), blocks(vit, pixels[60:])
    for layer, (known, queries) in enumerate(zip(bank, asked, strict=True)):
        for kind, found in enumerate((scores["a"].cls, scores["a"].patch)):
            voter = KNeighborsClassifier(
                NEIGHBOURS, metric="cosine", algorithm="brute", weights=lambda distance: np.exp((1 - distance) / 0.07)
            ).fit(known[kind], labels[:60].numpy())
            assert found is not None
            assert found[layer] == pytest.approx(voter.score(queries[kind], labels[60:].numpy()), abs=1e-4)
    assert set(scores) == {"a", "b"}
