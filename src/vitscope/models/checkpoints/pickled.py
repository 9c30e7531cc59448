"""PyTorch's own files, through its restricted unpickler: tensors and plain data, nothing that runs.

Official training files also carry their settings: an argparse namespace, paths, NumPy numbers of a learning-rate
schedule. Those names are replaced by an empty stand-in; the real classes are never touched. Any other name is refused.
"""

from __future__ import annotations

import pickle
import re
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import torch

from vitscope.core.errors import BadCheckpoint
from vitscope.core.pickles import check_pickle

SETTINGS = (
    "argparse.Namespace",
    "pathlib.Path",
    "pathlib.PosixPath",
    "pathlib.WindowsPath",
    "pathlib.PurePosixPath",
    "pathlib._local.PosixPath",
    "pathlib._local.WindowsPath",
    "numpy.dtype",
    "numpy.ndarray",
    "numpy.core.multiarray.scalar",
    "numpy._core.multiarray.scalar",
    "numpy.core.multiarray._reconstruct",
    "numpy._core.multiarray._reconstruct",
)
LARGEST_NAMES = 64 << 20  # bytes of names, shapes and settings
LEGACY_PICKLES = 5  # of the old format: magic number, version, system, content, order of the storages
_GLOBAL = re.compile(r"GLOBAL (\S+)")


class StandIn:
    """Stands where a training setting was; holds nothing and does nothing."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> StandIn:
        return super().__new__(cls)

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        pass

    def __setstate__(self, _state: Any) -> None:
        pass


def read_pickled(path: Path, *, mmap: bool) -> Any:
    """What torch.save wrote (the zip format can be mapped into memory, the legacy one cannot)."""
    try:
        _check_ends(path, zipped=mmap)
        with torch.serialization.safe_globals([(StandIn, name) for name in SETTINGS]):
            return torch.load(str(path), map_location="cpu", weights_only=True, mmap=mmap)
    except pickle.UnpicklingError as error:
        if named := _GLOBAL.search(str(error)):
            raise BadCheckpoint(
                f"{path} needs {named[1]} to be read, and running what a file names is refused: "
                "where the file is trusted, save model.state_dict() with torch.save and use that"
            ) from error
        raise BadCheckpoint(f"{path} is not a PyTorch weights file or is damaged ({_first_line(error)})") from error
    except Exception as error:  # a damaged or hostile pickle can raise anything
        raise BadCheckpoint(
            f"{path} is damaged or incomplete: download it again and compare its size with the published one "
            f"({_first_line(error)})"
        ) from error


def _check_ends(path: Path, *, zipped: bool) -> None:
    """A few bytes of a pickle can keep the unpickler busy for ever: it is followed first, without loading anything."""
    if zipped:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            if any(archive.getinfo(name).file_size > LARGEST_NAMES for name in names):
                raise ValueError("its list of names is too large")
            for name in names:
                check_pickle(BytesIO(archive.read(name)))
        return
    with path.open("rb") as file:
        start = BytesIO(file.read(LARGEST_NAMES))
    for _ in range(LEGACY_PICKLES):
        check_pickle(start)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:120].rstrip(". ")
