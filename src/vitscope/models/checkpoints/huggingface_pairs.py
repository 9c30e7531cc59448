"""Hugging Face's image towers of image-text models: CLIP and SigLIP, alone or in the full model."""

from __future__ import annotations

from collections.abc import Collection

from vitscope.core.errors import BadCheckpoint
from vitscope.models.checkpoints.clip import ACTIVATION_NOTE, keep_pooling
from vitscope.models.checkpoints.converted import Hints
from vitscope.models.checkpoints.huggingface import fuse_attention
from vitscope.models.checkpoints.parts import Parts
from vitscope.models.checkpoints.towers import prefixes, single_prefix

ANCHOR = "embeddings.patch_embedding.weight"
RULES = (
    (r"^embeddings\.patch_embedding\.", "patch_embed.proj."),
    (r"^pre_layrnorm\.", "norm_pre."),  # the library's spelling
    (r"^post_layernorm\.", "norm."),
    (r"^encoder\.layers\.", "blocks."),
    (r"\.layer_norm([12])\.", r".norm\1."),
    (r"\.self_attn\.([qkv])_proj\.", r".attn.\1."),
    (r"\.self_attn\.out_proj\.", ".attn.proj."),
    (r"^head\.attention\.out_proj\.", "attn_pool.proj."),
    (r"^head\.layernorm\.", "attn_pool.norm."),
    (r"^head\.mlp\.", "attn_pool.mlp."),
    (r"^head\.probe$", "attn_pool.latent"),
)
KNOWN = (
    r"(?:patch_embed\.proj|norm_pre|norm)\.(?:weight|bias)",
    r"blocks\.\d+\.(?:norm1|norm2|attn\.proj|mlp\.fc1|mlp\.fc2)\.(?:weight|bias)",
    r"attn_pool\.(?:latent|(?:proj|norm|mlp\.fc1|mlp\.fc2)\.(?:weight|bias))",
)


def recognises(keys: Collection[str]) -> bool:
    return bool(prefixes(keys, ANCHOR))


def convert(parts: Parts) -> Hints:
    prefix = single_prefix(parts.left, ANCHOR)
    parts.drop("the text tower", r"text_model\.")
    parts.drop("the projection to the space shared with text", r"(?:visual|text)_projection\.")
    parts.drop("the temperature of the image-text comparison", r"logit_scale$", r"logit_bias$")
    parts.drop("a task's head: only the tokens are studied", r"classifier\.")
    parts.enter(prefix)
    parts.drop("an index that follows from the grid", r"embeddings\.position_ids$")
    if parts.left[ANCHOR].ndim != 4:
        raise BadCheckpoint(
            "its patches are embedded by a linear layer: it is a NaFlex model, for images of any shape, and only those "
            "of a fixed input size are covered; use one, such as siglip2-b16"
        )
    paired = "embeddings.class_embedding" in parts.left
    if paired:
        parts.keep("cls_token", parts.take("embeddings.class_embedding").reshape(1, 1, -1))
    parts.keep("pos_embed", parts.take("embeddings.position_embedding.weight").unsqueeze(0))
    keep_pooling(parts, "head.attention.in_proj")
    parts.rename(RULES)
    fuse_attention(parts, ("q", "k", "v"))
    parts.keep_matching(*KNOWN)
    return Hints(note=ACTIVATION_NOTE) if paired else Hints()


def family(parts: Parts) -> str:
    return "clip" if "cls_token" in parts.state else "siglip"
