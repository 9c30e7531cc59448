"""Kinds of heads of trained networks, for whoever has them: VITSCOPE_REAL names a folder with their model cards.

Expected names are by eye, from the heads' aligned maps (docs/real-networks.md) or from the paper.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import vitscope
from tests.support.real import DATA, REAL, needs_coco, needs_network
from vitscope.attention.analysis import Attention
from vitscope.attention.head_kinds import describe
from vitscope.attention.kinds import KINDS, LATE_KINDS

BY_EYE = {  # layer and head from 1
    "fs-b16-int8": {
        (1, 5): "strict local", (1, 7): "strict local", (2, 5): "offset local: up", (2, 12): "offset local: right",
        (2, 4): "offset local: left", (3, 7): "offset local: down", (2, 6): "axial local: row", (3, 6): "soft local",
        (4, 4): "soft local", (10, 1): "global",
    },
    "dinov2-s14": {
        (4, 2): "offset local: down", (4, 5): "offset local: up", (2, 2): "offset local: right",
        (3, 4): "offset local: left", (2, 4): "strict local", (5, 2): "axial local: row", (7, 2): "soft local",
        (9, 5): "soft local", (1, 1): "global",
    },
}  # fmt: skip
LATE = {"fs-b16-int8": "sparse-repeating", "dinov2-s14": "object-centred"}


@pytest.mark.slow
@needs_coco
@pytest.mark.parametrize("name", [pytest.param(name, marks=needs_network(name)) for name in BY_EYE])
def test_heads_are_named_as_by_eye(name: str, tmp_path: Path) -> None:
    photos = vitscope.images(DATA / "coco/val2017", limit=32)
    maps = vitscope.evaluate([str(REAL / f"{name}.toml")], [photos], [Attention()], store=tmp_path).maps
    kind, offset, axis = (maps[f"{name}/{part}"] for part in ("kind", "kind.offset", "kind.axis"))
    for (layer, head), expected in BY_EYE[name].items():
        place = (layer - 1, head - 1)
        found = describe(KINDS[int(kind[place])], offset[place].long().tolist(), bool(axis[place]))
        assert found == expected, f"layer {layer}, head {head}"
    late = maps[f"{name}/kind.late"][9:]
    assert (late == LATE_KINDS.index(LATE[name])).float().mean() > 0.7
