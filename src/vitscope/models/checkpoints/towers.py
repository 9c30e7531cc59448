"""Where in a state dict an image network starts: the prefix in front of its patch embedding."""

from __future__ import annotations

from collections.abc import Iterable

from vitscope.core.errors import BadCheckpoint


def prefixes(keys: Iterable[str], anchor: str) -> list[str]:
    """What stands before `anchor` in every key that ends with it.

    >>> prefixes(["backbone.patch_embed.proj.weight", "backbone.norm.bias"], "patch_embed.proj.weight")
    ['backbone.']
    """
    return sorted(
        key[: -len(anchor)] for key in keys if key == anchor or (key.endswith(anchor) and key[-len(anchor) - 1] == ".")
    )


def single_prefix(keys: Iterable[str], anchor: str) -> str:
    """The prefix of the one network in the file; two networks in one file are ambiguous."""
    found = prefixes(keys, anchor)
    if len(found) != 1:
        names = ", ".join(f"'{prefix}'" for prefix in found) or "none"
        raise BadCheckpoint(
            f"one image network is expected in the file, found {names}; save the one that is meant alone"
        )
    return found[0]
