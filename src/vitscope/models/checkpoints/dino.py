"""DINO, iBOT and DINOv2 training files: `teacher` / `student` with the network under `backbone.` beside its heads.

The published backbone-only files are plain ViTs (`vit.py`) or DINOv2 ones (`dinov2.py`).
"""

from __future__ import annotations

from collections.abc import Collection

from vitscope.models.checkpoints import dinov2, dinov3, vit
from vitscope.models.checkpoints.converted import Hints
from vitscope.models.checkpoints.parts import Parts

PREFIX = "backbone."
HEADS = (r"head\.", r"dino_head\.", r"ibot_head\.", r"head_instance\.")


def recognises(keys: Collection[str]) -> bool:
    heads = tuple(head.replace("\\", "") for head in HEADS)
    return PREFIX + vit.ANCHOR in keys and all(key.startswith((PREFIX, *heads)) for key in keys)


def convert(parts: Parts) -> Hints:
    parts.drop("the projection head that only self-distillation needs", *HEADS)
    parts.enter(PREFIX)
    inner = next((form for form in (dinov3, dinov2) if form.recognises(parts.left)), vit)
    found: Hints = inner.convert(parts)
    return found


def family(parts: Parts) -> str:
    if any(key.endswith("rope_embed.periods") for key in parts.dropped):
        return "dinov3"
    if any(key.endswith("mask_token") for key in parts.dropped):
        return "dinov2"
    return "ibot" if vit.family(parts) == "ibot" else "dino"
