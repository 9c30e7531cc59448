"""A training checkpoint has many rooms; this finds the one with the weights and says why the others stay closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor

from vitscope.core.errors import BadCheckpoint
from vitscope.models.checkpoints.parts import some

# Entries that hold the network, best first: an average of the weights is what the training scripts evaluate.
HOLDERS = (
    "teacher",
    "target_encoder",
    "student",
    "state_dict_ema",
    "model_ema",
    "state_dict",
    "model_state_dict",
    "model_state",
    "model",
    "module",
)
BESIDE = {
    "student": "the student: the teacher, its running average, is what is evaluated",
    "encoder": "the context encoder: the target encoder, its running average, is what is evaluated",
    "predictor": "the predictor that only pre-training needs",
}
TRAINING_STATE = (
    "optimizer",
    "optimizer_state_dict",
    "optimizer_states",
    "opt",
    "scaler",
    "amp_scaler",
    "fp16_scaler",
    "lr_scheduler",
    "lr_schedulers",
    "scheduler",
    "loss",
    "dino_loss",
    "ibot_loss",
    "callbacks",
    "loops",
)
IGNORED = "left out as it was asked for:"
DEEPEST = 4  # nested holders, such as {"model": {"module": {...}}}


def unwrap(raw: Mapping[str, Any], ignore: Sequence[str] = ()) -> tuple[dict[str, Tensor], dict[str, str], str]:
    """The state dict in a checkpoint, what else the checkpoint held (key -> why not used), and where it was found.

    The place is the path of holders, such as "teacher" or "model.module"; "" if the file is a bare state dict.
    ignore: patterns of keys that somebody knows not to belong to the network.
    """
    dropped: dict[str, str] = {}
    place: list[str] = []
    current: Mapping[str, Any] = raw
    for _ in range(DEEPEST):
        current = _without(current, ignore, place, dropped)
        holder = next((h for h in HOLDERS if isinstance(current.get(h), Mapping)), None)
        if holder is None:
            break
        for key, value in current.items():
            if key != holder:
                dropped[".".join([*place, str(key)])] = _reason(key, value, holder)
        place.append(holder)
        current = current[holder]
    return _tensors(current), dropped, ".".join(place)


def _without(
    entries: Mapping[str, Any], ignore: Sequence[str], place: Sequence[str], dropped: dict[str, str]
) -> Mapping[str, Any]:
    for pattern in ignore:
        named = {key for key in entries if isinstance(key, str) and fnmatchcase(key, pattern)}
        dropped |= {".".join([*place, key]): f"{IGNORED} {pattern}" for key in named}
        entries = {key: value for key, value in entries.items() if key not in named}
    return entries


def _reason(key: Any, value: Any, holder: str) -> str:
    if not _holds_tensors(value) or key in TRAINING_STATE:
        return "training state, not weights"
    if key in BESIDE:
        return BESIDE[key]
    if key in HOLDERS:
        return f"a second set of weights: '{holder}' is what is used"
    raise BadCheckpoint(
        f"the entry '{key}' beside '{holder}' holds tensors of unknown purpose; remove it from the file"
    )


def _holds_tensors(value: Any, depth: int = 0) -> bool:
    if isinstance(value, Tensor):
        return True
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return False
    return depth < DEEPEST and any(_holds_tensors(item, depth + 1) for item in value)


def _readable(tensor: Tensor) -> bool:
    """Whether it holds its numbers themselves, in a type that can be computed with."""
    plain = tensor.layout == torch.strided and not tensor.is_quantized
    return plain and not (tensor.is_floating_point() and tensor.element_size() == 1)


def _tensors(state: Mapping[str, Any]) -> dict[str, Tensor]:
    """Check that a mapping is a state dict, and strip what parallel training and compilation put before every key."""
    if not state:
        raise BadCheckpoint("it holds no tensors at all")
    strange = [str(k) for k, v in state.items() if not (isinstance(k, str) and isinstance(v, Tensor))]
    if strange:
        raise BadCheckpoint(
            f"it is not a state dict: these entries are no tensors: {some(strange)}; "
            "save model.state_dict() alone and use that file"
        )
    if odd := [key for key, value in state.items() if not _readable(value)]:
        raise BadCheckpoint(
            f"{len(odd)} of its tensors are sparse, quantised or in 8-bit floats ({some(odd)}): save "
            "the weights as ordinary floating-point tensors (float32 or float16) and use that file"
        )
    for prefix in ("_orig_mod.", "module.", "_orig_mod."):
        if all(key.startswith(prefix) for key in state):
            state = {key[len(prefix) :]: value for key, value in state.items()}
    return dict(state)
