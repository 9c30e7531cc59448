"""The formats in the order in which they are tried: the more particular before the more general."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from vitscope.core.errors import BadCheckpoint
from vitscope.models.checkpoints import (
    aimv2,
    augreg,
    beit,
    clip,
    dino,
    dinov2,
    dinov3,
    eva02,
    huggingface,
    huggingface_pairs,
    mae,
    moco,
    pe,
    vit,
)
from vitscope.models.checkpoints.converted import Converted, Hints
from vitscope.models.checkpoints.parts import Parts, some
from vitscope.models.checkpoints.shape import shape_of
from vitscope.models.checkpoints.wrappers import unwrap


class Format(Protocol):
    """One family's module: it recognises its keys, and moves every one of them to its place in `Parts`."""

    def recognises(self, keys: Collection[str]) -> bool: ...

    def convert(self, parts: Parts) -> Hints: ...

    def family(self, parts: Parts) -> str: ...


FORMATS: tuple[Format, ...] = (
    *(moco, dino, pe, clip, aimv2, huggingface_pairs, dinov3, huggingface),
    *(mae, beit, eva02, dinov2, augreg, vit),
)


def convert(raw: Mapping[str, Any], ignore: Sequence[str] = ()) -> Converted:
    """What a file holds (see `read_checkpoint`) as a timm state dict; BadCheckpoint names what has no place.

    ignore: patterns (`head2.*`) of keys to leave out before anything is recognised.
    """
    state, outside, place = unwrap(raw, ignore)
    parts = Parts(state)
    format_ = next((f for f in FORMATS if f.recognises(parts.left)), None)
    if format_ is None:
        raise BadCheckpoint(
            f"it is not a Vision Transformer in a format known here: its keys are {some(state)}; "
            "rename them to timm's and save the state dict"
        )
    hints = format_.convert(parts)
    parts.finish()
    family = "ijepa" if place == "target_encoder" else format_.family(parts)
    return Converted(family, parts.state, {**outside, **parts.dropped}, shape_of(parts.state), hints)
