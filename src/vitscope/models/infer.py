"""The architecture of a weights file that comes without one: taken from its tensors where they leave no choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from vitscope.core.errors import BadCheckpoint, VitscopeError
from vitscope.models.checkpoints import convert, doubt, propose_architecture, read_checkpoint
from vitscope.models.registry import build
from vitscope.models.trace import attention_module


@dataclass(frozen=True)
class Inferred:
    architecture: str
    options: dict[str, Any] = field(default_factory=dict)
    note: str = ""


def infer_architecture(path: Path, ignore: Sequence[str] = ()) -> Inferred:
    """What a weights file is, or one sentence that asks for what its tensors do not say."""
    try:
        converted = convert(read_checkpoint(path), ignore)
    except BadCheckpoint as error:
        raise error if str(path) in str(error) else BadCheckpoint(f"{path}: {error}") from error
    shape = converted.shape
    name = propose_architecture(converted)
    if name is None:
        raise VitscopeError(
            f"{path} holds a network of {shape.describe()}, which is no size of a known family, so that its "
            "number of heads is not known: say its architecture with --arch, or write a model card"
        )
    if why := doubt(converted):
        raise VitscopeError(f"{path} fits {name}, but may have {why}: say its architecture with --arch")
    with torch.device("meta"):
        module, preprocessing = build(name, {})
    options: dict[str, Any] = {}
    heads = int(attention_module(module.blocks[0]).num_heads)  # type: ignore[arg-type,index]
    told = converted.hints.heads or shape.heads
    if told and told != heads:
        options["num_heads"] = heads = told
    if shape.grid and shape.patch:
        pixels = (shape.grid[0] * shape.patch[0], shape.grid[1] * shape.patch[1])
        options |= {} if pixels == preprocessing.size else {"img_size": pixels}
    source = "as the file says" if told else "as published networks of its family and width have"
    note = f"its architecture was read off its tensors: {name} with {heads} attention heads, {source}"
    return Inferred(name, options, note)
