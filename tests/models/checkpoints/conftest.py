"""Small networks with random weights, and their weights written exactly as the official files name them.

The naming here is spelled out from the projects' own model code and shares nothing with the code under test.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import vitscope  # noqa: F401  (before timm: see vitscope._torchvision)

# isort: split
import numpy as np
import pytest
import timm
import torch
from torch import Tensor, nn

WIDTH, DEPTH, HEADS, PATCH, PIXELS = 48, 3, 3, 8, 32
State = dict[str, Tensor]


def tiny(architecture: str, **options: Any) -> nn.Module:
    """A timm architecture of 3 blocks, width 48, 3 heads, 4 x 4 patches of 8 pixels, without classifier."""
    shape = {"embed_dim": WIDTH, "depth": DEPTH, "num_heads": HEADS, "img_size": PIXELS, "patch_size": PATCH}
    return timm.create_model(architecture, num_classes=0, **{**shape, **options}).eval()


def randomised(module: nn.Module, seed: int = 0) -> nn.Module:
    """Every weight drawn afresh, so that no zero bias or unit norm can hide a mistake."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return module


def linear(prefix: str, rows: int, columns: int) -> State:
    return {f"{prefix}.weight": torch.randn(rows, columns), f"{prefix}.bias": torch.randn(rows)}


def dino_head(prefix: str) -> State:
    """DINO's projection head: three layers and a weight-normalised last one."""
    layers = [
        linear(f"{prefix}mlp.{i}", rows, columns) for i, rows, columns in ((0, 20, WIDTH), (2, 20, 20), (4, 8, 20))
    ]
    last = {
        f"{prefix}last_layer.weight_g": torch.ones(30, 1),
        f"{prefix}last_layer.weight_v": torch.randn(30, 8),
    }
    return {**layers[0], **layers[1], **layers[2], **last}


def dino_training_file(backbone: State) -> dict[str, Any]:
    """As main_dino.py saves it: the student wrapped for parallel training, the teacher not; args with a path in it."""
    student = {f"module.backbone.{k}": torch.randn_like(v) for k, v in backbone.items()}
    teacher = {f"backbone.{k}": v for k, v in backbone.items()}
    learning_rate = np.float64(1e-3)  # main_dino.py assigns from a NumPy schedule
    return {
        "student": {**student, **dino_head("module.head.")},
        "teacher": {**teacher, **dino_head("head.")},
        "optimizer": {
            "state": {0: {"step": 3, "exp_avg": torch.ones(2)}},
            "param_groups": [{"lr": learning_rate}],
        },
        "epoch": 100,
        "args": argparse.Namespace(arch="vit_small", output_dir=Path("/checkpoints/dino")),
        "dino_loss": {"center": torch.zeros(1, 30)},
        "fp16_scaler": {"scale": 65536.0},
    }


def moco_training_file(backbone: State) -> dict[str, Any]:
    """As main_moco.py saves it: base and momentum encoder with three-layer heads, and a predictor."""

    def head(prefix: str) -> State:
        layers: State = {}
        for i in (0, 3, 6):
            layers[f"{prefix}.{i}.weight"] = torch.randn(16, 16)
            norm = {
                "running_mean": torch.zeros(16),
                "running_var": torch.ones(16),
                "num_batches_tracked": torch.tensor(5),
            }
            affine = {"weight": torch.ones(16), "bias": torch.zeros(16)} if i < 6 else {}
            layers.update({f"{prefix}.{i + 1}.{k}": v for k, v in {**affine, **norm}.items()})
        return layers

    state = {f"module.base_encoder.{k}": v for k, v in backbone.items()} | head("module.base_encoder.head")
    state |= {f"module.momentum_encoder.{k}": torch.randn_like(v) for k, v in backbone.items()}
    state |= head("module.momentum_encoder.head") | head("module.predictor")
    return {
        "epoch": 300,
        "arch": "vit_small",
        "state_dict": state,
        "optimizer": {"state": {}},
        "scaler": {"scale": 1.0},
    }


def mae_training_file(encoder: State) -> dict[str, Any]:
    """As main_pretrain.py saves it, with a one-block decoder of width 16."""
    decoder: State = {
        "mask_token": torch.randn(1, 1, 16),
        "decoder_pos_embed": torch.randn(1, 17, 16),
        **linear("decoder_embed", 16, WIDTH),
        **linear("decoder_blocks.0.norm1", 16, 1),
        **linear("decoder_blocks.0.attn.qkv", 48, 16),
        **linear("decoder_blocks.0.attn.proj", 16, 16),
        **linear("decoder_blocks.0.norm2", 16, 1),
        **linear("decoder_blocks.0.mlp.fc1", 64, 16),
        **linear("decoder_blocks.0.mlp.fc2", 16, 64),
        **linear("decoder_norm", 16, 1),
        **linear("decoder_pred", PATCH * PATCH * 3, 16),
    }
    return {
        "model": {**encoder, **decoder},
        "epoch": 800,
        "args": argparse.Namespace(model="mae_vit_base_patch16"),
    }


def beit_pretraining_file(state: State) -> dict[str, Any]:
    """As the pt22k files: one relative-position table for all blocks, the norm before pooling, and a codebook head."""
    out = {k.replace("fc_norm.", "norm."): v for k, v in state.items() if "relative_position_bias_table" not in k}
    out["rel_pos_bias.relative_position_bias_table"] = state["blocks.0.attn.relative_position_bias_table"]
    out["rel_pos_bias.relative_position_index"] = torch.zeros(17, 17, dtype=torch.int64)
    out["mask_token"] = torch.randn(1, 1, WIDTH)
    return {"model": {**out, **linear("lm_head", 40, WIDTH)}}


def dinov2_official(state: State) -> State:
    """As dinov2_vit*_pretrain.pth: the class token's position is the first entry of the position embedding."""
    out = {k: v for k, v in state.items() if k != "reg_token"}
    if "reg_token" in state:
        first = torch.randn(1, 1, state["cls_token"].shape[-1])
        out["cls_token"] = state["cls_token"] - first
        out["pos_embed"] = torch.cat([first, state["pos_embed"]], dim=1)
        out["register_tokens"] = state["reg_token"]
    out["mask_token"] = torch.randn(1, state["cls_token"].shape[-1])
    return out


def clip_image_tower(state: State) -> State:
    """The image tower as clip/model.py names it, without the leading `visual.`."""
    out: State = {
        "class_embedding": state["cls_token"][0, 0],
        "positional_embedding": state["pos_embed"][0],
        "proj": torch.randn(state["cls_token"].shape[-1], 20),
        "conv1.weight": state["patch_embed.proj.weight"],
        "ln_pre.weight": state["norm_pre.weight"],
        "ln_pre.bias": state["norm_pre.bias"],
        "ln_post.weight": state["norm.weight"],
        "ln_post.bias": state["norm.bias"],
    }
    names = {
        "attn.in_proj_weight": "attn.qkv.weight",
        "attn.in_proj_bias": "attn.qkv.bias",
        "attn.out_proj.weight": "attn.proj.weight",
        "attn.out_proj.bias": "attn.proj.bias",
        "ln_1.weight": "norm1.weight",
        "ln_1.bias": "norm1.bias",
        "mlp.c_fc.weight": "mlp.fc1.weight",
        "mlp.c_fc.bias": "mlp.fc1.bias",
        "mlp.c_proj.weight": "mlp.fc2.weight",
        "mlp.c_proj.bias": "mlp.fc2.bias",
        "ln_2.weight": "norm2.weight",
        "ln_2.bias": "norm2.bias",
    }
    blocks = {int(k.split(".")[1]) for k in state if k.startswith("blocks.")}
    for block in blocks:
        out |= {f"transformer.resblocks.{block}.{a}": state[f"blocks.{block}.{b}"] for a, b in names.items()}
    return out


def clip_full(state: State, *, archive: bool) -> State:
    """Both towers; `archive` adds the three numbers that only OpenAI's own files carry."""
    out = {f"visual.{k}": v for k, v in clip_image_tower(state).items()}
    out |= {
        "positional_embedding": torch.randn(7, 16),
        "text_projection": torch.randn(16, 20),
        "logit_scale": torch.tensor(4.6),
        "token_embedding.weight": torch.randn(30, 16),
        "ln_final.weight": torch.ones(16),
        "ln_final.bias": torch.zeros(16),
        "transformer.resblocks.0.attn.in_proj_weight": torch.randn(48, 16),
        "transformer.resblocks.0.ln_1.weight": torch.ones(16),
    }
    numbers = {"input_resolution": PIXELS, "context_length": 7, "vocab_size": 30}
    return out | ({k: torch.tensor(v) for k, v in numbers.items()} if archive else {})


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture
def official() -> SimpleNamespace:
    """Everything above."""
    functions: list[Callable[..., Any]] = [
        tiny,
        randomised,
        linear,
        dino_head,
        dino_training_file,
        moco_training_file,
        mae_training_file,
        beit_pretraining_file,
        dinov2_official,
        clip_image_tower,
        clip_full,
    ]
    return SimpleNamespace(**{function.__name__: function for function in functions})
