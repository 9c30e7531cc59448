"""A weights file as nested mappings of tensors: recognised by its first bytes, treated as hostile, never executed."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file

from vitscope.core.errors import BadCheckpoint, MissingWeights, shorten
from vitscope.core.reading import STRANGE, path_problem, reason
from vitscope.models.checkpoints.npz import is_npz, read_npz
from vitscope.models.checkpoints.pickled import read_pickled
from vitscope.models.checkpoints.torchscript import is_torchscript, read_torchscript

LARGEST_INDEX = 16 << 20  # bytes: an index of shards is a list of names
LARGEST_HEADER = 100 << 20  # bytes: the limit of the safetensors format
BAD_ZIP: tuple[type[Exception], ...] = (zipfile.BadZipFile, *STRANGE)  # names of entries can be anything
DAMAGED = "is damaged or incomplete: download it again and compare its size with the published one"


def read_checkpoint(path: Path) -> Mapping[str, Any]:
    """Everything a weights file holds: a state dict, or mappings that hold state dicts beside training state.

    Reads safetensors (one file, or the index of several), PyTorch files (objects other than tensors and plain data are
    refused, or replaced by empty stand-ins where they are known training settings), TorchScript archives, and NumPy's
    archives of arrays.
    """
    try:
        if path.is_dir():
            raise BadCheckpoint(f"{path} is a folder: give the weights file in it{_candidates(path)}")
        start = _first_bytes(path)
        return _read(path, start)
    except FileNotFoundError as error:
        raise MissingWeights(f"there is no weights file {error.filename or path}: check the name") from error
    except OSError as error:
        raise BadCheckpoint(f"cannot read {path}: {error.strerror or error}") from error


def _read(path: Path, start: bytes) -> Mapping[str, Any]:
    text = start.lstrip().lower()
    if not start:
        raise BadCheckpoint(f"{path} is empty: download it again")
    # Before all others: the length that it begins with may look like the first byte of a pickle.
    if start[8:9] == b"{" and int.from_bytes(start[:8], "little") <= LARGEST_HEADER:
        return _read_safetensors(path)
    if text.startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
        raise BadCheckpoint(f"{path} is a web page, not weights: the download failed; fetch the file itself again")
    if text.startswith(b"version https://git-lfs"):
        raise BadCheckpoint(f"{path} is a Git LFS pointer, not the weights: run `git lfs pull` where it came from")
    if text.startswith(b"{"):
        return _read_shards(path)
    if start.startswith(b"PK\x03\x04"):
        return _read_zip(path)
    if start.startswith(b"\x80"):
        return _state(path, read_pickled(path, mmap=False))
    raise BadCheckpoint(f"{path} is not a weights file in a format known here: give a .safetensors or PyTorch file")


def _first_bytes(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise BadCheckpoint(f"{path} is not a regular file (a pipe or a device): copy its content to a file")
    with path.open("rb") as file:
        return file.read(64)


def _candidates(folder: Path) -> str:
    suffixes = {".safetensors", ".bin", ".pt", ".pth", ".tar"}
    names = sorted(p.name for p in folder.iterdir() if p.suffix in suffixes or p.name.endswith(".index.json"))
    return f", such as {', '.join(names[:3])}" if names else ""


def _read_safetensors(path: Path) -> Mapping[str, Any]:
    try:
        return load_file(path)
    except SafetensorError as error:
        raise BadCheckpoint(f"{path} {DAMAGED} ({error})") from error


def _read_zip(path: Path) -> Mapping[str, Any]:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if is_torchscript(entries):
                return read_torchscript(path, archive)
            if is_npz(entries):
                return read_npz(path, archive)
    except BAD_ZIP as error:
        raise BadCheckpoint(f"{path} {DAMAGED} ({reason(error)})") from error
    if not any(entry.filename.endswith("/data.pkl") for entry in entries):
        raise BadCheckpoint(f"{path} is a zip archive but not of PyTorch: unpack it and give the weights file in it")
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise BadCheckpoint(f"{path} is compressed, which PyTorch never does: save the weights again with torch.save")
    return _state(path, read_pickled(path, mmap=True))


def _read_shards(path: Path) -> Mapping[str, Any]:
    """The parts of a sharded Hugging Face checkpoint, all beside their index."""
    parts = _parts(path)
    state: dict[str, Any] = {}
    for part in sorted(set(parts.values())):
        start = _first_bytes(part)
        if start.lstrip().startswith(b"{"):
            raise BadCheckpoint(f"{part} is an index, but {path} needs it as a part: download the parts again")
        state.update(_read(part, start))
    if missing := parts.keys() - state.keys():
        raise BadCheckpoint(f"{path} promises {len(missing)} tensors that its parts lack: download the parts again")
    return state


def files_of(path: Path) -> list[Path]:
    """Everything that decides what a weights file holds: itself, and the parts that an index names."""
    index = _first_bytes(path).lstrip().startswith(b"{")
    return [path, *sorted(set(_parts(path).values()))] if index else [path]


def _parts(path: Path) -> dict[str, Path]:
    """Of an index: the name of each tensor -> the file that holds it, beside the index."""
    if path.stat().st_size > LARGEST_INDEX:
        raise BadCheckpoint(f"{path} is not a weights file: give a .safetensors or PyTorch file")
    try:
        places = json.loads(path.read_text(encoding="utf-8"))["weight_map"].items()
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise BadCheckpoint(
            f"{path} is a JSON file without an index of weights: give the weights file itself"
        ) from error
    for _, name in places:
        if not isinstance(name, str) or name != Path(name).name or name in ("", "..") or path_problem(name):
            raise BadCheckpoint(f"{path} names a part outside its own folder ({shorten(name, 60)}), which is refused")
    return {key: path.with_name(name) for key, name in places}


def _state(path: Path, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadCheckpoint(
            f"{path} holds a {type(value).__name__}, not named tensors: save model.state_dict() and use that file"
        )
    return value
