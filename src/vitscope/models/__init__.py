"""WHO is examined: one description for every model, official checkpoint formats, and the one observed forward pass.

Imports only `core` and `data`. Model names are parsed here and nowhere else.
"""

from vitscope import _torchvision as _torchvision  # must come before anything imports timm

# isort: split
from vitscope.models.backbone import Backbone
from vitscope.models.layout import Grid, TokenLayout
from vitscope.models.listing import listings
from vitscope.models.shape import ModelShape
from vitscope.models.spec import Spec, load_model, resolve
from vitscope.models.trace import Observer

__all__ = ["Backbone", "Grid", "ModelShape", "Observer", "Spec", "TokenLayout", "listings", "load_model", "resolve"]
