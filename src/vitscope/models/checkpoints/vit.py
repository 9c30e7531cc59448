"""Plain ViTs in timm's own names: timm files, DINO and iBOT backbone files, MAE encoders, DeiT, I-JEPA.

Also everything else that timm saves (EVA, NaFlex, SigLIP towers, ...): names pass through unchanged and are compared
with the architecture's afterwards. DeiT-III calls its layer scale gamma_1, which `fit.py` knows.
"""

from __future__ import annotations

from collections.abc import Collection

from vitscope.models.checkpoints.converted import Hints
from vitscope.models.checkpoints.parts import Parts
from vitscope.models.checkpoints.towers import prefixes, single_prefix

ANCHOR = "patch_embed.proj.weight"
NAFLEX_ANCHOR = "embeds.proj.weight"
HEAD = "a task's head: only the tokens are studied"


def recognises(keys: Collection[str]) -> bool:
    return bool(prefixes(keys, ANCHOR) or prefixes(keys, NAFLEX_ANCHOR))


def convert(parts: Parts) -> Hints:
    anchor = ANCHOR if prefixes(parts.left, ANCHOR) else NAFLEX_ANCHOR
    parts.enter(single_prefix(parts.left, anchor))
    parts.drop("the masking token that only pre-training needs", r"masked_embed$")
    parts.drop(HEAD, r"head\.", r"head_dist\.", r"pre_logits\.", r"aux_head\.")
    parts.keep_matching(r".*")
    return Hints()


def family(parts: Parts) -> str:
    if any(key.endswith("masked_embed") for key in parts.dropped):
        return "ibot"
    return "deit" if "dist_token" in parts.state else "vit"
