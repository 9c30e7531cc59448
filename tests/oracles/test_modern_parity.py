"""The networks that came after the study, compared as `test_transformers_parity` does; and folders of all.

Official files are written in the names of the projects' own model code: facebookresearch/dinov3, apple/ml-aim,
facebookresearch/ijepa, google-research/big_vision.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor

from tests.oracles.test_transformers_parity import (
    CASES,
    DEPTH,
    HEADS,
    MLP,
    PIXELS,
    SHAPE,
    TEXT,
    TOLERANCE,
    WIDTH,
    Case,
    Recorder,
    State,
    build,
    check_parity,
    compare,
    full,
    plain_vit,
    run_theirs,
)
from tests.support.releases import since
from vitscope.models.folder import DEFAULTS, TYPES, VitConfig
from vitscope.models.spec import resolve
from vitscope.models.trace import trace

pytestmark = since("transformers", 5)  # older ones do not have all of these networks


def both(hf: State, theirs: str, ours: str, *kinds: str) -> State:
    return {f"{ours}.{kind}": hf[f"{theirs}.{kind}"] for kind in kinds or ("weight", "bias")}


def dinov3_file(hf: State) -> Any:
    """As dinov3_vit*_pretrain_*.pth: a bias on the keys, which the mask beside it puts out of force."""
    head = WIDTH // HEADS
    out = {
        "cls_token": hf["embeddings.cls_token"],
        "storage_tokens": hf["embeddings.register_tokens"],
        "mask_token": hf["embeddings.mask_token"][0],
        "rope_embed.periods": 100.0 ** (2 * torch.arange(head // 4) / (head // 2)),
    }
    out |= both(hf, "embeddings.patch_embeddings", "patch_embed.proj") | both(hf, "norm", "norm")
    for i in range(DEPTH):
        layer, block = f"layer.{i}.", f"blocks.{i}."
        attention = f"{layer}attention."
        out[f"{block}attn.qkv.weight"] = torch.cat([hf[f"{attention}{name}_proj.weight"] for name in "qkv"])
        keys = torch.randn(WIDTH)
        biases = [hf[f"{attention}q_proj.bias"], keys, hf[f"{attention}v_proj.bias"]]
        out[f"{block}attn.qkv.bias"] = torch.cat(biases)
        out[f"{block}attn.qkv.bias_mask"] = torch.cat([torch.ones(WIDTH), torch.zeros(WIDTH), torch.ones(WIDTH)])
        out |= both(hf, f"{attention}o_proj", f"{block}attn.proj")
        for part in (1, 2):
            out |= both(hf, f"{layer}norm{part}", f"{block}norm{part}")
            out[f"{block}ls{part}.gamma"] = hf[f"{layer}layer_scale{part}.lambda1"]
        gated = f"{layer}mlp.gate_proj.weight" in hf
        names = {"gate_proj": "w1", "up_proj": "w2", "down_proj": "w3"}
        for theirs, ours in (names if gated else {"up_proj": "fc1", "down_proj": "fc2"}).items():
            out |= both(hf, f"{layer}mlp.{theirs}", f"{block}mlp.{ours}")
    return out


def aimv2_file(hf: State) -> Any:
    """As apple/aimv2-*: model.safetensors of the project's own code."""
    hf = {key.removeprefix("vision_model."): value for key, value in hf.items() if not key.startswith("text_model.")}
    out = both(hf, "embeddings.patch_embed", "preprocessor.patchifier.proj")
    out["preprocessor.patchifier.norm.weight"] = hf["embeddings.rms_norm.weight"]
    out["preprocessor.pos_embed"] = hf["embeddings.position_embedding.weight"].unsqueeze(0)
    out["trunk.post_trunk_norm.weight"] = hf["rms_norm.weight"]
    for i in range(DEPTH):
        layer, block = f"encoder.layers.{i}.", f"trunk.blocks.{i}."
        stacked = [hf[f"{layer}attention.{name}_proj.weight"] for name in "qkv"]
        out[f"{block}attn.qkv.weight"] = torch.cat(stacked)
        names = {"attention.out_proj": "attn.proj", "rms_norm1": "norm_1", "rms_norm2": "norm_2"}
        names |= {"ffn.gate_proj": "mlp.fc1", "ffn.up_proj": "mlp.fc3", "ffn.down_proj": "mlp.fc2"}
        for theirs, ours in names.items():
            out |= both(hf, layer + theirs, block + ours, "weight")
    return out


def ijepa_file(hf: State) -> Any:
    """As IN1K-vit.h.14-300e.pth.tar: the target encoder is what is evaluated."""
    target = {f"module.{key}": value for key, value in plain_vit(hf | {"embeddings.cls_token": torch.zeros(1)}).items()}
    del target["module.cls_token"]
    predictor = {"module.predictor_embed.weight": torch.randn(4, WIDTH)}
    online = {key: torch.randn_like(value) for key, value in target.items()}
    state = {"encoder": online, "predictor": predictor, "target_encoder": target}
    return {**state, "opt": {"state": {}}, "scaler": None, "epoch": 300, "loss": 0.1, "lr": 1e-3}


DINOV3 = "vit_base_patch16_dinov3_qkvb"
GATED = {"use_gated_mlp": True, "hidden_act": "silu"}
dinov3 = partial(build, "DINOv3ViTModel", "DINOv3ViTConfig", 1e-5, num_register_tokens=4, **MLP)
AIMV2_SHAPE: dict[str, Any] = {**SHAPE, **MLP}
SIGLIP_SHAPE: dict[str, Any] = {**SHAPE, **MLP}  # with the library's own activation
SIGLIP_TEXT: dict[str, Any] = {**TEXT, "hidden_size": WIDTH, "num_attention_heads": 3}
TANH = {"act_layer": "gelu_tanh"}

MODERN = [
    Case("dinov3", dinov3, DINOV3, {}, "", dinov3_file, {}, ("dinov3", "dinov3")),
    Case(
        "dinov3 plus",
        partial(dinov3, **GATED),
        DINOV3,
        {"swiglu_mlp": True, "swiglu_align_to": 8},
        "",
        dinov3_file,
        {},
        ("dinov3", "dinov3"),
    ),
    Case(
        "aimv2",
        partial(build, "Aimv2VisionModel", "Aimv2VisionConfig", use_head=False, **MLP),
        "aimv2_large_patch14_224",
        {"mlp_ratio": 4.0},
        "",
        aimv2_file,
        {},
        ("aimv2", "aimv2"),
    ),
    Case(
        "aimv2, both towers",
        partial(full, "Aimv2Model", "Aimv2Config", AIMV2_SHAPE, TEXT),
        "aimv2_large_patch14_224",
        {"mlp_ratio": 4.0},
        "vision_model",
        aimv2_file,
        {},
        ("aimv2", "aimv2"),
    ),
    Case(
        "ijepa",
        partial(build, "IJepaModel", "IJepaConfig", **MLP),
        "vit_huge_patch14_gap_224",
        {"fc_norm": False},
        "",
        ijepa_file,
        {},
        ("ijepa", "ijepa"),
    ),
    Case(
        "siglip 2, fixed size",
        partial(build, "SiglipVisionModel", "SiglipVisionConfig", **MLP),
        "vit_base_patch16_siglip_224",
        TANH,
        families=("siglip", "siglip"),
    ),
    Case(
        "siglip 2, both towers",
        partial(full, "SiglipModel", "SiglipConfig", SIGLIP_SHAPE, SIGLIP_TEXT),
        "vit_base_patch16_siglip_224",
        TANH,
        "vision_model",
        families=("siglip", "siglip"),
    ),
]


@pytest.mark.parametrize("case", MODERN, ids=lambda case: case.name)
def test_parity(case: Case, tmp_path: Path) -> None:
    check_parity(case, tmp_path)


@pytest.mark.parametrize("stacked", [False, True])
def test_siglip_in_flax(tmp_path: Path, stacked: bool) -> None:
    """As siglip2_*.npz: both towers in Flax's names and axes; the largest stack their blocks."""
    torch.manual_seed(5)
    images = torch.randn(2, 3, PIXELS, PIXELS)
    case = next(case for case in MODERN if case.name == "siglip 2, fixed size")
    theirs = run_theirs(case, images)
    hf = {key.removeprefix("vision_model."): value for key, value in theirs.model.state_dict().items()}
    head = WIDTH // HEADS

    def dense(key: str) -> dict[str, Tensor]:
        return {"kernel": hf[f"{key}.weight"].T, "bias": hf[f"{key}.bias"]}

    def norm(key: str) -> dict[str, Tensor]:
        return {"scale": hf[f"{key}.weight"], "bias": hf[f"{key}.bias"]}

    def attention(
        query: tuple[Tensor, Tensor], key: tuple[Tensor, Tensor], value: tuple[Tensor, Tensor], out: str
    ) -> Any:
        rows = {"query": query, "key": key, "value": value}
        tree = {
            n: {"kernel": w.T.reshape(WIDTH, HEADS, head), "bias": b.reshape(HEADS, head)} for n, (w, b) in rows.items()
        }
        tree["out"] = {"kernel": hf[f"{out}.weight"].T.reshape(HEADS, head, WIDTH), "bias": hf[f"{out}.bias"]}
        return tree

    def block(i: int) -> Any:
        layer = f"encoder.layers.{i}."
        q, k, v = ((hf[f"{layer}self_attn.{n}_proj.weight"], hf[f"{layer}self_attn.{n}_proj.bias"]) for n in "qkv")
        return {
            "LayerNorm_0": norm(layer + "layer_norm1"),
            "LayerNorm_1": norm(layer + "layer_norm2"),
            "MultiHeadDotProductAttention_0": attention(q, k, v, layer + "self_attn.out_proj"),
            "MlpBlock_0": {"Dense_0": dense(layer + "mlp.fc1"), "Dense_1": dense(layer + "mlp.fc2")},
        }

    pooled = list(
        zip(hf["head.attention.in_proj_weight"].chunk(3), hf["head.attention.in_proj_bias"].chunk(3), strict=True)
    )
    tower: dict[str, Any] = {
        "embedding": {
            "kernel": hf["embeddings.patch_embedding.weight"].permute(2, 3, 1, 0),
            "bias": hf["embeddings.patch_embedding.bias"],
        },
        "pos_embedding": hf["embeddings.position_embedding.weight"].unsqueeze(0),
        "Transformer": {"encoder_norm": norm("post_layernorm")},
        "MAPHead_0": {
            "probe": hf["head.probe"],
            "MultiHeadDotProductAttention_0": attention(pooled[0], pooled[1], pooled[2], "head.attention.out_proj"),
            "LayerNorm_0": norm("head.layernorm"),
            "MlpBlock_0": {"Dense_0": dense("head.mlp.fc1"), "Dense_1": dense("head.mlp.fc2")},
        },
    }
    blocks = [flat(block(i), "") for i in range(DEPTH)]
    arrays = flat(tower, "params/img/")
    for key in blocks[0]:
        if stacked:
            arrays[f"params/img/Transformer/encoderblock/{key}"] = np.stack([one[key] for one in blocks])
        else:
            arrays |= {f"params/img/Transformer/encoderblock_{i}/{key}": one[key] for i, one in enumerate(blocks)}
    text = {"params/txt/Embed_0/embedding": np.zeros((3, 4), np.float32)}
    numbers = {"params/t": np.ones(1, np.float32), "params/b": np.ones(1, np.float32)}
    np.savez(tmp_path / "siglip2.npz", **arrays, **text, **numbers)
    compare(case, theirs, images, tmp_path / "siglip2.npz", "siglip")


def flat(tree: Any, prefix: str) -> dict[str, Any]:
    if isinstance(tree, Tensor):
        return {prefix.removesuffix("/"): tree.contiguous().numpy()}
    return {key: value for name, inner in tree.items() for key, value in flat(inner, f"{prefix}{name}/").items()}


@pytest.mark.parametrize("case", [*CASES, *MODERN], ids=lambda case: case.name)
@pytest.mark.parametrize("shards", [False, True])
def test_a_folder_loads_as_it_is(case: Case, shards: bool, tmp_path: Path) -> None:
    """config.json alone gives the architecture, down to the number of heads and the activation."""
    torch.manual_seed(len(case.name))
    images = torch.randn(2, 3, PIXELS, PIXELS)
    theirs = run_theirs(case, images)
    folder = tmp_path / "mine"
    theirs.model.save_pretrained(folder, max_shard_size="50KB" if shards else "1GB")  # type: ignore[operator]
    assert (folder / "model.safetensors.index.json").is_file() == shards
    backbone = resolve(str(folder)).load("cpu")
    assert (backbone.title, backbone.heads, backbone.depth) == ("mine", HEADS, DEPTH)
    seen = Recorder()
    trace(backbone.module, images, [seen], layout=backbone.layout)
    for layer in range(DEPTH):
        assert (seen.blocks[layer] - theirs.blocks[layer]).abs().max() < TOLERANCE, layer
        assert (seen.attentions[layer] - theirs.attentions[layer]).abs().max() < TOLERANCE, layer


def test_defaults_are_the_librarys() -> None:
    """Configurations of two towers leave out what the library would assume."""
    for kind in TYPES:
        theirs = transformers.CONFIG_MAPPING[kind]()
        ours = VitConfig.model_validate(DEFAULTS.get(kind, {}))
        for name in VitConfig.model_fields:
            if hasattr(theirs, name):
                assert getattr(ours, name) == getattr(theirs, name), (kind, name)
