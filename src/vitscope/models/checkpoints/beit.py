"""BEiT: no absolute position but a relative-position bias, layer scale, and no bias on the keys.

The pre-trained files have one table for all blocks; timm's architectures have one per block, so it is given to each.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from vitscope.models.checkpoints.converted import Hints
from vitscope.models.checkpoints.parts import Parts

SHARED = "rel_pos_bias.relative_position_bias_table"
TABLE = "relative_position_bias_table"


def recognises(keys: Collection[str]) -> bool:
    relative = any(key.endswith(TABLE) for key in keys)
    return "patch_embed.proj.weight" in keys and "blocks.0.attn.qkv.weight" in keys and relative


def convert(parts: Parts) -> Hints:
    parts.drop("an index that follows from the grid", r".*relative_position_index$")
    parts.drop("the masking token that only pre-training needs", r"mask_token$")
    parts.drop("a task's head: only the tokens are studied", r"lm_head\.", r"cls_pt_layers\.", r"head\.")
    share_table(parts)
    parts.keep_matching(r".*")
    return Hints()


def share_table(parts: Parts) -> None:
    """Give the file's one relative-position table to every block."""
    if SHARED not in parts.left:
        return
    table = parts.take(SHARED)
    for block in sorted({int(m[1]) for key in parts.left if (m := re.match(r"blocks\.(\d+)\.", key))}):
        parts.keep(f"blocks.{block}.attn.{TABLE}", table)


def family(parts: Parts) -> str:
    return "beit"
