"""The architecture a file wants, from its keys and shapes alone, for the study's own models."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import timm
import torch

from vitscope.models.checkpoints import convert, propose_architecture


@pytest.mark.parametrize(
    "architecture",
    [
        "vit_small_patch16_224",
        "vit_base_patch8_224",
        "vit_large_patch16_224",
        "vit_base_patch32_224",
        "beit_base_patch16_224",
        "vit_base_patch14_dinov2",
        "vit_small_patch14_reg4_dinov2",
        "vit_base_patch16_siglip_224",
        "deit_small_distilled_patch16_224",
        "deit3_base_patch16_384",
    ],
)
def test_timm_names_are_found_again(architecture: str) -> None:
    with torch.device("meta"):
        state = timm.create_model(architecture, num_classes=0).state_dict()
    assert propose_architecture(convert(state)) == architecture


@pytest.mark.parametrize(("archive", "kind"), [(True, "clip_quickgelu"), (False, "clip")])
@pytest.mark.parametrize(("size", "patch", "pixels"), [("base", 16, 224), ("base", 32, 224), ("large", 14, 336)])
def test_clip(official: SimpleNamespace, archive: bool, kind: str, size: str, patch: int, pixels: int) -> None:
    name = f"vit_{size}_patch{patch}_{kind}_{pixels}"
    with torch.device("meta"):
        state = timm.create_model(name, num_classes=0, img_size=pixels).state_dict()
        file = official.clip_full(state, archive=archive)
    assert propose_architecture(convert(file)) == name


def test_unusual_sizes_get_no_proposal(official: SimpleNamespace) -> None:
    assert propose_architecture(convert(official.tiny("vit_base_patch16_224").state_dict())) is None
    with torch.device("meta"):
        rotary = timm.create_model("vit_small_patch16_dinov3", num_classes=0).state_dict()
    assert propose_architecture(convert(rotary)) is None
