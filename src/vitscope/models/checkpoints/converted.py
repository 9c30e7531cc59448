"""What comes out of a checkpoint: its weights in timm's names, its family, and what else it says of the network."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from vitscope.models.checkpoints.shape import Shape


@dataclass(frozen=True)
class Hints:
    """What a format implies beyond its tensors' shapes."""

    heads: int | None = None  # attention heads, where the format fixes them
    activation: str | None = None  # "gelu" or "quick_gelu", where the format fixes it
    note: str = ""  # something people should know, in one sentence


@dataclass(frozen=True)
class Converted:
    """A checkpoint in the names of the timm architecture of its family.

    family: as `models/families.py` knows them, or vit, deit, ibot or augreg. Files that differ in nothing but how they
    were trained (a DINO backbone, an MAE encoder, a supervised ViT) have the same keys and are all `vit`.
    dropped: the file's keys that are knowingly not used -> the reason.
    """

    family: str
    state: dict[str, Tensor]
    dropped: dict[str, str]
    shape: Shape
    hints: Hints = field(default_factory=Hints)
