"""Google's own Vision Transformers (JAX; the supervised `augreg` files), in Flax's names and axes.

Kernels are input x output, convolutions height x width x input x output, and attention keeps its heads apart.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import torch
from torch import Tensor

from vitscope.models.checkpoints.converted import Hints
from vitscope.models.checkpoints.parts import Parts

TRAINED = "opt/target/"  # before the names, where the optimiser was saved too
ANCHOR = "Transformer/encoderblock_0/MultiHeadDotProductAttention_1/query/kernel"
BLOCK = re.compile(r"Transformer/encoderblock_(\d+)/")
NORMS = {"LayerNorm_0": "norm1", "LayerNorm_2": "norm2"}
DENSE = {"MlpBlock_3/Dense_0": "mlp.fc1", "MlpBlock_3/Dense_1": "mlp.fc2"}


def recognises(keys: Collection[str]) -> bool:
    return ANCHOR in keys or TRAINED + ANCHOR in keys


def convert(parts: Parts) -> Hints:
    if TRAINED + ANCHOR in parts.left:
        parts.drop("training state, not weights", rf"(?!{TRAINED})")
        parts.enter(TRAINED)
    parts.drop("a task's head: only the tokens are studied", r"head/", r"pre_logits/")
    parts.keep("cls_token", parts.take("cls"))
    parts.keep("pos_embed", parts.take("Transformer/posembed_input/pos_embedding"))
    parts.keep("patch_embed.proj.weight", parts.take("embedding/kernel").permute(3, 2, 0, 1).contiguous())
    parts.keep("patch_embed.proj.bias", parts.take("embedding/bias"))
    _norm(parts, "Transformer/encoder_norm", "norm")
    heads = parts.left[ANCHOR].shape[1]
    for number in sorted({int(found[1]) for key in parts.left if (found := BLOCK.match(key))}):
        _block(parts, f"Transformer/encoderblock_{number}/", f"blocks.{number}.")
    return Hints(heads=int(heads), activation="gelu")


def _block(parts: Parts, source: str, target: str) -> None:
    for theirs, ours in NORMS.items():
        _norm(parts, source + theirs, target + ours)
    for theirs, ours in DENSE.items():
        parts.keep(f"{target}{ours}.weight", parts.take(f"{source}{theirs}/kernel").T.contiguous())
        parts.keep(f"{target}{ours}.bias", parts.take(f"{source}{theirs}/bias"))
    attention = source + "MultiHeadDotProductAttention_1/"

    def three(what: str) -> list[Tensor]:
        return [parts.take(f"{attention}{name}/{what}") for name in ("query", "key", "value")]

    parts.keep(f"{target}attn.qkv.weight", torch.cat([x.flatten(1).T for x in three("kernel")]))  # (3 D, D)
    parts.keep(f"{target}attn.qkv.bias", torch.cat([x.flatten() for x in three("bias")]))
    parts.keep(f"{target}attn.proj.weight", parts.take(f"{attention}out/kernel").flatten(0, 1).T.contiguous())
    parts.keep(f"{target}attn.proj.bias", parts.take(f"{attention}out/bias"))


def _norm(parts: Parts, source: str, target: str) -> None:
    parts.keep(f"{target}.weight", parts.take(f"{source}/scale"))
    parts.keep(f"{target}.bias", parts.take(f"{source}/bias"))


def family(parts: Parts) -> str:
    return "augreg"
