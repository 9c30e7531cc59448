"""The paper's own names of heads: what is shipped, whom it is compared with, and what agrees."""

from __future__ import annotations

import pytest
import torch

from vitscope.attention.hand_labels import compare, hand_labels, labelled_as
from vitscope.attention.kinds import KINDS
from vitscope.models.catalogue import CATALOGUE

LOCAL = {"strict local", "soft local", "axial local", "offset local"}


def test_the_labels_are_the_published_ones() -> None:
    labels = {(name, one.layer, one.head): one.kind for name, heads in hand_labels().items() for one in heads}
    assert labels["fs-b16", 0, 6] == "strict local"
    assert labels["clip-b16", 1, 2] == "soft local"
    assert labels["dino-b16", 5, 2] == "axial local"
    assert labels["moco-b16", 2, 1] == labels["moco-b16", 2, 9] == "offset local"
    assert labels["mae-l16", 6, 4] == labels["mae-h14", 10, 2] == labels["mae-b16", 10, 6] == "offset local"
    assert len(labels) == 4 * 6 + 6  # one of each kind for six B/16; four more offset heads of B/16, two of L and H


def test_labels_are_of_models_and_kinds_that_there_are() -> None:
    depth = {"base": 12, "large": 24, "huge": 32}
    for name, heads in hand_labels().items():
        size = next(size for size in depth if size in CATALOGUE[name].architecture)
        assert {one.kind for one in heads} <= LOCAL <= set(KINDS)
        assert all(one.layer < depth[size] and one.head < 16 for one in heads)
    for name in ("fs", "clip", "dino", "moco", "mae", "beit"):
        assert {one.kind for one in hand_labels()[f"{name}-b16"]} == LOCAL


@pytest.mark.parametrize(
    ("about", "teaching", "expected"),
    [
        ({"model": "beit-b16", "architecture": "beit_base_patch16_224"}, "beit", ("beit-b16", True)),
        ({"model": "card.toml", "architecture": "vit_base_patch16_224"}, "moco", ("moco-b16", False)),
        ({"model": "card.toml", "architecture": "vit_base_patch16_224"}, "none", None),
        ({"model": "card.toml", "architecture": "vit_small_patch14_dinov2"}, "dino", None),
        ({}, "dino", None),
    ],
)
def test_whom_a_model_is_compared_with(about: dict[str, str], teaching: str, expected: tuple[str, bool] | None) -> None:
    assert labelled_as(about, teaching) == expected


def test_agreement_is_counted_head_by_head() -> None:
    kind = torch.full((12, 12), KINDS.index("global"))
    kind[2, 6] = KINDS.index("offset local")
    kind[0, 6] = KINDS.index("soft local")
    found = compare(kind, {"model": "fs-b16"}, "fs")
    assert found is not None
    assert (found.of, found.exact, found.agreed, len(found.pairs)) == ("fs-b16", True, 1, 4)
    assert {(label.layer, label.head): name for label, name in found.pairs} == {
        (0, 6): "soft local", (2, 5): "global", (4, 6): "global", (2, 6): "offset local",
    }  # fmt: skip
    assert compare(kind, {"model": "zoo/fs", "architecture": "vit_tiny_patch16_224"}, "fs") is None
