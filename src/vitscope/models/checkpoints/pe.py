"""Perception Encoder (core): CLIP's names, rotary beside absolute positions, and attention pooling."""

from __future__ import annotations

from collections.abc import Collection

from vitscope.models.checkpoints import clip
from vitscope.models.checkpoints.converted import Hints
from vitscope.models.checkpoints.parts import Parts
from vitscope.models.checkpoints.rotary import heads_of
from vitscope.models.checkpoints.towers import prefixes, single_prefix

ANCHOR = "attn_pool.probe"
BASE = 1e-4  # of the rotary frequencies
RULES = (
    (r"^attn_pool\.attn\.out_proj\.", "attn_pool.proj."),
    (r"^attn_pool\.layernorm\.", "attn_pool.norm."),
    (r"^attn_pool\.probe$", "attn_pool.latent"),
    *clip.RULES,
)


def recognises(keys: Collection[str]) -> bool:
    return bool(prefixes(keys, ANCHOR)) and clip.recognises(keys)


def convert(parts: Parts) -> Hints:
    prefix = single_prefix(parts.left, ANCHOR)
    parts.drop("the temperature of the image-text comparison", r"logit_scale$")
    if prefix:
        parts.drop("the text tower", *clip.TEXT)
    parts.enter(prefix)
    parts.drop("the projection to the space shared with text", r"proj$")
    tables = r"(?:transformer\.resblocks\.\d+\.attn\.)?rope\.(?:rope\.)?freqs$"
    heads = heads_of(parts, tables, parts.left["conv1.weight"].shape[0], 4, BASE)
    clip.keep_pooling(parts, "attn_pool.attn.in_proj")
    clip.keep_embeddings(parts, RULES)
    return Hints(heads=heads)


def family(parts: Parts) -> str:
    return "pe"
