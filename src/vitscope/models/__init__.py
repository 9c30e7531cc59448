"""WHO is examined: one description for every model, official checkpoint formats, and the one observed forward pass.

Imports only `core` and `data`. Model names are parsed here and nowhere else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOME = {  # imported when it is asked for: a list of names need not wait for timm
    "Backbone": "backbone",
    "Grid": "layout",
    "TokenLayout": "layout",
    "listings": "listing",
    "ModelShape": "shape",
    "Spec": "spec",
    "load_model": "spec",
    "resolve": "spec",
    "Observer": "trace",
}

if TYPE_CHECKING:
    from vitscope.core.observer import Observer as Observer
    from vitscope.models.backbone import Backbone as Backbone
    from vitscope.models.layout import Grid as Grid
    from vitscope.models.layout import TokenLayout as TokenLayout
    from vitscope.models.listing import listings as listings
    from vitscope.models.shape import ModelShape as ModelShape
    from vitscope.models.spec import Spec as Spec
    from vitscope.models.spec import load_model as load_model
    from vitscope.models.spec import resolve as resolve


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'vitscope.models' has no attribute '{name}'")
    return getattr(import_module(f"vitscope.models.{_HOME[name]}"), name)
