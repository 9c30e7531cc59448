"""MoCo-v3: `state_dict` with a base encoder, its momentum copy and a predictor; positions are fixed and in the file.

All four official sizes are known here because their heads cannot be read off the tensors: the small model has 12
heads of width 32, where everybody else's has 6 of 64.
"""

from __future__ import annotations

from collections.abc import Collection

from vitscope.models.checkpoints import vit
from vitscope.models.checkpoints.converted import Hints
from vitscope.models.checkpoints.parts import Parts

PREFIX = "base_encoder."
HEADS_OF_WIDTH = {384: 12, 768: 12, 1024: 16, 1280: 16}


def recognises(keys: Collection[str]) -> bool:
    return PREFIX + vit.ANCHOR in keys


def convert(parts: Parts) -> Hints:
    parts.drop("the momentum encoder: the base encoder is what is evaluated", r"momentum_encoder\.")
    parts.drop("the predictor that only contrastive training needs", r"predictor\.")
    parts.drop("the projection head that only contrastive training needs", r"base_encoder\.head\.")
    parts.enter(PREFIX)
    parts.keep_matching(r".*")
    width = int(parts.state[vit.ANCHOR].shape[0])
    return Hints(heads=HEADS_OF_WIDTH.get(width))


def family(parts: Parts) -> str:
    return "moco"
