"""The official checkpoint formats, found by their keys and never by file name, as timm state dicts.

Nothing in a file is executed; every key of a file is used, or dropped for a stated reason, or named in an error.
This folder imports torch, timm and safetensors only.

    read.py       a file -> nested mappings of tensors, safely
    wrappers.py   nested mappings -> the one state dict in them that holds the weights
    formats.py    which family a state dict is of; one file per family does the renaming
    fit.py        a converted state dict against a module: names, shapes, heads, resampling
    load.py       all of it: `load_checkpoint(module, path)`
"""

from vitscope import _torchvision as _torchvision  # must come before anything imports timm

# isort: split
from vitscope.models.checkpoints.converted import Converted, Hints
from vitscope.models.checkpoints.formats import convert
from vitscope.models.checkpoints.load import LoadReport, check_checkpoint, load_checkpoint
from vitscope.models.checkpoints.propose import doubt, propose_architecture
from vitscope.models.checkpoints.read import files_of, read_checkpoint
from vitscope.models.checkpoints.shape import Shape, shape_of

__all__ = [
    "Converted",
    "Hints",
    "LoadReport",
    "Shape",
    "check_checkpoint",
    "convert",
    "doubt",
    "files_of",
    "load_checkpoint",
    "propose_architecture",
    "read_checkpoint",
    "shape_of",
]
