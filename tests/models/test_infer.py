"""The architecture of a file that comes alone: found where all that was published agrees, asked for elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from safetensors.torch import save_file
from torch import Tensor

from tests.models.checkpoints.conftest import clip_full, moco_training_file
from tests.models.checkpoints.test_modern_formats import aimv2_file, eva02_file, pe_file
from vitscope.core.errors import BadCheckpoint, VitscopeError
from vitscope.models.checkpoints import convert, doubt, propose_architecture
from vitscope.models.spec import load_model, resolve


def state_of(architecture: str, **options: Any) -> dict[str, Tensor]:
    with torch.device("meta"):
        return timm.create_model(architecture, num_classes=0, **options).state_dict()


def dinov3_official(architecture: str, *, biased: bool) -> dict[str, Tensor]:
    state = state_of(architecture)
    state["storage_tokens"] = state.pop("reg_token")
    state = {key.replace("fc1_g", "w1").replace("fc1_x", "w2"): value for key, value in state.items()}
    if "blocks.0.mlp.w1.weight" in state:
        state = {key.replace("mlp.fc2", "mlp.w3"): value for key, value in state.items()}
    for i in range(sum(".norm1.weight" in key for key in state)):
        state[f"blocks.{i}.attn.qkv.bias"] = torch.full((3 * state["norm.bias"].shape[0],), float(biased))
        mask = torch.ones(3, state["norm.bias"].shape[0])
        mask[1] = 0
        state[f"blocks.{i}.attn.qkv.bias_mask"] = mask.flatten()
    return state


@pytest.mark.parametrize(
    ("file", "architecture"),
    [
        (dinov3_official("vit_small_patch16_dinov3", biased=False), "vit_small_patch16_dinov3"),
        (dinov3_official("vit_base_patch16_dinov3", biased=True), "vit_base_patch16_dinov3_qkvb"),
        (dinov3_official("vit_large_patch16_dinov3", biased=False), "vit_large_patch16_dinov3"),
        (dinov3_official("vit_huge_plus_patch16_dinov3", biased=False), "vit_huge_plus_patch16_dinov3"),
        (aimv2_file(state_of("aimv2_large_patch14_224")), "aimv2_large_patch14_224"),
        (aimv2_file(state_of("aimv2_huge_patch14_336")), "aimv2_huge_patch14_336"),
        (pe_file(state_of("vit_pe_core_base_patch16_224")), "vit_pe_core_base_patch16_224"),
        (pe_file(state_of("vit_pe_core_large_patch14_336")), "vit_pe_core_large_patch14_336"),
        (eva02_file(state_of("eva02_base_patch14_224")), "eva02_base_patch14_224"),
        (state_of("vit_base_patch16_siglip_224"), "vit_base_patch16_siglip_224"),
        (state_of("vit_huge_patch14_gap_224"), "vit_huge_patch14_gap_224"),
        (state_of("deit3_small_patch16_224"), "deit3_small_patch16_224"),
        (state_of("vit_base_patch16_224"), "vit_base_patch16_224"),
    ],
)
def test_published_networks_are_known_by_their_tensors(file: Any, architecture: str) -> None:
    converted = convert(file)
    assert propose_architecture(converted) == architecture
    assert not doubt(converted)


def test_what_the_tensors_leave_open_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "w.pt"
    torch.save(timm.create_model("vit_small_patch16_224", num_classes=0, depth=12).state_dict(), path)
    with pytest.raises(VitscopeError, match=r"fits vit_small_patch16_224, but may have 6 .* or 12 like MoCo-v3"):
        resolve(path)
    assert resolve(path, arch="vit_small_patch16_224").architecture == "vit_small_patch16_224"
    torch.save(timm.create_model("vit_tiny_patch16_224", num_classes=0, depth=3).state_dict(), path)
    with pytest.raises(VitscopeError, match=r"3 blocks of width 192.*--arch"):
        resolve(str(path))
    torch.save({"stranger": torch.ones(3)}, path)
    with pytest.raises(BadCheckpoint, match="not a Vision Transformer"):
        resolve(path)
    clip = convert(clip_full(state_of("vit_base_patch16_clip_224"), archive=False))
    assert "QuickGELU" in doubt(clip)
    assert not doubt(convert(clip_full(state_of("vit_base_patch16_clip_224"), archive=True)))


def test_a_recognised_family_brings_its_heads_and_its_size(tmp_path: Path) -> None:
    module = timm.create_model("vit_small_patch16_224", num_classes=0, img_size=96)
    torch.save(moco_training_file(module.state_dict()), tmp_path / "moco.pth.tar")
    found = load_model(tmp_path / "moco.pth.tar")
    assert (found.heads, found.layout.grid, found.teaching) == (12, (6, 6), "moco")
    assert "12 attention heads, as the file says" in found.notes[0]


def further_heads(path: Path) -> dict[str, Tensor]:
    torch.manual_seed(0)
    state = timm.create_model("vit_tiny_patch16_224", num_classes=0).state_dict()
    save_file({**state, "depth_head.0.weight": torch.ones(3), "aux.bias": torch.ones(2)}, path)
    return state


def test_further_heads_are_ignored_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    state = further_heads(path)
    with pytest.raises(BadCheckpoint, match=r"aux\.bias, depth_head\.0\.weight"):
        load_model(path, arch="vit_tiny_patch16_224")
    found = load_model(path, ignore_keys=("depth_head.*", "aux.*"))
    assert torch.equal(found.module.state_dict()["cls_token"], state["cls_token"])
    assert any(
        "left out of its file, as was asked for (2 in all): aux.bias, depth_head" in note for note in found.notes
    )
    card = tmp_path / "mine.toml"
    named = 'name = "mine"\narch = "vit_tiny_patch16_224"\nweights = "w.safetensors"\n'
    card.write_text(named + 'ignore_keys = ["depth_head.*", "aux.*"]')
    assert load_model(card).name == "mine"


def test_nothing_that_is_needed_can_be_ignored(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    further_heads(path)
    with pytest.raises(BadCheckpoint, match=r"lacks 1 that vit_tiny_patch16_224 needs \(norm\.bias\)"):
        load_model(path, arch="vit_tiny_patch16_224", ignore_keys=["depth_head.*", "aux.*", "norm.bias"])
    with pytest.raises(BadCheckpoint, match="no tensors at all"):
        load_model(path, arch="vit_tiny_patch16_224", ignore_keys=["*"])


def test_ignored_entries_beside_the_weights_and_two_networks(tmp_path: Path) -> None:
    torch.manual_seed(0)
    first, second = (timm.create_model("vit_tiny_patch16_224", num_classes=0).state_dict() for _ in range(2))
    path = tmp_path / "both.pt"
    both = {f"{name}.{key}": value for name, state in (("a", first), ("b", second)) for key, value in state.items()}
    torch.save({"model": both, "queue": {"x": torch.ones(2)}}, path)
    with pytest.raises(BadCheckpoint, match="'queue' beside 'model'"):
        load_model(path)
    with pytest.raises(BadCheckpoint, match=r"found 'a\.', 'b\.'"):
        load_model(path, ignore_keys=["queue"])
    one, other = (resolve(path, ignore_keys=["queue", f"{name}.*"]) for name in "ba")
    assert torch.equal(one.load().module.state_dict()["cls_token"], first["cls_token"])
    assert torch.equal(other.load().module.state_dict()["cls_token"], second["cls_token"])
    assert one.digest != other.digest  # one file, two networks
