"""Real photos, videos and networks, for whoever has them.

VITSCOPE_DATA names a folder with the official layouts of COCO in `coco/` and of DAVIS in `davis/`; VITSCOPE_REAL one
with model cards of trained networks.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("VITSCOPE_DATA", "there is none"))
REAL = Path(os.environ.get("VITSCOPE_REAL", "there is none"))

needs_coco = pytest.mark.skipif(
    not (DATA / "coco/annotations/instances_val2017.json").is_file(),
    reason="VITSCOPE_DATA names no folder with COCO's val2017 in coco/",
)
needs_davis = pytest.mark.skipif(
    not (DATA / "davis/ImageSets/2017/val.txt").is_file(), reason="VITSCOPE_DATA names no folder with DAVIS in davis/"
)


def needs_network(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        not (REAL / f"{name}.toml").is_file(), reason=f"VITSCOPE_REAL names no folder with the card {name}.toml"
    )


def photos(limit: int) -> list[Path]:
    """Some of COCO's photos; none where there are none."""
    return sorted((DATA / "coco/val2017").glob("*.jpg"))[:limit]
