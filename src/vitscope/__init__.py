"""vitscope shows what a Vision Transformer became through the way it was taught.

import vitscope
results = vitscope.attention(["dino-b16", "mae-b16"], images="photos")
results.table  # a tidy polars table
"""

from vitscope import _torchvision as _torchvision  # must come before anything imports timm

__version__ = "0.1.0"

from vitscope import attention, features
from vitscope.errors import VitscopeError
from vitscope.models import load
from vitscope.results import Results

__all__ = ["Results", "VitscopeError", "attention", "features", "load"]
