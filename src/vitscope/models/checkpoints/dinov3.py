"""DINOv3: rotary positions, registers (called storage tokens), layer scale, and a bias on queries and values only.

The official layer has a bias on the keys too and multiplies it by zero. In the distilled models the other two are zero
as well: timm has an architecture without them beside the one with (`_qkvb`).
"""

from __future__ import annotations

import re
from collections.abc import Collection

import torch

from vitscope.core.errors import BadCheckpoint
from vitscope.models.checkpoints import huggingface
from vitscope.models.checkpoints.converted import Hints
from vitscope.models.checkpoints.parts import Parts
from vitscope.models.checkpoints.rotary import heads_of
from vitscope.models.checkpoints.towers import prefixes, single_prefix

OFFICIAL, PUBLISHED = "storage_tokens", "embeddings.patch_embeddings.weight"
BASE = 100.0  # of the rotary periods
RULES = (
    (r"^storage_tokens$", "reg_token"),
    (r"\.ls([12])\.gamma$", r".gamma_\1"),
    (r"\.mlp\.w1\.", ".mlp.fc1_g."),
    (r"\.mlp\.w2\.", ".mlp.fc1_x."),
    (r"\.mlp\.w3\.", ".mlp.fc2."),
)
HUGGINGFACE = (
    (r"^embeddings\.patch_embeddings\.", "patch_embed.proj."),
    (r"^embeddings\.register_tokens$", "reg_token"),
    (r"^embeddings\.cls_token$", "cls_token"),
    (r"^(?:model\.)?layer\.(\d+)\.", r"blocks.\1."),
    (r"\.layer_scale([12])\.lambda1$", r".gamma_\1"),
    (r"\.attention\.o_proj\.", ".attn.proj."),
    (r"\.attention\.([qkv])_proj\.", r".attn.\1."),
    (r"\.mlp\.gate_proj\.", ".mlp.fc1_g."),
    (r"\.mlp\.down_proj\.", ".mlp.fc2."),
)
KNOWN = (
    r"cls_token|reg_token",
    r"(?:patch_embed\.proj|norm)\.(?:weight|bias)",
    r"blocks\.\d+\.(?:norm1|norm2|attn\.proj|mlp\.fc1|mlp\.fc1_g|mlp\.fc1_x|mlp\.fc2)\.(?:weight|bias)",
    r"blocks\.\d+\.(?:gamma_[12]|attn\.qkv\.weight)",
)


def recognises(keys: Collection[str]) -> bool:
    return OFFICIAL in keys or bool(prefixes(keys, PUBLISHED))


def convert(parts: Parts) -> Hints:
    heads = _official(parts) if OFFICIAL in parts.left else _huggingface(parts)
    parts.keep_matching(*KNOWN)
    return Hints(heads=heads)


def _official(parts: Parts) -> int | None:
    parts.drop("the masking token that only pre-training needs", r"mask_token$")
    parts.drop("a norm that only the local crops of pre-training need", r"local_cls_norm\.")
    heads = heads_of(parts, r"rope_embed\.periods$", parts.left[OFFICIAL].shape[-1], 4, BASE)
    for key in [key for key in parts.left if re.fullmatch(r"blocks\.\d+\.attn\.qkv\.bias", key)]:
        bias = parts.take(key).float()
        mask = parts.left.get(key + "_mask", torch.ones_like(bias)).float().nan_to_num(0.0)
        queries, keys, values = bias.chunk(3)
        if keys.mul(mask.chunk(3)[1]).any():
            raise BadCheckpoint(f"{key} has a bias on the keys, which DINOv3 masks and timm does not have")
        stem = key.removesuffix("qkv.bias")
        parts.keep(stem + "q_bias", queries)
        parts.keep(stem + "v_bias", values)
    parts.drop("the mask of the bias on the keys, which is left out", r"blocks\.\d+\.attn\.qkv\.bias_mask$")
    parts.rename(RULES)
    return heads


def _huggingface(parts: Parts) -> int | None:
    parts.drop("a task's head: only the tokens are studied", r"classifier\.")
    parts.enter(single_prefix(parts.left, PUBLISHED))
    parts.drop("the masking token that only pre-training needs", r"embeddings\.mask_token$")
    gated = any(".mlp.gate_proj." in key for key in parts.left)
    parts.rename((*HUGGINGFACE, (r"\.mlp\.up_proj\.", ".mlp.fc1_x." if gated else ".mlp.fc1.")))
    huggingface.fuse_attention(parts, ("q", "k", "v"))
    return None  # its configuration says how many


def family(parts: Parts) -> str:
    return "dinov3"
