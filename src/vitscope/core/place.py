"""The one place for weights and datasets: the folder that VITSCOPE_DATA names, or a study's `root`."""

from __future__ import annotations

import os
from pathlib import Path

from vitscope.core.reading import user_path


def data_root() -> Path:
    """$VITSCOPE_DATA, or ~/.cache/vitscope. Datasets are folders of it; official weights lie in its `weights/`."""
    return user_path(os.environ.get("VITSCOPE_DATA") or "~/.cache/vitscope")
