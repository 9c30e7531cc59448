"""The same random weights here and in `transformers`: equal tokens after every block, equal attention in every head.

Each network is built by `transformers` from a configuration, and every weight in it drawn at random. Its weights are
written (1) as the official project's file, through the naming spelled out below, (2) as the library's own file, and
(3) under the names the library uses in memory. Each file is loaded into timm by the code under test.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import vitscope  # noqa: F401  (before timm: see vitscope._torchvision)

# isort: split
import pytest
import timm
import torch
import transformers
from safetensors.torch import load_file
from torch import Tensor, nn

from vitscope.core.observer import Observer
from vitscope.models.checkpoints import load_checkpoint
from vitscope.models.shape import layout_of
from vitscope.models.trace import trace

TOLERANCE = 1e-4
# Heads of width 12: with 16 the attention scale is a power of two and both sides agree to the last bit, which would
# look the same as comparing a network with itself.
WIDTH, DEPTH, HEADS, PATCH, PIXELS, HIDDEN = 36, 3, 3, 8, 32, 144
SHAPE: dict[str, Any] = {
    "hidden_size": WIDTH,
    "num_hidden_layers": DEPTH,
    "num_attention_heads": HEADS,
    "image_size": PIXELS,
    "patch_size": PATCH,
    "attn_implementation": "eager",
}
MLP = {"intermediate_size": HIDDEN}
State = dict[str, Tensor]


def build(model: str, config: str, /, layer_norm_eps: float = 1e-6, **options: Any) -> nn.Module:
    """The official projects' networks use 1e-6 in their norms, CLIP's 1e-5; the library's defaults differ."""
    settings = getattr(transformers, config)(**{**SHAPE, "layer_norm_eps": layer_norm_eps, **options})
    return getattr(transformers, model)(settings)


# -- official naming, from the library's published names ------------------------------------------------------------


def plain_vit(hf: State) -> State:
    """google-research ViT / DINO / MAE encoder / DeiT naming."""
    out = {
        "cls_token": hf["embeddings.cls_token"],
        "patch_embed.proj.weight": hf["embeddings.patch_embeddings.projection.weight"],
        "patch_embed.proj.bias": hf["embeddings.patch_embeddings.projection.bias"],
    }
    if "embeddings.position_embeddings" in hf:
        out["pos_embed"] = hf["embeddings.position_embeddings"]
    for kind in ("weight", "bias"):
        if f"layernorm.{kind}" in hf:
            out[f"norm.{kind}"] = hf[f"layernorm.{kind}"]
    for i in range(DEPTH):
        layer, block = f"encoder.layer.{i}.", f"blocks.{i}."
        q, k, v = (f"{layer}attention.attention.{name}." for name in ("query", "key", "value"))
        out[f"{block}attn.qkv.weight"] = torch.cat([hf[q + "weight"], hf[k + "weight"], hf[v + "weight"]])
        if k + "bias" in hf:
            out[f"{block}attn.qkv.bias"] = torch.cat([hf[q + "bias"], hf[k + "bias"], hf[v + "bias"]])
        else:
            out[f"{block}attn.q_bias"], out[f"{block}attn.v_bias"] = hf[q + "bias"], hf[v + "bias"]
        pairs = {
            "attention.output.dense": "attn.proj",
            "layernorm_before": "norm1",
            "layernorm_after": "norm2",
        }
        pairs |= {"intermediate.dense": "mlp.fc1", "output.dense": "mlp.fc2"}
        pairs |= {name: name for name in ("norm1", "norm2", "mlp.fc1", "mlp.fc2")}
        for theirs, ours in pairs.items():
            for kind in ("weight", "bias"):
                if f"{layer}{theirs}.{kind}" in hf:
                    out[f"{block}{ours}.{kind}"] = hf[f"{layer}{theirs}.{kind}"]
    return out


def within(hf: State, prefix: str) -> State:
    return {key.removeprefix(prefix): value for key, value in hf.items() if key.startswith(prefix)}


def dino_file(hf: State) -> Any:
    teacher = {f"backbone.{key}": value for key, value in plain_vit(hf).items()}
    student = {f"module.{key}": torch.randn_like(value) for key, value in teacher.items()}
    heads = {"head.mlp.0.weight": torch.randn(4, WIDTH), "head.last_layer.weight_v": torch.randn(4, 4)}
    settings = argparse.Namespace(arch="vit_small", output_dir=Path("/out"))
    return {"teacher": teacher | heads, "student": student, "args": settings, "epoch": 1}


def deit_file(hf: State) -> Any:
    hf = within(hf, "deit.")
    heads = {f"{head}.{kind}": torch.randn(5) for head in ("head", "head_dist") for kind in ("weight", "bias")}
    return {"model": plain_vit(hf) | {"dist_token": hf["embeddings.distillation_token"]} | heads}


def mae_file(hf: State) -> Any:
    decoder = {"decoder_embed.weight": torch.randn(4, WIDTH), "mask_token": torch.randn(1, 1, 4)}
    return {"model": plain_vit(within(hf, "vit.")) | decoder}


def beit_file(hf: State) -> Any:
    out = plain_vit(hf)
    out["mask_token"] = hf["embeddings.mask_token"]
    for i in range(DEPTH):
        for part in (1, 2):
            out[f"blocks.{i}.gamma_{part}"] = hf[f"encoder.layer.{i}.lambda_{part}"]
    table = hf["encoder.relative_position_bias.relative_position_bias_table"]
    out["rel_pos_bias.relative_position_bias_table"] = table
    out["rel_pos_bias.relative_position_index"] = torch.zeros(17, 17, dtype=torch.int64)
    out["lm_head.weight"] = torch.randn(9, WIDTH)
    return {"model": out}


def beit_fine_tuned_file(hf: State) -> Any:
    hf = within(hf, "beit.")
    out = plain_vit(hf)
    for i in range(DEPTH):
        layer = f"encoder.layer.{i}."
        table = hf[f"{layer}attention.attention.relative_position_bias.relative_position_bias_table"]
        out[f"blocks.{i}.attn.relative_position_bias_table"] = table
        out[f"blocks.{i}.attn.relative_position_index"] = torch.zeros(17, 17, dtype=torch.int64)
        out[f"blocks.{i}.gamma_1"], out[f"blocks.{i}.gamma_2"] = (
            hf[f"{layer}lambda_1"],
            hf[f"{layer}lambda_2"],
        )
    out["fc_norm.weight"], out["fc_norm.bias"] = hf["pooler.layernorm.weight"], hf["pooler.layernorm.bias"]
    return {"model": out}


def dinov2_file(hf: State) -> Any:
    out = plain_vit(hf)
    out["mask_token"] = hf["embeddings.mask_token"]
    if "embeddings.register_tokens" in hf:
        out["register_tokens"] = hf["embeddings.register_tokens"]
    for i in range(DEPTH):
        layer = f"encoder.layer.{i}."
        for part in (1, 2):
            out[f"blocks.{i}.ls{part}.gamma"] = hf[f"{layer}layer_scale{part}.lambda1"]
        if f"{layer}mlp.weights_in.weight" in hf:
            for kind in ("weight", "bias"):
                out[f"blocks.{i}.mlp.w12.{kind}"] = hf[f"{layer}mlp.weights_in.{kind}"]
                out[f"blocks.{i}.mlp.w3.{kind}"] = hf[f"{layer}mlp.weights_out.{kind}"]
    return out


def clip_file(hf: State) -> Any:
    hf = {key.removeprefix("vision_model."): value for key, value in hf.items() if not key.startswith("text_model.")}
    out = {
        "visual.class_embedding": hf["embeddings.class_embedding"],
        "visual.positional_embedding": hf["embeddings.position_embedding.weight"],
        "visual.conv1.weight": hf["embeddings.patch_embedding.weight"],
        "visual.proj": torch.randn(WIDTH, 5),
        "logit_scale": torch.tensor(1.0),
        "token_embedding.weight": torch.randn(5, 4),
        "transformer.resblocks.0.ln_1.weight": torch.randn(4),
    }
    for kind in ("weight", "bias"):
        out[f"visual.ln_pre.{kind}"] = hf[f"pre_layrnorm.{kind}"]
        out[f"visual.ln_post.{kind}"] = hf[f"post_layernorm.{kind}"]
        for i in range(DEPTH):
            layer, block = f"encoder.layers.{i}.", f"visual.transformer.resblocks.{i}."
            stacked = [hf[f"{layer}self_attn.{name}_proj.{kind}"] for name in "qkv"]
            out[f"{block}attn.in_proj_{kind}"] = torch.cat(stacked)
            out[f"{block}attn.out_proj.{kind}"] = hf[f"{layer}self_attn.out_proj.{kind}"]
            out[f"{block}ln_1.{kind}"] = hf[f"{layer}layer_norm1.{kind}"]
            out[f"{block}ln_2.{kind}"] = hf[f"{layer}layer_norm2.{kind}"]
            out[f"{block}mlp.c_fc.{kind}"] = hf[f"{layer}mlp.fc1.{kind}"]
            out[f"{block}mlp.c_proj.{kind}"] = hf[f"{layer}mlp.fc2.{kind}"]
    return out


# -- the families ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One network: how the library builds it, which of its modules is the encoder, and its timm counterpart."""

    name: str
    build: Callable[[], nn.Module]
    architecture: str
    options: dict[str, Any] = field(default_factory=dict)  # of timm
    tower: str = ""  # path of the image network in the library's model
    official: Callable[[State], Any] | None = None
    call: dict[str, Any] = field(default_factory=dict)  # of the library's forward pass
    families: tuple[str, str] = ("vit", "vit")  # as recognised: the official file, the library's
    pooled: bool = False  # the library applies the last norm to the class token only


TEXT = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "vocab_size": 20,
}
TEXT |= {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
NO_MASK = {"noise": torch.arange((PIXELS // PATCH) ** 2, dtype=torch.float32).expand(2, -1)}  # keeps the order
CLIP_SHAPE: dict[str, Any] = {**SHAPE, **MLP, "layer_norm_eps": 1e-5, "hidden_act": "quick_gelu"}
BEIT: dict[str, Any] = {
    **MLP,
    "use_mask_token": True,
    "use_shared_relative_position_bias": True,
    "use_mean_pooling": False,
}
QUICK = "vit_base_patch16_clip_quickgelu_224"
DINOV2 = ("dinov2", "dinov2")


def full(model: str, config: str, vision: dict[str, Any], text: dict[str, Any]) -> nn.Module:
    settings = getattr(transformers, config)(vision_config=vision, text_config=text, attn_implementation="eager")
    return getattr(transformers, model)(settings)


CASES = [
    Case("vit", partial(build, "ViTModel", "ViTConfig", **MLP), "vit_base_patch16_224", official=plain_vit),
    Case(
        "dino",
        partial(build, "ViTModel", "ViTConfig", **MLP),
        "vit_base_patch16_224",
        {},
        "",
        dino_file,
        {},
        ("dino", "vit"),
    ),
    Case(
        "deit",
        partial(build, "DeiTForImageClassificationWithTeacher", "DeiTConfig", **MLP),
        "deit_base_distilled_patch16_224",
        tower="deit",
        official=deit_file,
        families=("deit", "deit"),
    ),
    Case(
        "mae",
        partial(
            build,
            "ViTMAEForPreTraining",
            "ViTMAEConfig",
            mask_ratio=0.0,
            decoder_hidden_size=16,
            decoder_num_hidden_layers=1,
            decoder_num_attention_heads=2,
            decoder_intermediate_size=16,
            **MLP,
        ),
        "vit_base_patch16_224",
        {},
        "vit",
        mae_file,
        NO_MASK,
        ("mae", "mae"),
    ),
    Case(
        "beit",
        partial(build, "BeitModel", "BeitConfig", **BEIT),
        "beit_base_patch16_224",
        {"global_pool": "token"},
        "",
        beit_file,
        {},
        ("beit", "beit"),
    ),
    Case(
        "beit, fine-tuned",
        partial(build, "BeitForImageClassification", "BeitConfig", use_relative_position_bias=True, **MLP),
        "beit_base_patch16_224",
        {},
        "beit",
        beit_fine_tuned_file,
        {},
        ("beit", "beit"),
    ),
    Case(
        "clip",
        partial(build, "CLIPVisionModel", "CLIPVisionConfig", **CLIP_SHAPE),
        QUICK,
        {},
        "",
        clip_file,
        {},
        ("clip", "clip"),
        pooled=True,
    ),
    Case(
        "clip, both towers",
        partial(full, "CLIPModel", "CLIPConfig", CLIP_SHAPE, TEXT),
        QUICK,
        {},
        "vision_model",
        clip_file,
        {},
        ("clip", "clip"),
        pooled=True,
    ),
    Case(
        "dinov2",
        partial(build, "Dinov2Model", "Dinov2Config"),
        "vit_base_patch14_dinov2",
        {},
        "",
        dinov2_file,
        {},
        DINOV2,
    ),
    Case(
        "dinov2 with registers",
        partial(build, "Dinov2WithRegistersModel", "Dinov2WithRegistersConfig", num_register_tokens=4),
        "vit_base_patch14_reg4_dinov2",
        {},
        "",
        dinov2_file,
        {},
        DINOV2,
    ),
    Case(
        "dinov2 giant",
        partial(build, "Dinov2Model", "Dinov2Config", use_swiglu_ffn=True),
        "vit_giant_patch14_dinov2",
        {},
        "",
        dinov2_file,
        {},
        DINOV2,
    ),
    Case(
        "siglip, both towers",
        partial(
            full,
            "SiglipModel",
            "SiglipConfig",
            {**SHAPE, **MLP, "hidden_act": "gelu"},
            {**TEXT, "hidden_size": WIDTH, "num_attention_heads": 3},
        ),
        "vit_base_patch16_siglip_224",
        tower="vision_model",
        families=("", "siglip"),
    ),
]


class Recorder(Observer):
    """Keeps what the trace shows."""

    wants = frozenset({"attention", "tokens", "pool"})

    def __init__(self) -> None:
        self.attentions: list[Tensor] = []
        self.blocks: list[Tensor] = []
        self.pooled: list[tuple[Tensor, Tensor]] = []

    def attention(self, layer: int, probs: Tensor) -> None:
        assert layer == len(self.attentions)
        self.attentions.append(probs.clone())

    def tokens(self, layer: int, x: Tensor) -> None:
        assert layer == len(self.blocks)
        self.blocks.append(x.clone())

    def pool(self, layer: int, probs: Tensor, x: Tensor) -> None:
        self.pooled.append((probs.clone(), x.clone()))

    def norms(self, layer: int, part: str, x: Tensor) -> None:
        raise AssertionError("not asked for")

    def branches(self, layer: int, part: str, skip: Tensor, branch: Tensor) -> None:
        raise AssertionError("not asked for")


@dataclass
class Theirs:
    """The library's network, and what it computes: tokens after every layer, attention in every layer, the output."""

    model: nn.Module
    blocks: list[Tensor]
    attentions: list[Tensor]
    final: Tensor


def randomise(model: nn.Module) -> None:
    """Nothing stays at its initial zero or one; the scale keeps attention neither uniform nor one-hot."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.randn_like(parameter) * (0.2 if parameter.ndim > 1 else 0.5))
            if "norm" in name and name.endswith("weight"):
                parameter.add_(1.0)


def run_theirs(case: Case, images: Tensor) -> Theirs:
    model = case.build().eval()
    randomise(model)
    tower = model.get_submodule(case.tower)
    layers = next(m for m in tower.modules() if isinstance(m, nn.ModuleList) and len(m) == DEPTH)
    blocks: list[Tensor] = []

    def keep(_module: nn.Module, _inputs: Any, output: Any) -> None:
        blocks.append((output[0] if isinstance(output, tuple) else output).clone())

    handles = [layer.register_forward_hook(keep) for layer in layers]
    with torch.no_grad():
        out = tower(pixel_values=images, output_attentions=True, **case.call)
    for handle in handles:
        handle.remove()
    final = out.pooler_output if case.pooled else out.last_hidden_state
    return Theirs(model, blocks, list(out.attentions), final)


def tiny(case: Case) -> nn.Module:
    shape: dict[str, Any] = {"embed_dim": WIDTH, "depth": DEPTH, "num_heads": HEADS}
    shape |= {"img_size": PIXELS, "patch_size": PATCH}
    return timm.create_model(case.architecture, num_classes=0, **shape, **case.options).eval()


def compare(case: Case, theirs: Theirs, images: Tensor, path: Path, family: str) -> None:
    module = tiny(case)
    layout = layout_of(module, case.name, (PIXELS, PIXELS))
    untrained = Recorder()
    trace(module, images, [untrained], layout=layout, name=case.name)
    assert (untrained.attentions[0] - theirs.attentions[0]).abs().max() > 0.1  # the weights matter
    report = load_checkpoint(module, path)
    assert report.family == family
    assert set(report.used) == set(module.state_dict())
    seen = Recorder()
    final = trace(module, images, [seen], layout=layout, name=case.name)
    assert len(seen.blocks) == len(theirs.blocks) == len(theirs.attentions) == DEPTH
    for layer in range(DEPTH):
        assert (seen.blocks[layer] - theirs.blocks[layer]).abs().max() < TOLERANCE, layer
        assert (seen.attentions[layer] - theirs.attentions[layer]).abs().max() < TOLERANCE, layer
    final = final[:, 0] if case.pooled else final
    assert (final - theirs.final).abs().max() < TOLERANCE


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_parity(case: Case, tmp_path: Path) -> None:
    check_parity(case, tmp_path)


def check_parity(case: Case, tmp_path: Path) -> None:
    torch.manual_seed(len(case.name))
    images = torch.randn(2, 3, PIXELS, PIXELS)
    theirs = run_theirs(case, images)

    theirs.model.save_pretrained(tmp_path)  # type: ignore[operator]
    published = tmp_path / "model.safetensors"
    compare(case, theirs, images, published, case.families[1])

    memory = tmp_path / "memory.pt"
    torch.save(theirs.model.state_dict(), memory)
    compare(case, theirs, images, memory, case.families[1])

    if case.official:
        official = tmp_path / "official.pth"
        torch.save(case.official(load_file(published)), official)
        compare(case, theirs, images, official, case.families[0])


def test_siglip_attention_pooling(tmp_path: Path) -> None:
    """SigLIP has no class token; its pooled output goes through weights that no block shows."""
    torch.manual_seed(0)
    images = torch.randn(2, 3, PIXELS, PIXELS)
    case = next(case for case in CASES if case.name.startswith("siglip"))
    theirs = run_theirs(case, images)
    path = tmp_path / "model.pt"
    torch.save(theirs.model.state_dict(), path)
    module = tiny(case)
    load_checkpoint(module, path)
    tower = theirs.model.get_submodule(case.tower)
    with torch.no_grad():
        out = tower(pixel_values=images)
        probe = tower.head.probe.repeat(len(images), 1, 1)
        looks = tower.head.attention(probe, out.last_hidden_state, out.last_hidden_state, average_attn_weights=False)[1]
        assert (module(images) - out.pooler_output).abs().max() < TOLERANCE
    seen = Recorder()
    trace(module, images, [seen], layout=layout_of(module, case.name, (PIXELS, PIXELS)))
    ((probs, x),) = seen.pooled
    assert (probs - looks[:, :, 0]).abs().max() < TOLERANCE
    assert (x - out.pooler_output).abs().max() < TOLERANCE
