"""A converted checkpoint against a module: the same architecture, name by name, shape by shape, head by head."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from timm.layers import QuickGELU
from torch import Tensor, nn

from vitscope.core.errors import BadCheckpoint
from vitscope.models.checkpoints.converted import Converted
from vitscope.models.checkpoints.parts import some
from vitscope.models.checkpoints.propose import propose_architecture
from vitscope.models.checkpoints.resample import resample_positions, resample_relative
from vitscope.models.checkpoints.shape import shape_of

TABLE = ".attn.relative_position_bias_table"
# Two names of the same thing; either is used if the module has it and the file has the other.
SYNONYMS = (
    (r"^norm\.", "fc_norm."),  # before or after pooling: timm's BEiT and some fine-tuned files
    (r"^fc_norm\.", "norm."),
    (r"\.gamma_([12])$", r".ls\1.gamma"),  # DeiT-III
    (r"\.ls([12])\.gamma$", r".gamma_\1"),
)


@dataclass(frozen=True)
class Fitted:
    """A state dict that the module takes as it is."""

    state: dict[str, Tensor]
    dropped: dict[str, str] = field(default_factory=dict)
    resampled: dict[str, str] = field(default_factory=dict)  # key -> "14 x 14 -> 28 x 28"


def fit(converted: Converted, module: nn.Module) -> Fitted:
    """Make a converted state dict fit a timm module without classifier, or say in one sentence why it cannot."""
    name = architecture_name(module)
    wanted = module.state_dict()
    _check_architecture(converted, wanted, name)
    _check_heads(converted, module, name)
    _check_activation(converted, module, name)
    state = _with_synonyms(converted.state, wanted)
    dropped = {key: why for key in state.keys() - wanted.keys() if (why := _needless(key, state[key]))}
    state = {key: value for key, value in state.items() if key not in dropped}
    _check_names(converted, state, wanted, name)
    resampled = _resample(state, module)
    _check_shapes(state, wanted, name)
    _check_finite(state)
    return Fitted(state, dropped, resampled)


def _needless(key: str, value: Tensor) -> str:
    """Why a tensor for which the architecture has no place changes nothing that is studied; nothing if it may."""
    if key.startswith("attn_pool."):
        return "attention pooling, which the architecture does not have"
    if key.endswith((".attn.q_bias", ".attn.v_bias")) and not value.is_meta and not value.any():
        return "a bias of zero, which the architecture leaves out"
    return ""


def architecture_name(module: nn.Module) -> str:
    config: Any = getattr(module, "pretrained_cfg", None) or {}
    return str(config.get("architecture") or type(module).__name__)


def _try(converted: Converted, name: str) -> str:
    """The remedy: another architecture, if one is known."""
    better = propose_architecture(converted)
    return f"; use the architecture {better}" if better and better != name else ""


def _check_architecture(converted: Converted, wanted: Mapping[str, Tensor], name: str) -> None:
    found, expected = converted.shape, shape_of(wanted)
    if found.size != expected.size or (found.registers and found.registers != expected.registers):
        raise BadCheckpoint(
            f"it holds a network of {found.describe()}, but {name} has {expected.describe()}"
            + (_try(converted, name) or "; use the architecture of the file")
        )


def _check_heads(converted: Converted, module: nn.Module, name: str) -> None:
    """Heads leave no trace in most tensors: with the wrong number everything loads and every attention map is wrong."""
    expected = converted.hints.heads or converted.shape.heads
    heads = getattr(getattr(module.blocks[0], "attn", None), "num_heads", None)  # type: ignore[index]
    if expected and heads and heads != expected:
        raise BadCheckpoint(
            f"its {converted.family} network of width {converted.shape.width} has {expected} attention heads, "
            f"but {name} has {heads}; build the architecture with num_heads={expected}"
        )


def _check_activation(converted: Converted, module: nn.Module, name: str) -> None:
    if converted.hints.activation != "quick_gelu":
        return
    activation = getattr(getattr(module.blocks[0], "mlp", None), "act", None)  # type: ignore[index]
    if activation is not None and not isinstance(activation, QuickGELU):
        raise BadCheckpoint(
            f"it was trained with QuickGELU, but {name} computes {type(activation).__name__}"
            + (_try(converted, name) or "; use the architecture with `quickgelu` in its name")
        )


def _with_synonyms(state: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    renamed = {}
    for key, value in state.items():
        others = (re.sub(pattern, other, key) for pattern, other in SYNONYMS if key not in wanted)
        renamed[next((other for other in others if other in wanted and other not in state), key)] = value
    return renamed


def _check_names(converted: Converted, state: Mapping[str, Tensor], wanted: Mapping[str, Tensor], name: str) -> None:
    surplus, missing = state.keys() - wanted.keys(), wanted.keys() - state.keys()
    if surplus or missing:
        complaints = [f"{name} has no place for {len(surplus)} of its keys ({some(surplus)})"] if surplus else []
        complaints += [f"it lacks {len(missing)} that {name} needs ({some(missing)})"] if missing else []
        heads = ", or leave out with --ignore-keys what is not part of the network" if not missing else ""
        remedy = _try(converted, name) or "; use the architecture of the file"
        raise BadCheckpoint(" and ".join(complaints) + remedy + heads)


def _resample(state: dict[str, Tensor], module: nn.Module) -> dict[str, str]:
    """Positions for the module's input size, in place; what was resampled and from where to where."""
    grid = getattr(getattr(module, "patch_embed", None), "grid_size", None)
    if grid is None:
        return {}
    target = (int(grid[0]), int(grid[1]))
    done = {}
    for key in state:
        if key == "pos_embed" and state[key].ndim == 3:
            prefix = 0 if getattr(module, "no_embed_class", False) else int(getattr(module, "num_prefix_tokens", 0))
            state[key], source = resample_positions(state[key], target, prefix)
        elif key.endswith(TABLE) and state[key].ndim == 2:
            state[key], source = resample_relative(state[key], target)
        else:
            continue
        if source != target:
            done[key] = f"{source[0]} x {source[1]} -> {target[0]} x {target[1]}"
    return done


def _check_shapes(state: Mapping[str, Tensor], wanted: Mapping[str, Tensor], name: str) -> None:
    wrong = [
        f"{key} is {_shape(value)} instead of {_shape(wanted[key])}"
        for key, value in state.items()
        if value.shape != wanted[key].shape
    ]
    if wrong:
        raise BadCheckpoint(f"shapes differ from {name}'s: {some(wrong)}; use the architecture of the file")


def _shape(tensor: Tensor) -> str:
    return "x".join(str(n) for n in tensor.shape) or "a scalar"


def _check_finite(state: Mapping[str, Tensor]) -> None:
    if absent := [key for key, value in state.items() if value.is_meta]:
        raise BadCheckpoint(f"{len(absent)} tensors have a shape but no values ({some(absent)}): save them from memory")
    broken = [key for key, value in state.items() if value.is_floating_point() and not torch.isfinite(value).all()]
    if broken:
        raise BadCheckpoint(
            f"{len(broken)} tensors hold NaN or infinity ({some(broken)}): "
            "the training diverged or the file is damaged; use another checkpoint"
        )
