"""Names for things by what went into them: short, stable digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

LENGTH = 16  # hexadecimal digits shown and stored


def digest_of(value: Any) -> str:
    """Digest of plain data (anything JSON can write), independent of the order of keys.

    >>> digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.blake2b(text.encode(), digest_size=32).hexdigest()[:LENGTH]


def digest_of_strings(lines: Iterable[str]) -> str:
    """Digest of a list of names, in order."""
    state = hashlib.blake2b(digest_size=32)
    rest = iter(lines)
    while some := list(islice(rest, 4096)):
        state.update("\0".join([*some, ""]).encode())
    return state.hexdigest()[:LENGTH]


def digest_of_file(path: Path) -> str:
    """Digest of a file's bytes."""
    state = hashlib.blake2b(digest_size=32)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            state.update(block)
    return state.hexdigest()[:LENGTH]


def digest_of_tensors(tensors: Mapping[str, Tensor]) -> str:
    """Digest of named tensors: names, shapes, types and bytes, independent of their order."""
    state = hashlib.blake2b(digest_size=32)
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        state.update(f"{name}|{tuple(tensor.shape)}|{tensor.dtype}".encode())
        state.update(tensor.reshape(-1).view(torch.uint8).numpy().data if tensor.numel() else b"")
    return state.hexdigest()[:LENGTH]
