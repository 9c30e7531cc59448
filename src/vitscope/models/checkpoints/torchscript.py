"""TorchScript archives, such as OpenAI's CLIP files: their tensors, without compiling or running their code.

An archive is a zip with a program (`code/`), and a pickle of the module tree whose tensors are separate, uncompressed
entries. Only the tree and the tensors are read. The unpickler knows a handful of names, all defined here: module
classes become empty stand-ins, and every other name is refused.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vitscope.core.errors import BadCheckpoint
from vitscope.core.pickles import check_pickle

DTYPES = {
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "DoubleStorage": torch.float64,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ShortStorage": torch.int16,
    "CharStorage": torch.int8,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
}
DEEPEST = 32  # nested modules
LARGEST_TREE = 64 << 20  # bytes of names and shapes


class Node:
    """A module of the archive: its attributes, nothing of its behaviour."""

    def __init__(self) -> None:
        self.attributes: dict[str, Any] = {}

    def __setstate__(self, state: Any) -> None:
        self.attributes = dict(state) if isinstance(state, Mapping) else {}


def is_torchscript(entries: Sequence[zipfile.ZipInfo]) -> bool:
    names = [entry.filename for entry in entries]
    return any(name.endswith("/constants.pkl") for name in names) and any("/code/" in name for name in names)


def read_torchscript(path: Path, archive: zipfile.ZipFile) -> dict[str, Tensor]:
    """The tensors of the module tree under dotted names, as the module's own state dict would have them."""
    try:
        tree = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
        entry = archive.getinfo(tree)
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > LARGEST_TREE:
            raise pickle.UnpicklingError("its module tree is too large")
        content = archive.read(tree)
        check_pickle(io.BytesIO(content))
        root = _Unpickler(io.BytesIO(content), archive, tree.removesuffix(".pkl") + "/").load()
        if not isinstance(root, Node):
            raise pickle.UnpicklingError("its root is not a module")
        state: dict[str, Tensor] = {}
        _collect(root, "", state, 0)
    except Exception as error:  # a damaged or hostile pickle can raise anything
        raise BadCheckpoint(
            f"{path} is a TorchScript archive whose weights cannot be read without running it "
            f"({error or type(error).__name__}): where it is trusted, save torch.jit.load(...).state_dict() "
            "with torch.save and use that file"
        ) from error
    return state


def _collect(node: Node, prefix: str, state: dict[str, Tensor], depth: int) -> None:
    if depth > DEEPEST:
        raise ValueError("modules are nested too deeply")
    for name, value in node.attributes.items():
        if isinstance(value, Tensor):
            state[f"{prefix}{name}"] = value
        elif isinstance(value, Node):
            _collect(value, f"{prefix}{name}.", state, depth + 1)


class _Unpickler(pickle._Unpickler):  # the C one reserves what a file asks for
    def __init__(self, file: Any, archive: zipfile.ZipFile, folder: str) -> None:
        super().__init__(file)
        self._archive, self._folder = archive, folder
        self._storages: dict[str, Tensor] = {}

    def find_class(self, module: str, name: str) -> Any:
        # Fresh objects for every name: whatever a hostile pickle does to them is gone with this file.
        if module == "__torch__" or module.startswith("__torch__."):
            return type("Module", (Node,), {})
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuilder()
        if module == "torch" and name in DTYPES:
            return name
        if (module, name) == ("collections", "OrderedDict"):
            return type("Mapping", (dict,), {})
        if module == "torch.jit._pickle":
            return lambda value, *_: value
        raise pickle.UnpicklingError(f"it names {module}.{name}")

    def persistent_load(self, pid: Any) -> Tensor:
        kind, storage, key, _device, count = pid
        if kind != "storage" or not isinstance(key, str) or storage not in DTYPES:
            raise pickle.UnpicklingError("it refers to something that is no tensor")
        if key not in self._storages:
            entry = self._archive.getinfo(self._folder + key)
            if entry.compress_type != zipfile.ZIP_STORED:
                raise pickle.UnpicklingError("its tensors are compressed")
            data = bytearray(self._archive.read(entry))
            dtype = DTYPES[storage]
            self._storages[key] = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
        if self._storages[key].numel() < count:
            raise pickle.UnpicklingError("a tensor is shorter than promised")
        return self._storages[key]


def _rebuilder() -> Callable[..., Tensor]:
    def rebuild(storage: Tensor, offset: int, size: Any, stride: Any, *_: Any) -> Tensor:
        return storage.as_strided(tuple(size), tuple(stride), offset)  # refuses what lies outside the storage

    return rebuild
