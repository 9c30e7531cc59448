"""A taught network as a model card: weights in safetensors, everything about them in TOML."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors.torch import save

from vitscope.core.digest import digest_of_tensors
from vitscope.core.files import write_atomically, write_text
from vitscope.teaching.loop import Point
from vitscope.teaching.vit import ViT


def write_card(
    folder: Path,
    stem: str,
    vit: ViT,
    *,
    name: str,
    architecture: str,
    options: Mapping[str, Any],
    teaching: str,
    provenance: Mapping[str, Any],
    taught_on: Mapping[str, Any] | None = None,
    half: bool = False,
) -> Path:
    """Write `<stem>.safetensors` and `<stem>.toml` into `folder`; returns the card's path.

    taught_on: the dataset's title, and whether its labels were used; half: store float16, half the size.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {key: value.detach().cpu().contiguous() for key, value in vit.state_dict().items()}
    if half:
        tensors = {key: value.half() if value.is_floating_point() else value for key, value in tensors.items()}
    weights = folder / f"{stem}.safetensors"
    write_atomically(weights, lambda to: to.write_bytes(save(tensors, metadata={"format": "pt"})))
    card = {
        "name": name,
        "architecture": architecture,
        "weights": weights.name,
        "teaching": teaching,
        **({} if taught_on is None else {"taught_on": dict(taught_on)}),
        "options": dict(options),
        "preprocessing": {
            "size": list(vit.patch_embed.img_size),
            "mean": [0.5, 0.5, 0.5],
            "std": [0.5, 0.5, 0.5],
            "interpolation": "bicubic",
        },
        "provenance": {**provenance, "digest": digest_of_tensors(tensors)},
    }
    path = folder / f"{stem}.toml"
    write_text(path, as_toml(card))
    return path


def learning_curve(points: Sequence[Point], most: int = 40) -> list[dict[str, float]]:
    """At most `most` points for the card, evenly spread, the last one among them; with the best layer's k-NN."""
    step = max(1, -(-len(points) // most))
    return [
        {
            "images": point.images,
            "cpu_seconds": round(point.cpu_seconds),
            "loss": round(point.loss, 4),
            **{f"knn_{name}": max((s["cls"] or []) + s["patch"]) for name, s in point.knn.items()},
        }
        for point in points[::-1][::step][::-1]
    ]


def as_toml(document: Mapping[str, Any], table: str = "") -> str:
    """Nested mappings, lists of scalars or of flat mappings, strings, numbers and booleans, as TOML."""
    plain = {key: value for key, value in document.items() if not isinstance(value, Mapping)}
    text = "".join(f"{_key(key)} = {_value(value)}\n" for key, value in plain.items())
    for key, value in document.items():
        if isinstance(value, Mapping):
            path = f"{table}.{_key(key)}" if table else _key(key)
            text += f"\n[{path}]\n{as_toml(value, path)}"
    return text


def _key(key: str) -> str:
    return key if key and all(c.isascii() and (c.isalnum() or c in "-_") for c in key) else json.dumps(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=True)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    items = [_value(item) for item in value]
    one_line = "[" + ", ".join(items) + "]"
    return one_line if len(one_line) < 100 else "[\n" + "".join(f"    {item},\n" for item in items) + "]"
