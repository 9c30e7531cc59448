"""A state dict being taken apart: each key is used once or dropped for a reason, and what is left is an error."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from torch import Tensor

from vitscope.core.errors import BadCheckpoint

SHOWN = 4  # keys named in an error; the rest are counted


def some(keys: Iterable[str]) -> str:
    """The first few keys and how many more there are.

    >>> some(["a", "b", "c", "d", "e", "f"])
    'a, b, c, d and 2 more'
    """
    names = sorted(keys)
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")


class Parts:
    """What is `left` of a file, what became of it (`state`, in timm's names), and what was `dropped` and why."""

    def __init__(self, state: Mapping[str, Tensor]) -> None:
        self.left: dict[str, Tensor] = dict(state)
        self.state: dict[str, Tensor] = {}
        self.dropped: dict[str, str] = {}
        self._prefix = ""  # of the names in the file, so that `dropped` and errors name the file's own keys

    def drop(self, reason: str, *patterns: str) -> int:
        """Drop every remaining key that one of the regular expressions matches from its start."""
        pattern = re.compile("|".join(f"(?:{p})" for p in patterns))
        matched = [key for key in self.left if pattern.match(key)]
        for key in matched:
            del self.left[key]
            self.dropped[self._prefix + key] = reason
        return len(matched)

    def enter(self, prefix: str) -> None:
        """Go into the network under `prefix`; keys outside it must have been dropped or used before."""
        if outside := [key for key in self.left if not key.startswith(prefix)]:
            raise BadCheckpoint(f"keys beside the network under '{prefix}' are unknown: {some(outside)}")
        self.left = {key[len(prefix) :]: value for key, value in self.left.items()}
        self._prefix += prefix

    def rename(self, rules: Sequence[tuple[str, str]]) -> None:
        """Rewrite the remaining keys: each rule is a regular expression and its replacement, applied in order."""
        renamed: dict[str, Tensor] = {}
        for key, value in self.left.items():
            new = key
            for pattern, replacement in rules:
                new = re.sub(pattern, replacement, new)
            if new in renamed:
                raise BadCheckpoint(f"two keys mean '{new}', one of them {self._prefix}{key}: the file mixes formats")
            renamed[new] = value
        self.left = renamed

    def take(self, key: str) -> Tensor:
        """Remove one key and return its tensor, for a format that has to compute with it."""
        if key not in self.left:
            raise BadCheckpoint(f"the key {self._prefix}{key} is missing")
        return self.left.pop(key)

    def keep(self, key: str, tensor: Tensor) -> None:
        """Put a tensor under its timm name."""
        self._check_numbers(key, tensor)
        self.state[key] = tensor

    def keep_matching(self, *patterns: str) -> None:
        """Keep, under their present names, the remaining keys that one of the expressions matches entirely."""
        pattern = re.compile("|".join(f"(?:{p})" for p in patterns))
        for key in [key for key in self.left if pattern.fullmatch(key)]:
            self.keep(key, self.left.pop(key))

    def _check_numbers(self, key: str, tensor: Tensor) -> None:
        """Whole numbers are weights only together with scales that stand elsewhere: as they are, they mean nothing."""
        if not tensor.is_floating_point():
            kind = str(tensor.dtype).removeprefix("torch.")
            raise BadCheckpoint(
                f"{self._prefix}{key} is of type {kind}, and weights are floating-point numbers: save the weights in "
                "float32 or float16 (of a quantised network, those before quantisation) and use that file"
            )

    def finish(self) -> None:
        """Everything must have found its place."""
        if self.left:
            raise BadCheckpoint(
                f"{len(self.left)} keys are unknown: {some(self._prefix + key for key in self.left)}; "
                "leave them out with --ignore-keys if they are not part of the image network"
            )
