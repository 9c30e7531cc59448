"""The heads that the paper's authors named by eye, and how far the automatic names agree with theirs.

The labels are of the paper's weights. A head's number means nothing in other weights, even of the same architecture and
teaching; a model that only resembles one of the paper's is compared all the same, and that is said.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from torch import Tensor

from vitscope.attention.kinds import KINDS
from vitscope.models.catalogue import CATALOGUE

LABELS = Path(__file__).with_name("hand_labels.json")


@dataclass(frozen=True)
class HandLabel:
    """One head (counted from 0, as published) and the kind that its map was given by eye."""

    layer: int
    head: int
    kind: str


@dataclass(frozen=True)
class Agreement:
    """The labels of one of the paper's models and the automatic names of the same heads.

    exact: whether the model is the paper's, by its name; otherwise it is like it in architecture and teaching.
    """

    of: str
    exact: bool
    pairs: tuple[tuple[HandLabel, str], ...]

    @property
    def agreed(self) -> int:
        return sum(label.kind == name for label, name in self.pairs)


@cache
def hand_labels() -> dict[str, tuple[HandLabel, ...]]:
    """Short name of a model of the study, such as `dino-b16` -> its labelled heads."""
    models = json.loads(LABELS.read_text())["models"]
    return {
        name: tuple(HandLabel(layer, head, kind) for kind, places in kinds.items() for layer, head in places)
        for name, kinds in models.items()
    }


def labelled_as(about: Mapping[str, Any], teaching: str) -> tuple[str, bool] | None:
    """Which of the labelled models this is, and whether by name; None if it is like none of them.

    about: an entry of provenance, with the model's name and architecture.

    >>> labelled_as({"model": "dino-b16"}, "dino")
    ('dino-b16', True)
    >>> labelled_as({"model": "mine.pth", "architecture": "vit_base_patch16_224"}, "mae")
    ('mae-b16', False)
    """
    if (name := str(about.get("model"))) in hand_labels():
        return name, True
    for name in hand_labels():
        entry = CATALOGUE[name]
        if (entry.architecture, entry.teaching) == (about.get("architecture"), teaching):
            return name, False
    return None


def compare(kind: Tensor, about: Mapping[str, Any], teaching: str) -> Agreement | None:
    """Automatic kinds (L, H), as indices into KINDS, against the labels; None if there are none for such a model."""
    found = labelled_as(about, teaching)
    if found is None:
        return None
    name, exact = found
    labels = [label for label in hand_labels()[name] if label.layer < kind.shape[0] and label.head < kind.shape[1]]
    return Agreement(name, exact, tuple((label, KINDS[int(kind[label.layer, label.head])]) for label in labels))
