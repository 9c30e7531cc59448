"""Google's own Vision Transformers (JAX): the supervised `augreg` files, and the image towers of SigLIP and SigLIP 2.

Names and axes are Flax's: kernels are input x output, convolutions height x width x input x output, and attention keeps
its heads apart. The largest SigLIP towers stack their blocks along a first axis.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import torch

from vitscope.core.errors import BadCheckpoint
from vitscope.models.checkpoints.converted import Hints
from vitscope.models.checkpoints.parts import Parts

TRAINED, TOWER = "opt/target/", "params/img/"  # before the names: the optimiser was saved too, or a text tower
ANCHOR = "Transformer/encoderblock_0/MultiHeadDotProductAttention_1/query/kernel"
PAIRED = "Transformer/encoder_norm/scale"
BLOCK = re.compile(r"Transformer/encoderblock_(\d+)/")
STACKED = "Transformer/encoderblock/"


def recognises(keys: Collection[str]) -> bool:
    return ANCHOR in keys or TRAINED + ANCHOR in keys or TOWER + PAIRED in keys


def convert(parts: Parts) -> Hints:
    if TOWER + PAIRED in parts.left:
        return _siglip(parts)
    if TRAINED + ANCHOR in parts.left:
        parts.drop("training state, not weights", rf"(?!{TRAINED})")
        parts.enter(TRAINED)
    parts.drop("a task's head: only the tokens are studied", r"head/", r"pre_logits/")
    parts.keep("cls_token", parts.take("cls"))
    parts.keep("pos_embed", parts.take("Transformer/posembed_input/pos_embedding"))
    heads = _tower(parts, attention=1, norm=2, mlp=3)
    return Hints(heads=heads, activation="gelu")


def _siglip(parts: Parts) -> Hints:
    parts.drop("the text tower", r"params/txt/")
    parts.drop("the temperature of the image-text comparison", r"params/[tb]$")
    parts.enter(TOWER)
    if parts.left["embedding/kernel"].ndim != 4:
        raise BadCheckpoint(
            "its patches are embedded by a linear layer: it is a NaFlex model, for images of any shape, and only those "
            "of a fixed input size are covered; use one, such as siglip2-b16"
        )
    parts.keep("pos_embed", parts.take("pos_embedding"))
    for key in [key for key in parts.left if key.startswith(STACKED)]:
        for number, one in enumerate(parts.take(key)):
            parts.left[key.replace(STACKED, f"Transformer/encoderblock_{number}/")] = one
    heads = _tower(parts, attention=0, norm=1, mlp=0)
    parts.keep("attn_pool.latent", parts.take("MAPHead_0/probe"))
    pool = "MAPHead_0/MultiHeadDotProductAttention_0/"
    _attention(parts, pool, "attn_pool.", {"q": ("query",), "kv": ("key", "value")})
    _norm(parts, "MAPHead_0/LayerNorm_0", "attn_pool.norm")
    _mlp(parts, "MAPHead_0/MlpBlock_0/", "attn_pool.mlp.")
    return Hints(heads=heads, activation="gelu_tanh")


def _tower(parts: Parts, *, attention: int, norm: int, mlp: int) -> int:
    """Patch embedding, blocks and last norm; the numbers are those that Flax gave the parts of a block."""
    parts.keep("patch_embed.proj.weight", parts.take("embedding/kernel").permute(3, 2, 0, 1).contiguous())
    parts.keep("patch_embed.proj.bias", parts.take("embedding/bias"))
    _norm(parts, "Transformer/encoder_norm", "norm")
    heads = 0
    for number in sorted({int(found[1]) for key in parts.left if (found := BLOCK.match(key))}):
        source, target = f"Transformer/encoderblock_{number}/", f"blocks.{number}."
        inner = f"{source}MultiHeadDotProductAttention_{attention}/"
        heads = int(parts.left[inner + "query/kernel"].shape[1]) if inner + "query/kernel" in parts.left else 0
        _norm(parts, source + "LayerNorm_0", target + "norm1")
        _norm(parts, f"{source}LayerNorm_{norm}", target + "norm2")
        _attention(parts, inner, target + "attn.", {"qkv": ("query", "key", "value")})
        _mlp(parts, f"{source}MlpBlock_{mlp}/", target + "mlp.")
    return heads


def _attention(parts: Parts, source: str, target: str, groups: dict[str, tuple[str, ...]]) -> None:
    for ours, theirs in groups.items():
        kernels = [parts.take(f"{source}{name}/kernel").flatten(1).transpose(0, -1) for name in theirs]  # (D, D) each
        parts.keep(f"{target}{ours}.weight", torch.cat(kernels))
        parts.keep(f"{target}{ours}.bias", torch.cat([parts.take(f"{source}{name}/bias").flatten() for name in theirs]))
    parts.keep(f"{target}proj.weight", parts.take(f"{source}out/kernel").flatten(0, 1).transpose(0, -1).contiguous())
    parts.keep(f"{target}proj.bias", parts.take(f"{source}out/bias"))


def _mlp(parts: Parts, source: str, target: str) -> None:
    for number in (0, 1):
        parts.keep(
            f"{target}fc{number + 1}.weight", parts.take(f"{source}Dense_{number}/kernel").transpose(0, -1).contiguous()
        )
        parts.keep(f"{target}fc{number + 1}.bias", parts.take(f"{source}Dense_{number}/bias"))


def _norm(parts: Parts, source: str, target: str) -> None:
    parts.keep(f"{target}.weight", parts.take(f"{source}/scale"))
    parts.keep(f"{target}.bias", parts.take(f"{source}/bias"))


def family(parts: Parts) -> str:
    return "siglip" if "attn_pool.latent" in parts.state else "augreg"
