"""Real photos, for whoever has them: VITSCOPE_DATA names a folder with COCO's official layout in `coco/`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("VITSCOPE_DATA", "there is none"))

needs_coco = pytest.mark.skipif(
    not (DATA / "coco/annotations/instances_val2017.json").is_file(),
    reason="VITSCOPE_DATA names no folder with COCO's val2017 in coco/",
)


def photos(limit: int) -> list[Path]:
    """Some of COCO's photos; none where there are none."""
    return sorted((DATA / "coco/val2017").glob("*.jpg"))[:limit]
