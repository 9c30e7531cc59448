"""What the tensors of a state dict (in timm's names) say about the network."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt

from torch import Tensor

from vitscope.core.errors import BadCheckpoint

_BLOCK = re.compile(r"blocks\.(\d+)\.")


@dataclass(frozen=True)
class Shape:
    """The shape of a Vision Transformer; None where the tensors do not say.

    positions: entries of the absolute position embedding, prefix tokens included (0: there is none).
    window: (h, w) of a square relative-position table (None: there is none).
    heads: only relative-position tables show them.
    """

    depth: int
    width: int
    patch: tuple[int, int] | None
    hidden: int | None  # width of the first MLP layer
    heads: int | None
    positions: int
    window: tuple[int, int] | None
    class_token: bool
    registers: int
    distilled: bool
    layer_scale: bool
    pre_norm: bool

    def describe(self) -> str:
        """One phrase for people.

        >>> Shape(12, 384, (16, 16), 1536, None, 197, None, True, 0, False, False, False).describe()
        '12 blocks of width 384, 16 x 16 patches'
        """
        text = f"{self.depth} blocks of width {self.width}"
        if self.patch:
            text += f", {self.patch[0]} x {self.patch[1]} patches"
        if self.hidden and self.hidden != 4 * self.width:
            text += f", MLP width {self.hidden}"
        if self.registers:
            text += f", {self.registers} registers"
        return text

    @property
    def size(self) -> tuple[int, int, tuple[int, int] | None, int | None]:
        """What no resampling can change: two networks that differ here are different architectures."""
        return self.depth, self.width, self.patch, self.hidden

    @property
    def grid(self) -> tuple[int, int] | None:
        """(h, w) of the input the positions were learned for, if they are square; prefix entries are recognised."""
        if self.window:
            return self.window
        for prefix in (
            int(self.class_token) + int(self.distilled) + self.registers,
            int(self.class_token),
            0,
        ):
            side = isqrt(max(self.positions - prefix, 0))
            if side and side * side == self.positions - prefix:
                return side, side
        return None


def shape_of(state: Mapping[str, Tensor]) -> Shape:
    """Read the shape off a state dict in timm's names."""
    blocks = [int(match[1]) for key in state if (match := _BLOCK.match(key))]
    stem = state.get("patch_embed.proj.weight", state.get("embeds.proj.weight"))
    if not blocks or stem is None or stem.ndim < 2:
        raise BadCheckpoint("this is not a Vision Transformer: it has no patch embedding with a stack of blocks")
    table = state.get("blocks.0.attn.relative_position_bias_table")
    side = 0 if table is None or table.ndim != 2 else isqrt(max(table.shape[0] - 3, 0))
    position = state.get("pos_embed")
    registers = state.get("reg_token")
    hidden = state.get("blocks.0.mlp.fc1.weight", state.get("blocks.0.mlp.fc1_g.weight"))
    return Shape(
        depth=max(blocks) + 1,
        width=int(stem.shape[0]),
        patch=(int(stem.shape[-2]), int(stem.shape[-1])) if stem.ndim == 4 else None,
        hidden=None if hidden is None else int(hidden.shape[0]),
        heads=None if table is None or table.ndim != 2 else int(table.shape[1]),
        positions=int(position.shape[1]) if position is not None and position.ndim == 3 else 0,
        window=((side + 1) // 2, (side + 1) // 2) if side else None,
        class_token="cls_token" in state,
        registers=int(registers.shape[1]) if registers is not None and registers.ndim == 3 else 0,
        distilled="dist_token" in state,
        layer_scale=any(key in state for key in ("blocks.0.ls1.gamma", "blocks.0.gamma_1")),
        pre_norm="norm_pre.weight" in state,
    )
