"""NumPy archives of named arrays, as JAX projects save their weights: read array by array, nothing unpickled."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.lib import format as npy
from torch import Tensor

from vitscope.core.errors import BadCheckpoint

NPY = ".npy"
HEADERS: dict[tuple[int, int], Any] = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def is_npz(entries: Sequence[zipfile.ZipInfo]) -> bool:
    return bool(entries) and all(entry.filename.endswith(NPY) for entry in entries)


def read_npz(path: Path, archive: zipfile.ZipFile) -> dict[str, Tensor]:
    """The arrays by name. Each must be as long as its header says before memory is taken for it."""
    state = {}
    for entry in archive.infolist():
        if entry.compress_type != zipfile.ZIP_STORED:
            raise BadCheckpoint(f"{path} is compressed: save its arrays again with numpy.savez and use that file")
        with archive.open(entry) as file:
            state[entry.filename.removesuffix(NPY)] = torch.from_numpy(_array(file, entry, path))
    return state


def _array(file: IO[bytes], entry: zipfile.ZipInfo, path: Path) -> np.ndarray:
    version = npy.read_magic(file)
    if version not in HEADERS:
        raise BadCheckpoint(f"{path}: the array {entry.filename} is of an unknown version {version}")
    shape, columns_first, dtype = HEADERS[version](file)
    if dtype.kind not in "fiu" or dtype.itemsize > 8:
        raise BadCheckpoint(f"{path}: {entry.filename} holds {dtype}, and weights are floating-point numbers")
    content = file.read(entry.file_size)  # stored, so no longer than the file itself
    if len(content) != math.prod(shape) * dtype.itemsize:
        raise BadCheckpoint(f"{path}: {entry.filename} is not as long as it says: download the file again")
    values = np.frombuffer(content, dtype).astype(dtype.newbyteorder("="))  # a copy, in our own order
    found: np.ndarray = values.reshape(shape, order="F" if columns_first else "C")
    return found
