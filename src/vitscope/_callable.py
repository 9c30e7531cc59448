"""Lets a folder of ideas also be called: `vitscope.attention([...])` beside `vitscope.attention.distance`."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class CallableModule(ModuleType):
    _target: str  # "module:function"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        module, _, function = self._target.partition(":")
        return getattr(import_module(module), function)(*args, **kwargs)


def make_callable(module: str, target: str) -> None:
    """Calling module `module` calls `target` ("module:function"), imported only then."""
    this = sys.modules[module]
    this.__class__ = CallableModule
    this._target = target  # type: ignore[attr-defined]
