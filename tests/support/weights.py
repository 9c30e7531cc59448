"""Random weights in the formats of the official files, for every model of the paper's study.

Names and axes are spelled out from the projects' own model code and share nothing with the code under test.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import vitscope._torchvision  # noqa: F401  (makes timm importable)

# isort: split
import numpy as np
import timm
import torch
from torch import Tensor

from tests.models.checkpoints.conftest import beit_pretraining_file, clip_full, moco_training_file
from tests.models.checkpoints.test_torchscript_archives import tree_of
from vitscope.models.catalogue import CATALOGUE, Entry

State = dict[str, Tensor]


def augreg_arrays(state: State, heads: int) -> dict[str, np.ndarray]:
    """A ViT as Google's JAX code saves it: Flax's names, kernels input x output, heads apart, and a classifier."""
    width = state["cls_token"].shape[-1]
    out = {
        "cls": state["cls_token"],
        "embedding/kernel": state["patch_embed.proj.weight"].permute(2, 3, 1, 0),
        "embedding/bias": state["patch_embed.proj.bias"],
        "Transformer/posembed_input/pos_embedding": state["pos_embed"],
        "Transformer/encoder_norm/scale": state["norm.weight"],
        "Transformer/encoder_norm/bias": state["norm.bias"],
        "head/kernel": torch.zeros(width, 10),
        "head/bias": torch.zeros(10),
    }
    for block in {int(key.split(".")[1]) for key in state if key.startswith("blocks.")}:
        ours, theirs = f"blocks.{block}.", f"Transformer/encoderblock_{block}/"
        for number, norm in ((0, "norm1"), (2, "norm2")):
            out[f"{theirs}LayerNorm_{number}/scale"] = state[f"{ours}{norm}.weight"]
            out[f"{theirs}LayerNorm_{number}/bias"] = state[f"{ours}{norm}.bias"]
        for number in (0, 1):
            out[f"{theirs}MlpBlock_3/Dense_{number}/kernel"] = state[f"{ours}mlp.fc{number + 1}.weight"].T
            out[f"{theirs}MlpBlock_3/Dense_{number}/bias"] = state[f"{ours}mlp.fc{number + 1}.bias"]
        attention = f"{theirs}MultiHeadDotProductAttention_1/"
        weights, biases = (state[f"{ours}attn.qkv.{what}"].chunk(3) for what in ("weight", "bias"))
        for name, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True):
            out[f"{attention}{name}/kernel"] = weight.T.reshape(width, heads, -1)
            out[f"{attention}{name}/bias"] = bias.reshape(heads, -1)
        out[f"{attention}out/kernel"] = state[f"{ours}attn.proj.weight"].T.reshape(heads, -1, width)
        out[f"{attention}out/bias"] = state[f"{ours}attn.proj.bias"]
    return {key: value.contiguous().numpy() for key, value in out.items()}


def _augreg(path: Path, state: State, heads: int) -> None:
    np.savez(path, **augreg_arrays(state, heads))  # type: ignore[arg-type]


def _clip(path: Path, state: State, heads: int) -> None:
    half = {k: v.half() if v.is_floating_point() else v for k, v in clip_full(state, archive=True).items()}
    torch.jit.save(torch.jit.script(tree_of(half)), str(path))


def _plain(path: Path, state: State, heads: int) -> None:
    torch.save(state, path)


def _moco(path: Path, state: State, heads: int) -> None:
    torch.save(moco_training_file(state), path)


def _mae(path: Path, state: State, heads: int) -> None:
    torch.save({"model": state}, path)


def _beit(path: Path, state: State, heads: int) -> None:
    torch.save(beit_pretraining_file(state), path)


WRITERS: dict[str, Callable[[Path, State, int], None]] = {
    "fs": _augreg,
    "clip": _clip,
    "dino": _plain,
    "moco": _moco,
    "mae": _mae,
    "beit": _beit,
}


def study_entries() -> list[Entry]:
    return [entry for entry in CATALOGUE.values() if entry.group == "study"]


def write_weights(folder: Path, entry: Entry, seed: int) -> Path:
    """The official file of a model, at its real size, with random weights."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    module: Any = timm.create_model(entry.architecture, num_classes=0, **entry.options)
    path = folder / entry.files[0]
    WRITERS[entry.teaching](path, module.state_dict(), module.blocks[0].attn.num_heads)
    return path
