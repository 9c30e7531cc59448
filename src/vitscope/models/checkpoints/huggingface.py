"""Hugging Face's ViT, DeiT, ViTMAE, I-JEPA, Beit and Dinov2 (with and without registers), alone or inside a task model.

Both sets of names are known: those of the published files (`encoder.layer.0.attention.attention.query`) and those
that recent versions of the library use in memory (`layers.0.attention.q_proj`).
"""

from __future__ import annotations

import re
from collections.abc import Collection

import torch

from vitscope.core.errors import BadCheckpoint
from vitscope.models.checkpoints import beit
from vitscope.models.checkpoints.converted import Hints
from vitscope.models.checkpoints.dinov2 import keep_registers
from vitscope.models.checkpoints.parts import Parts
from vitscope.models.checkpoints.towers import prefixes, single_prefix

ANCHOR = "embeddings.patch_embeddings.projection.weight"
RULES = (
    (r"^embeddings\.cls_token$", "cls_token"),
    (r"^embeddings\.distillation_token$", "dist_token"),
    (r"^embeddings\.register_tokens$", "register_tokens"),
    (r"^embeddings\.position_embeddings$", "pos_embed"),
    (r"^embeddings\.patch_embeddings\.projection\.", "patch_embed.proj."),
    (r"^layernorm\.", "norm."),
    (r"^pooler\.layernorm\.", "fc_norm."),
    (r"^(?:encoder\.relative_position_bias|shared_position_bias)\.", "rel_pos_bias."),
    (r"^(?:encoder\.layer|encoder\.layers|layers|layer)\.(\d+)\.", r"blocks.\1."),
    (r"^(blocks\.\d+)\.(?:attention\.attention\.)?relative_position_bias\.(\w+)$", r"\1.attn.\2"),
    (r"^(blocks\.\d+)\.attention\.attention\.(query|key|value)\.", r"\1.attn.\2."),
    (r"^(blocks\.\d+)\.attention\.q_proj\.", r"\1.attn.query."),
    (r"^(blocks\.\d+)\.attention\.k_proj\.", r"\1.attn.key."),
    (r"^(blocks\.\d+)\.attention\.v_proj\.", r"\1.attn.value."),
    (r"^(blocks\.\d+)\.attention\.(?:output\.dense|o_proj)\.", r"\1.attn.proj."),
    (r"^(blocks\.\d+)\.intermediate\.dense\.", r"\1.mlp.fc1."),
    (r"^(blocks\.\d+)\.output\.dense\.", r"\1.mlp.fc2."),
    (r"^(blocks\.\d+)\.mlp\.weights_in\.", r"\1.mlp.fc1."),
    (r"^(blocks\.\d+)\.mlp\.(?:weights_out|down_proj)\.", r"\1.mlp.fc2."),
    (r"^(blocks\.\d+)\.layernorm_before\.", r"\1.norm1."),
    (r"^(blocks\.\d+)\.layernorm_after\.", r"\1.norm2."),
    (r"^(blocks\.\d+)\.lambda_([12])$", r"\1.gamma_\2"),
    (r"^(blocks\.\d+)\.layer_scale([12])\.lambda1$", r"\1.ls\2.gamma"),
)
KNOWN = (
    r"cls_token|dist_token|pos_embed",
    r"(?:patch_embed\.proj|norm|fc_norm)\.(?:weight|bias)",
    r"blocks\.\d+\.(?:norm1|norm2|attn\.proj|mlp\.fc1|mlp\.fc2)\.(?:weight|bias)",
    r"blocks\.\d+\.(?:gamma_[12]|ls[12]\.gamma|attn\.relative_position_bias_table)",
)


def recognises(keys: Collection[str]) -> bool:
    return bool(prefixes(keys, ANCHOR))


def convert(parts: Parts) -> Hints:
    prefix = single_prefix(parts.left, ANCHOR)
    parts.drop("the decoder that only pre-training needs", r"decoder\.")
    parts.drop("a task's head: only the tokens are studied", r"(?:cls_|distillation_)?classifier\.", r"lm_head\.")
    if prefix and not any(key.startswith(prefix + "layernorm.") for key in parts.left):
        parts.rename([(r"^layernorm\.", prefix + "layernorm.")])  # masked BEiT keeps the final norm outside
    elif prefix:
        parts.drop("a second norm, of the pre-training head", r"layernorm\.")
    parts.enter(prefix)
    parts.drop("the masking token that only pre-training needs", r"embeddings\.mask_token$")
    parts.drop("a task's head: only the tokens are studied", r"pooler\.dense\.")
    parts.drop("an index that follows from the grid", r".*relative_position_index$")
    parts.rename(RULES)
    beit.share_table(parts)
    fuse_attention(parts, ("query", "key", "value"))
    _fuse_gate(parts)
    if "register_tokens" in parts.left:
        keep_registers(parts)
    parts.keep_matching(*KNOWN)
    return Hints()


def fuse_attention(parts: Parts, names: tuple[str, str, str]) -> None:
    """Stack each block's query, key and value into timm's qkv; BEiT has no bias on the keys and keeps two apart."""
    first = re.compile(rf"(blocks\.\d+\.attn)\.{names[0]}\.(weight|bias)$")
    for key in [key for key in parts.left if first.match(key)]:
        match = first.match(key)
        assert match
        stem, kind = match.groups()
        members = [f"{stem}.{name}.{kind}" for name in names]
        if kind == "bias" and members[1] not in parts.left:
            parts.keep(f"{stem}.q_bias", parts.take(members[0]))
            parts.keep(f"{stem}.v_bias", parts.take(members[2]))
            continue
        tensors = [parts.take(member) for member in members]
        if len({tuple(tensor.shape) for tensor in tensors}) != 1:
            raise BadCheckpoint(f"{', '.join(members)} differ in shape: grouped queries are not a plain ViT's")
        parts.keep(f"{stem}.qkv.{kind}", torch.cat(tensors))


def _fuse_gate(parts: Parts) -> None:
    """SwiGLU's gate and value side by side, gate first, as timm packs them."""
    gates = re.compile(r"(blocks\.\d+\.mlp)\.gate_proj\.(weight|bias)$")
    for key in [key for key in parts.left if gates.match(key)]:
        up = key.replace("gate_proj", "up_proj")
        parts.keep(key.replace("gate_proj", "fc1"), torch.cat([parts.take(key), parts.take(up)]))


def family(parts: Parts) -> str:
    names = parts.state
    if any(".relative_position_bias_table" in key or key.endswith("q_bias") for key in names):
        return "beit"
    if any(key.endswith("ls1.gamma") for key in names):
        return "dinov2"
    if any(re.match(r"decoder\.", key) for key in parts.dropped):
        return "mae"
    if "cls_token" not in names:
        return "ijepa"
    return "deit" if "dist_token" in names else "vit"
