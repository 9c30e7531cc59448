"""EVA-02: rotary positions, SwiGLU, a bias on queries and values only; the larger ones keep the three apart."""

from __future__ import annotations

from collections.abc import Collection

from vitscope.models.checkpoints.converted import Hints
from vitscope.models.checkpoints.parts import Parts
from vitscope.models.checkpoints.rotary import heads_of

ANCHOR, TABLE = "patch_embed.proj.weight", "rope.freqs_cos"
RULES = (
    (r"\.mlp\.ffn_ln\.", ".mlp.norm."),
    (r"\.attn\.inner_attn_ln\.", ".attn.norm."),
    (r"\.mlp\.w12\.", ".mlp.fc1."),
    (r"\.mlp\.w1\.", ".mlp.fc1_g."),
    (r"\.mlp\.w2\.", ".mlp.fc1_x."),
    (r"\.mlp\.w3\.", ".mlp.fc2."),
)


def recognises(keys: Collection[str]) -> bool:
    return ANCHOR in keys and TABLE in keys


def convert(parts: Parts) -> Hints:
    heads = heads_of(parts, r"(?:blocks\.\d+\.attn\.)?rope\.freqs_(?:cos|sin)$", parts.left[ANCHOR].shape[0], 1)
    parts.drop("the masking token that only pre-training needs", r"mask_token$")
    parts.drop("a task's head: only the tokens are studied", r"lm_head\.", r"head\.")
    apart = any(key.endswith(".attn.q_proj.weight") for key in parts.left)
    biases = ((r"\.attn\.([qv])_bias$", r".attn.\1_proj.bias"),) if apart else ()
    parts.rename((*RULES, *biases))
    parts.keep_matching(r".*")
    return Hints(heads=heads)


def family(parts: Parts) -> str:
    return "eva02" if "mask_token" in parts.dropped else "eva02 tuned"  # on labels, after the masking
