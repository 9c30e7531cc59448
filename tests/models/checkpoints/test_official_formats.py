"""Every official format, written by the test and loaded into timm: all weights arrive, the rest has its reason."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from vitscope.models.checkpoints import LoadReport, convert, load_checkpoint, read_checkpoint

VIT, BEIT, CLIP = "vit_base_patch16_224", "beit_base_patch16_224", "vit_base_patch16_clip_quickgelu_224"
DINOV2, REGISTERS = "vit_base_patch14_dinov2", "vit_base_patch14_reg4_dinov2"


def load_into(module: nn.Module, content: Any, folder: Path) -> LoadReport:
    path = folder / "weights.file"  # a name that says nothing
    torch.save(content, path)
    return load_checkpoint(module, path)


def assert_same(module: nn.Module, expected: dict[str, Tensor]) -> None:
    state = module.state_dict()
    assert state.keys() == expected.keys()
    for key, value in expected.items():
        assert state[key].shape == value.shape, key
        assert (state[key] - value).abs().max() <= 1e-6, key


def test_dino_backbone_file(official: SimpleNamespace, tmp_path: Path) -> None:
    weights = official.randomised(official.tiny(VIT)).state_dict()
    module = official.tiny(VIT)
    report = load_into(module, weights, tmp_path)
    assert_same(module, weights)
    assert report.family == "vit"
    assert set(report.used) == set(weights)
    assert report.dropped == {}
    assert report.resampled == {}


def test_dino_training_file_gives_the_teacher(official: SimpleNamespace, tmp_path: Path) -> None:
    weights = official.randomised(official.tiny(VIT)).state_dict()
    module = official.tiny(VIT)
    report = load_into(module, official.dino_training_file(weights), tmp_path)
    assert_same(module, weights)
    assert report.family == "dino"
    assert report.dropped["optimizer"] == "training state, not weights"
    assert report.dropped["args"] == "training state, not weights"
    assert "teacher" in report.dropped["student"]
    assert "self-distillation" in report.dropped["head.last_layer.weight_v"]


def test_dino_student_alone(official: SimpleNamespace, tmp_path: Path) -> None:
    weights = official.randomised(official.tiny(VIT)).state_dict()
    student = {f"module.backbone.{k}": v for k, v in weights.items()} | official.dino_head("module.head.")
    module = official.tiny(VIT)
    assert load_into(module, {"student": student, "epoch": 1}, tmp_path).family == "dino"
    assert_same(module, weights)


@pytest.mark.parametrize("wrapped", [True, False])
def test_ibot(official: SimpleNamespace, tmp_path: Path, wrapped: bool) -> None:
    weights = official.randomised(official.tiny(VIT)).state_dict()
    backbone = {**weights, "masked_embed": torch.zeros(1, 48)}
    heads = official.dino_head("head.") | {"head.last_layer2.weight_g": torch.ones(9, 1)}
    teacher = {f"backbone.{k}": v for k, v in backbone.items()} | heads
    module = official.tiny(VIT)
    report = load_into(module, {"teacher": teacher} if wrapped else {"state_dict": backbone}, tmp_path)
    assert report.family == "ibot"
    assert_same(module, weights)


def test_moco_takes_the_base_encoder(official: SimpleNamespace, tmp_path: Path) -> None:
    weights = official.randomised(official.tiny(VIT)).state_dict()
    module = official.tiny(VIT)
    report = load_into(module, official.moco_training_file(weights), tmp_path)
    assert_same(module, weights)
    assert report.family == "moco"
    assert "momentum" in report.dropped["momentum_encoder.cls_token"]
    assert "predictor" in report.dropped["predictor.0.weight"]
    assert "head" in report.dropped["base_encoder.head.7.running_var"]


def test_mae_with_and_without_decoder(official: SimpleNamespace, tmp_path: Path) -> None:
    weights = official.randomised(official.tiny(VIT)).state_dict()
    full, encoder = official.tiny(VIT), official.tiny(VIT)
    report = load_into(full, official.mae_training_file(weights), tmp_path)
    assert report.family == "mae"
    assert "decoder" in report.dropped["decoder_blocks.0.attn.qkv.weight"]
    assert "masking" in report.dropped["mask_token"]
    load_into(encoder, {"model": weights}, tmp_path)
    assert_same(full, weights)
    assert_same(encoder, weights)


@pytest.mark.parametrize("holder", ["model", "module"])
@pytest.mark.parametrize("pool", ["avg", "token"])
def test_beit_shares_its_table_with_every_block(
    official: SimpleNamespace, tmp_path: Path, holder: str, pool: str
) -> None:
    source = official.randomised(official.tiny(BEIT, global_pool=pool)).state_dict()
    table = torch.randn(7 * 7 + 3, 3)
    weights = {k: table if k.endswith("relative_position_bias_table") else v for k, v in source.items()}
    module = official.tiny(BEIT, global_pool=pool)
    content = official.beit_pretraining_file(weights)
    report = load_into(module, {holder: content["model"]}, tmp_path)
    assert_same(module, weights)
    assert report.family == "beit"
    assert report.shape.heads == 3
    assert report.shape.grid == (4, 4)
    assert "grid" in report.dropped["rel_pos_bias.relative_position_index"]
    assert {"lm_head.weight", "lm_head.bias", "mask_token"} <= report.dropped.keys()


def test_beit_fine_tuned_file_has_a_table_per_block(official: SimpleNamespace, tmp_path: Path) -> None:
    weights = official.randomised(official.tiny(BEIT)).state_dict()
    index = {f"blocks.{i}.attn.relative_position_index": torch.zeros(17, 17, dtype=torch.int64) for i in range(3)}
    module = official.tiny(BEIT)
    report = load_into(module, {"model": {**weights, **index, **official.linear("head", 10, 48)}}, tmp_path)
    assert_same(module, weights)
    assert set(report.dropped) == {*index, "head.weight", "head.bias"}


@pytest.mark.parametrize("architecture", [DINOV2, REGISTERS])
def test_dinov2_backbone_file(official: SimpleNamespace, tmp_path: Path, architecture: str) -> None:
    weights = official.randomised(official.tiny(architecture)).state_dict()
    module = official.tiny(architecture)
    report = load_into(module, official.dinov2_official(weights), tmp_path)
    assert_same(module, weights)
    assert report.family == "dinov2"
    assert report.shape.layer_scale
    assert report.shape.registers == (4 if architecture == REGISTERS else 0)
    assert set(report.dropped) == {"mask_token"}


def test_dinov2_training_file_with_blocks_in_chunks(official: SimpleNamespace, tmp_path: Path) -> None:
    weights = official.randomised(official.tiny(DINOV2)).state_dict()
    chunk = {
        0: "blocks.0.0.",
        1: "blocks.0.1.",
        2: "blocks.1.2.",
    }  # the number of a block runs over all chunks
    chunked = {}
    for key, value in official.dinov2_official(weights).items():
        for block, prefix in chunk.items():
            key = key.replace(f"blocks.{block}.", prefix) if key.startswith(f"blocks.{block}.") else key
        chunked[f"backbone.{key}"] = value
    heads = official.dino_head("dino_head.") | official.dino_head("ibot_head.")
    module = official.tiny(DINOV2)
    report = load_into(module, {"teacher": {**chunked, **heads}}, tmp_path)
    assert_same(module, weights)
    assert report.family == "dinov2"


def test_dinov2_giant_has_a_gated_mlp(official: SimpleNamespace, tmp_path: Path) -> None:
    options = {"embed_dim": 48, "depth": 2, "num_heads": 3}
    weights = official.randomised(official.tiny("vit_giant_patch14_dinov2", **options)).state_dict()
    file = {
        k.replace("mlp.fc1.", "mlp.w12.").replace("mlp.fc2.", "mlp.w3."): v
        for k, v in official.dinov2_official(weights).items()
    }
    module = official.tiny("vit_giant_patch14_dinov2", **options)
    load_into(module, file, tmp_path)
    assert_same(module, weights)


@pytest.mark.parametrize("archive", [True, False])
def test_clip_full_model_in_half_precision(official: SimpleNamespace, tmp_path: Path, archive: bool) -> None:
    weights = {k: v.half().float() for k, v in official.randomised(official.tiny(CLIP)).state_dict().items()}
    file = official.clip_full(weights, archive=archive)
    module = official.tiny(CLIP)
    half = {k: v.half() if v.is_floating_point() else v for k, v in file.items()}
    report = load_into(module, half, tmp_path)
    assert_same(module, weights)
    assert report.family == "clip"
    assert report.dropped["transformer.resblocks.0.ln_1.weight"] == "the text tower"
    assert "text" in report.dropped["visual.proj"]
    assert ("quickgelu" in report.note) is not archive


def test_clip_image_tower_alone(official: SimpleNamespace, tmp_path: Path) -> None:
    weights = official.randomised(official.tiny(CLIP)).state_dict()
    module = official.tiny(CLIP)
    report = load_into(module, official.clip_image_tower(weights), tmp_path)
    assert_same(module, weights)
    assert set(report.dropped) == {"proj"}


def test_open_clip_training_file_with_a_timm_trunk(official: SimpleNamespace, tmp_path: Path) -> None:
    architecture = "vit_base_patch16_siglip_224"
    weights = official.randomised(official.tiny(architecture)).state_dict()
    state = {f"module.visual.trunk.{k}": v for k, v in weights.items()}
    state |= {
        "module.text.transformer.resblocks.0.ln_1.weight": torch.ones(4),
        "module.logit_scale": torch.ones([]),
    }
    state |= {"module.visual.head.proj.weight": torch.ones(2, 48), "module.logit_bias": torch.ones([])}
    module = official.tiny(architecture)
    report = load_into(module, {"epoch": 3, "name": "run", "state_dict": state, "optimizer": {"state": {}}}, tmp_path)
    assert_same(module, weights)
    assert report.family == "siglip"


def test_ijepa_takes_the_target_encoder(official: SimpleNamespace, tmp_path: Path) -> None:
    architecture = "vit_huge_patch14_gap_224"
    weights = official.randomised(official.tiny(architecture)).state_dict()
    target = {f"module.{k}": v for k, v in weights.items()}
    other = {k: torch.randn_like(v) for k, v in target.items()}
    file = {
        "encoder": other,
        "predictor": other,
        "target_encoder": target,
        "opt": {"state": {}},
        "epoch": 300,
        "lr": 0.1,
    }
    module = official.tiny(architecture)
    report = load_into(module, file, tmp_path)
    assert_same(module, weights)
    assert report.family == "ijepa"
    assert "target encoder" in report.dropped["encoder"]


@pytest.mark.parametrize(
    "architecture",
    [
        VIT,
        "deit_base_distilled_patch16_224",
        "deit3_base_patch16_224",
        "eva02_base_patch14_224",
        "vit_base_patch16_dinov3",
    ],
)
def test_timm_state_dicts_pass_through(official: SimpleNamespace, tmp_path: Path, architecture: str) -> None:
    weights = official.randomised(official.tiny(architecture)).state_dict()
    module = official.tiny(architecture)
    path = tmp_path / "model.safetensors"
    save_file({k: v.contiguous() for k, v in {**weights, **official.linear("head", 10, 48)}.items()}, path)
    report = load_checkpoint(module, path)
    assert_same(module, weights)
    assert set(report.dropped) == {"head.weight", "head.bias"}


def test_deit3_names_its_layer_scale_gamma(official: SimpleNamespace, tmp_path: Path) -> None:
    weights = official.randomised(official.tiny("deit3_base_patch16_224")).state_dict()
    file = {k.replace(".ls1.gamma", ".gamma_1").replace(".ls2.gamma", ".gamma_2"): v for k, v in weights.items()}
    assert "blocks.0.gamma_1" in file
    module = official.tiny("deit3_base_patch16_224")
    load_into(module, {"model": file}, tmp_path)
    assert_same(module, weights)


def test_lightning_and_compiled_prefixes(official: SimpleNamespace, tmp_path: Path) -> None:
    weights = official.randomised(official.tiny(VIT)).state_dict()
    state = {f"model._orig_mod.{k}": v for k, v in weights.items()}
    content = {
        "state_dict": state,
        "optimizer_states": [{"state": {0: torch.ones(1)}}],
        "epoch": 2,
        "callbacks": {},
    }
    module = official.tiny(VIT)
    load_into(module, content, tmp_path)
    assert_same(module, weights)


def test_the_averaged_weights_are_preferred(official: SimpleNamespace, tmp_path: Path) -> None:
    weights = official.randomised(official.tiny(VIT)).state_dict()
    other = {k: torch.randn_like(v) for k, v in weights.items()}
    module = official.tiny(VIT)
    report = load_into(module, {"state_dict": other, "state_dict_ema": weights}, tmp_path)
    assert_same(module, weights)
    assert "state_dict_ema" in report.dropped["state_dict"]


def test_a_classifier_never_stays_with_random_weights(official: SimpleNamespace, tmp_path: Path) -> None:
    weights = official.randomised(official.tiny(VIT)).state_dict()
    module = official.tiny(VIT)
    module.reset_classifier(10)
    assert "head.weight" in module.state_dict()
    load_into(module, weights, tmp_path)
    assert_same(module, weights)


def test_convert_reads_the_shape(official: SimpleNamespace, tmp_path: Path) -> None:
    path = tmp_path / "weights"
    torch.save(official.tiny(REGISTERS, depth=2).state_dict(), path)
    shape = convert(read_checkpoint(path)).shape
    assert (shape.depth, shape.width, shape.patch, shape.hidden) == (2, 48, (8, 8), 192)
    assert (shape.class_token, shape.registers, shape.layer_scale, shape.grid) == (True, 4, True, (4, 4))
