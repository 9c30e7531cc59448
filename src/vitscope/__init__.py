"""vitscope shows what a Vision Transformer became through the way it was taught."""

from vitscope import _torchvision as _torchvision  # must come before anything imports timm

__version__ = "0.1.0"
