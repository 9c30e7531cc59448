"""Folders with a config.json: what timm and `transformers` write, and what an enemy would.

That each kind of folder computes what `transformers` computes is in `tests/oracles/test_modern_parity.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from safetensors.torch import save_file

from vitscope.core.errors import BadCheckpoint, VitscopeError
from vitscope.models.folder import read_folder
from vitscope.models.spec import load_model, resolve

SMALL = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 96}
VIT: dict[str, Any] = {"model_type": "vit", "image_size": 32, "patch_size": 8, **SMALL}


def folder_of(path: Path, config: Any, *, weights: bool = True) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    if weights:
        (path / "model.safetensors").write_bytes(b"")
    return path


@pytest.mark.parametrize(
    ("config", "architecture", "options"),
    [
        (VIT, "vit_base_patch16_224", {"num_heads": 3, "depth": 2, "embed_dim": 48, "img_size": 32, "patch_size": 8}),
        ({"model_type": "vit"}, "vit_base_patch16_224", {"num_heads": 12}),
        ({"model_type": "siglip", "vision_config": {}}, "vit_base_patch16_siglip_224", {"act_layer": "gelu_tanh"}),
        ({"model_type": "clip", "vision_config": {}}, "vit_base_patch32_clip_quickgelu_224", {"num_heads": 12}),
        ({"model_type": "dinov2", "image_size": 518}, "vit_base_patch14_dinov2", {"img_size": 518}),
        ({"model_type": "dinov3_vit"}, "vit_small_patch16_dinov3_qkvb", {"num_heads": 6, "num_reg_tokens": 0}),
        ({"model_type": "aimv2_vision_model"}, "aimv2_large_patch14_224", {"num_heads": 8}),
        ({"model_type": "ijepa", "hidden_act": None}, "vit_base_patch16_gap_224", {"num_heads": 12}),
        ({"model_type": "vit", "hidden_act": "quick_gelu"}, "vit_base_patch16_224", {"act_layer": "quick_gelu"}),
    ],
)
def test_architectures(tmp_path: Path, config: Any, architecture: str, options: dict[str, Any]) -> None:
    found = read_folder(folder_of(tmp_path / "m", config))
    assert found.architecture == architecture
    assert {key: found.options[key] for key in options} == options


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("[" * 100_000, "not valid JSON"),
        ("[]", "not a table of settings"),
        ('{"model_type": "vit", "hidden_size": NaN}', "not a number"),
        ({}, "model_type"),
        ({"model_type": ["vit"]}, "model_type"),
        ({"model_type": "swin"}, "'swin' is not covered"),
        ({"model_type": "siglip2"}, "NaFlex"),
        ({"model_type": "clip", "vision_config": [1]}, "'clip' is not covered"),
        (VIT | {"hidden_size": 10**30}, "hidden_size"),
        (VIT | {"hidden_size": "48"}, "hidden_size"),
        (VIT | {"hidden_size": 48.5}, "hidden_size"),
        (VIT | {"num_hidden_layers": 0}, "num_hidden_layers"),
        (VIT | {"num_hidden_layers": True}, "num_hidden_layers"),
        (VIT | {"num_attention_heads": 5}, "5 do not divide a width of 48"),
        (VIT | {"image_size": [32, 32, 32]}, "image_size"),
        (VIT | {"image_size": 10**9}, "image_size"),
        (VIT | {"num_channels": 1}, "num_channels"),
        (VIT | {"hidden_act": "../../etc"}, "hidden_act"),
        (VIT | {"layer_norm_eps": 0.1}, "layer_norm_eps"),
        (VIT | {"model_type": "beit", "use_absolute_position_embeddings": True}, "use_absolute_position_embeddings"),
        (VIT | {"model_type": "dinov3_vit", "use_gated_mlp": True}, "hidden_act"),
        (VIT | {"model_type": "dinov3_vit", "key_bias": True}, "key_bias"),
        (VIT | {"model_type": "dinov2", "use_swiglu_ffn": True, "mlp_ratio": 3}, "mlp_ratio"),
        ({"architecture": ["vit"]}, "architecture"),
        ({"architecture": "hf-hub:someone/model"}, "timm has none"),
        ({"architecture": "vit_tiny_patch16_224", "model_args": "x"}, "model_args"),
        ({"architecture": "vit_tiny_patch16_224", "pretrained_cfg": {"mean": [300, 1, 1]}}, "mean"),
    ],
)
def test_hostile_settings_are_told_in_a_sentence(tmp_path: Path, config: Any, said: str) -> None:
    folder = folder_of(tmp_path / "m", config)
    with pytest.raises(BadCheckpoint, match=said) as error:
        read_folder(folder)
    assert "config.json" in str(error.value)


def test_settings_that_only_timm_or_this_machine_refuses(tmp_path: Path) -> None:
    huge = VIT | {"hidden_size": 16384, "num_hidden_layers": 256, "num_attention_heads": 8, "intermediate_size": 131072}
    with pytest.raises(VitscopeError, match="GB for its weights"):
        resolve(str(folder_of(tmp_path / "huge", huge)))
    with pytest.raises(VitscopeError, match="does not divide into patches"):
        resolve(str(folder_of(tmp_path / "odd", VIT | {"image_size": 30})))
    pickled = {"architecture": "vit_tiny_patch16_224", "model_args": {"checkpoint_path": "/etc/passwd"}}
    with pytest.raises(VitscopeError, match="'checkpoint_path' does not shape a network"):
        resolve(str(folder_of(tmp_path / "timm", pickled)))


def test_a_folder_without_weights_or_without_settings(tmp_path: Path) -> None:
    with pytest.raises(BadCheckpoint, match=r"no weights: looked for model\.safetensors"):
        read_folder(folder_of(tmp_path / "m", VIT, weights=False))
    with pytest.raises(BadCheckpoint, match=r"a folder without config\.json"):
        resolve(str(tmp_path))


@pytest.mark.parametrize("name", ["../outside.safetensors", "/etc/passwd", "a/b.safetensors", 3, "", None])
def test_an_index_leads_nowhere_else(tmp_path: Path, name: Any) -> None:
    folder = folder_of(tmp_path / "m", VIT, weights=False)
    save_file({"x": torch.ones(1)}, tmp_path / "outside.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": name}}))
    with pytest.raises(BadCheckpoint, match="outside its own folder"):
        resolve(str(folder))


def timm_folder(path: Path, **config: Any) -> Any:
    torch.manual_seed(2)
    module = timm.create_model("vit_tiny_patch16_224", num_classes=0, depth=2, img_size=64)
    settings = {"architecture": "vit_tiny_patch16_224", "model_args": {"depth": 2, "img_size": 64}, **config}
    folder_of(path, settings, weights=False)
    save_file(module.state_dict(), path / "model.safetensors")
    return module


def test_a_folder_of_timms(tmp_path: Path) -> None:
    trained = {"tag": "augreg_in21k", "mean": [0.1, 0.2, 0.3], "std": [0.4, 0.5, 0.6]}
    module = timm_folder(tmp_path / "mine", pretrained_cfg=trained)
    backbone: Any = load_model(str(tmp_path / "mine"))
    assert torch.equal(backbone.module.blocks[1].mlp.fc1.weight, module.blocks[1].mlp.fc1.weight)
    assert (backbone.title, backbone.depth) == ("mine", 2)
    assert (backbone.preprocessing.mean, backbone.preprocessing.std) == ((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    assert resolve(str(tmp_path / "mine")).architecture == "vit_tiny_patch16_224.augreg_in21k"
    twin = resolve(f"random:{tmp_path / 'mine'}")
    assert (twin.title, twin.shape.depth, twin.preprocessing.mean) == ("Untrained mine", 2, (0.1, 0.2, 0.3))


def test_a_preprocessor_says_mean_and_std(tmp_path: Path) -> None:
    timm_folder(tmp_path / "mine")
    (tmp_path / "mine/preprocessor_config.json").write_text('{"image_mean": [0.3, 0.3, 0.3], "image_std": [1, 1, 1]}')
    assert load_model(str(tmp_path / "mine")).preprocessing.mean == (0.3, 0.3, 0.3)


def test_a_changed_part_is_another_model(tmp_path: Path) -> None:
    """An index has the same bytes whatever its parts hold."""
    module = timm_folder(tmp_path / "mine")
    (tmp_path / "mine/model.safetensors").rename(tmp_path / "mine/part.safetensors")
    places = dict.fromkeys(module.state_dict(), "part.safetensors")
    (tmp_path / "mine/model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    first = resolve(str(tmp_path / "mine")).digest
    assert resolve(str(tmp_path / "mine")).digest == first
    state = {key: value + 1 for key, value in module.state_dict().items()}
    save_file(state, tmp_path / "mine/part.safetensors")
    assert resolve(str(tmp_path / "mine")).digest != first
    (tmp_path / "mine/part.safetensors").unlink()
    with pytest.raises(VitscopeError, match=r"no weights file .*part\.safetensors"):
        resolve(str(tmp_path / "mine"))
