"""Who does the jobs of a plan: this process, several beside each other, or a Ray cluster; with the same results."""

from __future__ import annotations

from vitscope.pipeline.engines.crew import Engine
from vitscope.pipeline.engines.local import Local
from vitscope.pipeline.engines.ray import Ray

__all__ = ["Engine", "Local", "Ray"]
