"""Nothing is guessed: another architecture, unknown, missing or broken keys are told by name."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from vitscope.core.errors import BadCheckpoint
from vitscope.models.checkpoints import load_checkpoint

VIT, BEIT, CLIP = "vit_base_patch16_224", "beit_base_patch16_224", "vit_base_patch16_clip_224"
QUICK = "vit_base_patch16_clip_quickgelu_224"


def refusal(module: nn.Module, content: Any, folder: Path) -> str:
    path = folder / "weights.pth"
    torch.save(content, path)
    with pytest.raises(BadCheckpoint) as caught:
        load_checkpoint(module, path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message


def test_another_width_depth_or_patch(official: SimpleNamespace, tmp_path: Path) -> None:
    weights = official.tiny(VIT).state_dict()
    assert "width 48" in (text := refusal(official.tiny(VIT, embed_dim=96), weights, tmp_path))
    assert "width 96" in text
    assert "vit_base_patch16_224" in text
    assert "but vit_base_patch16_224 has 2 blocks" in refusal(official.tiny(VIT, depth=2), weights, tmp_path)
    assert "8 x 8 patches" in refusal(official.tiny(VIT, patch_size=16), weights, tmp_path)
    assert "MLP width 96" in refusal(official.tiny(VIT, mlp_ratio=2), weights, tmp_path)


def test_the_right_architecture_is_proposed(official: SimpleNamespace, tmp_path: Path) -> None:
    small = official.tiny("vit_small_patch16_224", embed_dim=384, depth=12, num_heads=6, patch_size=16)
    text = refusal(official.tiny(VIT), small.state_dict(), tmp_path)
    assert text.endswith("use the architecture vit_small_patch16_224")


def test_another_family(official: SimpleNamespace, tmp_path: Path) -> None:
    vit, beit, clip = (official.tiny(name).state_dict() for name in (VIT, BEIT, CLIP))
    assert "relative_position_bias_table" in refusal(official.tiny(BEIT), vit, tmp_path)
    assert "norm_pre.weight" in refusal(official.tiny(CLIP), vit, tmp_path)
    assert "gamma_1" in refusal(official.tiny(VIT), beit, tmp_path)
    assert "norm_pre" in refusal(official.tiny(VIT), clip, tmp_path)
    assert "dist_token" in refusal(official.tiny("deit_base_distilled_patch16_224"), vit, tmp_path)


def test_registers_are_part_of_the_architecture(official: SimpleNamespace, tmp_path: Path) -> None:
    plain, registers = (official.tiny(f"vit_base_patch14_{kind}") for kind in ("dinov2", "reg4_dinov2"))
    assert "4 registers" in refusal(plain, official.dinov2_official(registers.state_dict()), tmp_path)
    assert "reg_token" in refusal(registers, official.dinov2_official(plain.state_dict()), tmp_path)


@pytest.mark.parametrize("family", ["vit", "dino", "moco", "mae", "beit", "clip", "dinov2"])
def test_unknown_and_missing_keys_are_named(official: SimpleNamespace, tmp_path: Path, family: str) -> None:
    architecture = {"beit": BEIT, "clip": QUICK, "dinov2": "vit_base_patch14_reg4_dinov2"}.get(family, VIT)
    weights = official.tiny(architecture).state_dict()
    file: Any = {
        "vit": lambda s: s,
        "dino": official.dino_training_file,
        "moco": official.moco_training_file,
        "mae": official.mae_training_file,
        "beit": official.beit_pretraining_file,
        "clip": lambda s: official.clip_full(s, archive=True),
        "dinov2": official.dinov2_official,
    }[family](weights)
    inner = next((file[k] for k in ("teacher", "state_dict", "model") if k in file), file)
    prefix = {"dino": "backbone.", "moco": "module.base_encoder.", "clip": "visual."}.get(family, "")
    inner[f"{prefix}surprise.weight"] = torch.ones(2)
    assert "surprise.weight" in refusal(official.tiny(architecture), file, tmp_path)
    del inner[f"{prefix}surprise.weight"]

    victim = next(k for k in inner if k.endswith(("1.mlp.fc1.bias", "1.mlp.c_fc.bias")))
    removed = inner.pop(victim)
    assert "blocks.1.mlp.fc1.bias" in refusal(official.tiny(architecture), file, tmp_path)
    inner[victim] = removed[:-1]
    text = refusal(official.tiny(architecture), file, tmp_path)
    assert "blocks.1.mlp.fc1.bias is 191 instead of 192" in text


def test_many_unknown_keys_are_counted(official: SimpleNamespace, tmp_path: Path) -> None:
    extra = {f"adapter.{i}": torch.ones(1) for i in range(10)}
    text = refusal(official.tiny(VIT), {**official.tiny(VIT).state_dict(), **extra}, tmp_path)
    assert "10 of its keys (adapter.0, adapter.1, adapter.2, adapter.3 and 6 more)" in text


def test_an_unknown_entry_beside_the_weights(official: SimpleNamespace, tmp_path: Path) -> None:
    weights = official.tiny(VIT).state_dict()
    text = refusal(official.tiny(VIT), {"model": weights, "discriminator": {"w": torch.ones(1)}}, tmp_path)
    assert "'discriminator' beside 'model'" in text


def test_two_networks_in_one_file(official: SimpleNamespace, tmp_path: Path) -> None:
    weights = official.tiny(VIT).state_dict()
    both = {f"{tower}.{k}": v for tower in ("encoder_q", "encoder_k") for k, v in weights.items()}
    assert "'encoder_k.', 'encoder_q.'" in refusal(official.tiny(VIT), both, tmp_path)


def test_not_a_vision_transformer(official: SimpleNamespace, tmp_path: Path) -> None:
    assert "layer1" in refusal(official.tiny(VIT), {"layer1.conv.weight": torch.ones(1)}, tmp_path)
    resnet = {"visual.layer1.0.conv1.weight": torch.ones(1), "visual.conv1.weight": torch.ones(1)}
    assert "ResNet" in refusal(official.tiny(CLIP), resnet, tmp_path)
    stem = {"patch_embed.proj.weight": torch.ones(4, 3, 2, 2)}
    assert "not a Vision Transformer" in refusal(official.tiny(VIT), stem, tmp_path)
    assert "no tensors" in refusal(official.tiny(VIT), {"model": {"a": 3}}, tmp_path)
    assert "no tensors" in refusal(official.tiny(VIT), {"model": {}}, tmp_path)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_broken_numbers_are_named(official: SimpleNamespace, tmp_path: Path, value: float) -> None:
    weights = official.tiny(VIT).state_dict()
    weights["blocks.2.attn.qkv.weight"][5, 7] = value
    weights["cls_token"][0, 0, 0] = value
    text = refusal(official.tiny(VIT), weights, tmp_path)
    assert "2 tensors hold NaN or infinity (blocks.2.attn.qkv.weight, cls_token)" in text


def test_broken_numbers_in_what_is_dropped_do_no_harm(official: SimpleNamespace, tmp_path: Path) -> None:
    file = official.mae_training_file(official.tiny(VIT).state_dict())
    file["model"]["decoder_pred.bias"][:] = float("nan")
    torch.save(file, tmp_path / "mae.pth")
    assert load_checkpoint(official.tiny(VIT), tmp_path / "mae.pth").family == "mae"


def test_moco_small_has_twelve_heads(official: SimpleNamespace, tmp_path: Path) -> None:
    options = {"embed_dim": 384, "depth": 1}
    six = official.tiny("vit_small_patch16_224", num_heads=6, **options)
    twelve = official.tiny("vit_small_patch16_224", num_heads=12, **options)
    file = official.moco_training_file(six.state_dict())
    assert "num_heads=12" in refusal(six, file, tmp_path)
    assert load_checkpoint(twelve, tmp_path / "weights.pth").family == "moco"


def test_beit_tables_show_the_heads(official: SimpleNamespace, tmp_path: Path) -> None:
    file = official.beit_pretraining_file(official.tiny(BEIT).state_dict())
    assert "has 3 attention heads" in refusal(official.tiny(BEIT, num_heads=6), file, tmp_path)


def test_openai_archives_need_quickgelu_and_heads_of_64(official: SimpleNamespace, tmp_path: Path) -> None:
    options = {"embed_dim": 128, "depth": 1}
    file = official.clip_full(official.tiny(QUICK, num_heads=2, **options).state_dict(), archive=True)
    assert "QuickGELU" in refusal(official.tiny(CLIP, num_heads=2, **options), file, tmp_path)
    assert "num_heads=2" in refusal(official.tiny(QUICK, num_heads=4, **options), file, tmp_path)
    assert load_checkpoint(official.tiny(QUICK, num_heads=2, **options), tmp_path / "weights.pth").family == "clip"
