"""What a name stands for, found without loading it: what decides its numbers, and how large it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import timm
import torch

from vitscope.digest import digest_of_file
from vitscope.errors import VitscopeError
from vitscope.models.backbone import layout_of
from vitscope.models.card import read_card
from vitscope.models.registry import BASELINES, Size, architecture_of, build, find_entry, zoo_card
from vitscope.models.trace import attention_module, check_observable
from vitscope.models.weights import get_weights


def identify(model: str | Path, *, arch: str | None = None, size: Size = None, seed: int = 0) -> dict[str, Any]:
    """Everything that decides what `load` would return, found without building the network.

    Missing weights are an error here as there, so that a study tells before it starts.
    """
    text = str(model)
    about: dict[str, Any] = {"size": size, "timm": timm.__version__}
    kind, _, architecture = text.partition(":")
    if kind in BASELINES and architecture:
        architecture, options = architecture_of(architecture)
        known = {"baseline": kind, "architecture": architecture, "options": options}
        return about | known | {"seed": seed, "torch": torch.__version__}
    if text.startswith("zoo/") or text.endswith(".toml"):
        card = zoo_card(text) if text.startswith("zoo/") else read_card(Path(text))
        if not card.weights.is_file():
            raise VitscopeError(f"model card '{card.name}': its weights file {card.weights} does not exist")
        described = card.model_dump(mode="json", exclude={"weights", "provenance"})
        return about | {"card": described, "weights": digest_of_file(card.weights)}
    if arch is not None:
        if not Path(text).is_file():
            raise VitscopeError(f"there is no weights file {text}")
        return about | {"architecture": arch, "weights": digest_of_file(Path(text))}
    entry = find_entry(text)
    path = get_weights(entry, download=False)
    described = {"architecture": entry.architecture, "options": dict(entry.options), "norm": entry.normalisation}
    return about | described | {"weights": digest_of_file(path)}


@dataclass(frozen=True)
class ModelShape:
    """The size of a network, known without its weights."""

    parameters: int
    tokens: int
    depth: int
    heads: int


def shape_of_model(identity: Mapping[str, Any], name: str) -> ModelShape:
    """The shape of an identified model, from a network without memory (torch's meta device)."""
    described = identity.get("card", identity)
    options = dict(described.get("options", {}))
    with torch.device("meta"):
        module, preprocessing = build(described["architecture"], options, identity.get("size"))
    check_observable(module, name)
    layout = layout_of(module, name, preprocessing.size)
    heads = int(attention_module(module.blocks[0]).num_heads)  # type: ignore[index,arg-type]
    parameters = sum(p.numel() for p in module.parameters())
    return ModelShape(parameters, layout.tokens, len(module.blocks), heads)  # type: ignore[arg-type]
