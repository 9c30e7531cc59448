"""MAE pre-training files: an encoder in plain ViT names beside a decoder. Encoder-only files are plain ViTs."""

from __future__ import annotations

from collections.abc import Collection

from vitscope.models.checkpoints import vit
from vitscope.models.checkpoints.converted import Hints
from vitscope.models.checkpoints.parts import Parts


def recognises(keys: Collection[str]) -> bool:
    return vit.ANCHOR in keys and "decoder_embed.weight" in keys


def convert(parts: Parts) -> Hints:
    parts.drop("the decoder that only pre-training needs", r"decoder_")
    parts.drop("the masking token that only pre-training needs", r"mask_token$")
    parts.keep_matching(r".*")
    return Hints()


def family(parts: Parts) -> str:
    return "mae"
