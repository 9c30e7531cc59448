"""The versions of what computes: part of the identity of every number."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import version

from vitscope import __version__


@cache
def computing_versions() -> dict[str, str]:
    """Of the packages that can change a number."""
    packages = {name: version(name) for name in ("torch", "timm", "numpy", "pillow", "scikit-learn")}
    return {"vitscope": __version__, **packages}


def versions() -> dict[str, str]:
    """The same with Python's, for people."""
    return {**computing_versions(), "python": platform.python_version()}
