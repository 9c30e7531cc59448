"""Tests of what only newer releases of other people's packages have; the oldest that are allowed are tested too."""

from __future__ import annotations

from importlib.metadata import version

import pytest


def since(package: str, *release: int) -> pytest.MarkDecorator:
    """Leaves a test out beside an older release."""
    found = tuple(int(part) for part in version(package).split(".")[: len(release)])
    needed = ".".join(map(str, release))
    return pytest.mark.skipif(found < release, reason=f"{package} {version(package)} is older than {needed}")
