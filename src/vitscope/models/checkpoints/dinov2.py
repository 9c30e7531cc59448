"""DINOv2, with and without registers: layer scale, a mask token, SwiGLU in the giant, blocks perhaps in chunks.

The official class token and its position are added, registers have none. timm's register models keep no position for
any prefix token, so there the class token takes its position with it.
"""

from __future__ import annotations

from collections.abc import Collection

from vitscope.models.checkpoints.converted import Hints
from vitscope.models.checkpoints.parts import Parts

RULES = (
    (r"^blocks\.\d+\.(\d+)\.", r"blocks.\1."),  # chunk, block: blocks keep their number over all chunks
    (r"\.mlp\.w12\.", ".mlp.fc1."),
    (r"\.mlp\.w3\.", ".mlp.fc2."),
)


def recognises(keys: Collection[str]) -> bool:
    if "patch_embed.proj.weight" not in keys:
        return False
    scaled = any(key.startswith("blocks.") and key.endswith(".ls1.gamma") for key in keys)
    return "register_tokens" in keys or ("mask_token" in keys and scaled)


def convert(parts: Parts) -> Hints:
    parts.drop("the masking token that only pre-training needs", r"mask_token$")
    parts.drop("a task's head: only the tokens are studied", r"head\.")
    parts.rename(RULES)
    if "register_tokens" in parts.left:
        keep_registers(parts)
    parts.keep_matching(r".*")
    return Hints()


def keep_registers(parts: Parts) -> None:
    """Register tokens (1, R, D), the class token with its position added (1, 1, D), patch positions (1, N, D)."""
    positions = parts.take("pos_embed")  # (1, 1 + N, D)
    parts.keep("reg_token", parts.take("register_tokens"))
    parts.keep("cls_token", parts.take("cls_token").float() + positions[:, :1].float())
    parts.keep("pos_embed", positions[:, 1:])


def family(parts: Parts) -> str:
    return "dinov2"
