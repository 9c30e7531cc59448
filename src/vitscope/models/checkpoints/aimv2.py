"""AIMv2: RMS norms, SwiGLU, no class token; in Apple's names or Hugging Face's, alone or beside a text tower."""

from __future__ import annotations

from collections.abc import Collection

from vitscope.core.errors import BadCheckpoint
from vitscope.models.checkpoints.converted import Hints
from vitscope.models.checkpoints.huggingface import fuse_attention
from vitscope.models.checkpoints.parts import Parts
from vitscope.models.checkpoints.towers import prefixes, single_prefix

OFFICIAL, PUBLISHED = "preprocessor.patchifier.proj.weight", "embeddings.patch_embed.weight"
RULES = (
    (r"^preprocessor\.patchifier\.", "patch_embed."),
    (r"^preprocessor\.pos_embed$", "pos_embed"),
    (r"^trunk\.post_trunk_norm\.", "norm."),
    (r"^trunk\.blocks\.", "blocks."),
    (r"\.norm_([12])\.", r".norm\1."),
    (r"\.mlp\.fc1\.", ".mlp.fc1_g."),
    (r"\.mlp\.fc3\.", ".mlp.fc1_x."),
)
HUGGINGFACE = (
    (r"^embeddings\.patch_embed\.", "patch_embed.proj."),
    (r"^embeddings\.rms_norm\.", "patch_embed.norm."),
    (r"^rms_norm\.", "norm."),
    (r"^encoder\.layers\.", "blocks."),
    (r"\.rms_norm([12])\.", r".norm\1."),
    (r"\.attention\.([qkv])_proj\.", r".attn.\1."),
    (r"\.attention\.out_proj\.", ".attn.proj."),
    (r"\.ffn\.gate_proj\.", ".mlp.fc1_g."),
    (r"\.ffn\.up_proj\.", ".mlp.fc1_x."),
    (r"\.ffn\.down_proj\.", ".mlp.fc2."),
)
KNOWN = (
    r"pos_embed|patch_embed\.proj\.bias|(?:patch_embed\.proj|patch_embed\.norm|norm)\.weight",
    r"blocks\.\d+\.(?:norm1|norm2|attn\.qkv|attn\.proj|mlp\.fc1_g|mlp\.fc1_x|mlp\.fc2)\.weight",
)


def recognises(keys: Collection[str]) -> bool:
    return bool(prefixes(keys, OFFICIAL) or prefixes(keys, PUBLISHED))


def convert(parts: Parts) -> Hints:
    anchor = OFFICIAL if prefixes(parts.left, OFFICIAL) else PUBLISHED
    prefix = single_prefix(parts.left, anchor)
    parts.drop("the text tower", r"text_model\.", r"text_encoder\.")
    parts.drop(
        "the projection to the space shared with text", r"(?:visual|text)_projection\.", r"(?:image|text)_projector\."
    )
    parts.drop("the temperature of the image-text comparison", r"(?:log_)?logit_scale$")
    parts.enter(prefix)
    parts.drop("attention pooling, which the architecture does not have", r"head\.")
    if anchor == PUBLISHED:
        parts.drop("an index that follows from the grid", r"embeddings\.position_ids$")
        _check_positions(parts, "embeddings.position_embedding.weight")
        parts.keep("pos_embed", parts.take("embeddings.position_embedding.weight").unsqueeze(0))
        parts.rename(HUGGINGFACE)
        fuse_attention(parts, ("q", "k", "v"))
    else:
        _check_positions(parts, "preprocessor.pos_embed")
        parts.rename(RULES)
    parts.keep_matching(*KNOWN)
    return Hints()


def _check_positions(parts: Parts, key: str) -> None:
    if key not in parts.left:
        raise BadCheckpoint(
            f"it has no {key}: AIMv2 for native resolutions computes its positions, which no architecture known here "
            "does; use a model of a fixed resolution, such as aimv2-l14"
        )


def family(parts: Parts) -> str:
    return "aimv2"
