"""WHO is examined: the registry of models, official checkpoint formats, and the one observed forward pass.

Imports nothing of vitscope but errors, digests and devices. Model names are looked at here and nowhere else.
"""

from vitscope.models.backbone import Backbone
from vitscope.models.identity import identify
from vitscope.models.layout import Grid, TokenLayout
from vitscope.models.listing import listings
from vitscope.models.preprocessing import Preprocessing
from vitscope.models.registry import load
from vitscope.models.trace import Observer

__all__ = ["Backbone", "Grid", "Observer", "Preprocessing", "TokenLayout", "identify", "listings", "load"]
