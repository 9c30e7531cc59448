"""OpenAI CLIP and open_clip: the image tower out of the full model, or alone.

open_clip's timm towers (`visual.trunk.`) are already in timm's names.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from vitscope.core.errors import BadCheckpoint
from vitscope.models.checkpoints.converted import Hints
from vitscope.models.checkpoints.parts import Parts
from vitscope.models.checkpoints.towers import single_prefix

ANCHOR = "class_embedding"
TRUNK = "visual.trunk."
TEXT = (
    r"transformer\.",
    r"token_embedding\.",
    r"positional_embedding$",
    r"ln_final\.",
    r"text_projection",
    r"text\.",
    r"attn_mask$",
)
SCALARS = ("input_resolution", "context_length", "vocab_size")  # only OpenAI's own archives carry them
RULES = (
    (r"^conv1\.", "patch_embed.proj."),
    (r"^positional_embedding$", "pos_embed"),
    (r"^ln_pre\.", "norm_pre."),
    (r"^ln_post\.", "norm."),
    (r"^transformer\.resblocks\.", "blocks."),
    (r"\.ln_([12])\.", r".norm\1."),
    (r"\.attn\.in_proj_(weight|bias)$", r".attn.qkv.\1"),
    (r"\.attn\.out_proj\.", ".attn.proj."),
    (r"\.mlp\.c_fc\.", ".mlp.fc1."),
    (r"\.mlp\.c_proj\.", ".mlp.fc2."),
    (r"\.ls_([12])\.gamma$", r".ls\1.gamma"),
)
ACTIVATION_NOTE = (
    "CLIP files do not say their activation: "
    "OpenAI's need an architecture with `quickgelu` in its name, most others do not"
)


def recognises(keys: Collection[str]) -> bool:
    tower = any(key.endswith("transformer.resblocks.0.attn.in_proj_weight") for key in keys)
    residual = "visual.layer1.0.conv1.weight" in keys
    return (tower and any(key.endswith("conv1.weight") for key in keys)) or residual or _is_trunk(keys)


def _is_trunk(keys: Collection[str]) -> bool:
    return TRUNK + "patch_embed.proj.weight" in keys


def convert(parts: Parts) -> Hints:
    if "visual.layer1.0.conv1.weight" in parts.left:
        raise BadCheckpoint("this CLIP's image tower is a ResNet, not a Vision Transformer: choose a ViT-* model")
    original = all(name in parts.left for name in SCALARS)
    parts.drop("a number of the text tower or the input size", *(name + "$" for name in SCALARS))
    parts.drop("the temperature of the image-text comparison", r"logit_scale$", r"logit_bias$")
    if _is_trunk(parts.left):
        parts.drop("the text tower", *TEXT)
        parts.drop("the projection to the space shared with text", r"visual\.head\.")
        parts.enter(TRUNK)
        parts.drop("a task's head: only the tokens are studied", r"head\.")
        parts.keep_matching(r".*")
        return Hints()
    prefix = single_prefix(parts.left, ANCHOR)
    if prefix:
        parts.drop("the text tower", *TEXT)
    parts.enter(prefix)
    parts.drop("the projection to the space shared with text", r"proj$")
    keep_embeddings(parts, RULES)
    width = int(parts.state["patch_embed.proj.weight"].shape[0])
    if original:
        # OpenAI's model code: heads of width 64, and QuickGELU.
        return Hints(heads=width // 64 if width % 64 == 0 else None, activation="quick_gelu")
    return Hints(note=ACTIVATION_NOTE)


def keep_embeddings(parts: Parts, rules: Sequence[tuple[str, str]]) -> None:
    """Everything that is left, with the class token (1, 1, D) and the positions (1, 1 + N, D) as timm has them."""
    parts.keep("cls_token", parts.take(ANCHOR).reshape(1, 1, -1))
    parts.rename(rules)
    parts.keep("pos_embed", parts.take("pos_embed").unsqueeze(0))
    parts.keep_matching(r".*")


def keep_pooling(parts: Parts, stacked: str) -> None:
    """Attention pooling: torch stacks query, key and value; timm keeps the query apart."""
    for kind in ("weight", "bias"):
        if f"{stacked}_{kind}" in parts.left:
            tensor = parts.take(f"{stacked}_{kind}")
            width = tensor.shape[0] // 3
            parts.keep(f"attn_pool.q.{kind}", tensor[:width])
            parts.keep(f"attn_pool.kv.{kind}", tensor[width:])


def family(parts: Parts) -> str:
    return "clip" if "cls_token" in parts.state else "siglip"
