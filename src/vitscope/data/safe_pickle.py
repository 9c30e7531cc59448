"""Pickles of plain data, read without running anything they contain.

Only containers, numbers, text, and numpy arrays and scalars of numbers can come out. Even numpy is not asked to
unpickle: the names of its constructors are answered by stand-ins made for this one reading, which only copy bytes.
Pickle's pure-Python machine is used because the C one allocates whatever memory a file asks for.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from vitscope.core.errors import BadData, shorten
from vitscope.core.pickles import EndlessPickle, check_pickle
from vitscope.core.reading import open_regular, reason, told

MAX_BYTES = 64 << 20  # the official ground truths have less than one megabyte


class RefusedPickle(BadData):
    """A pickle that asks for more than plain data."""


class Numbers:
    """A numpy array or scalar as found in the file: `values` is None until its bytes have been read."""

    values: np.ndarray | None = None


def read_plain_pickle(path: Path) -> Any:
    """The content of a pickle of plain data; arrays arrive as `Numbers`."""
    with open_regular(path, most=MAX_BYTES, error=RefusedPickle) as file, told(f"{path} cannot be read"):
        data = file.read(MAX_BYTES + 1)
    try:
        check_pickle(io.BytesIO(data))
        return _PlainUnpickler(io.BytesIO(data), encoding="latin1").load()
    except (RefusedPickle, EndlessPickle) as error:
        raise RefusedPickle(f"{path} is refused, nothing in it was run: {error}") from None
    except Exception as error:  # a damaged stream fails in any way
        raise BadData(f"{path} is not a readable pickle: {reason(error)}") from None


class _PlainUnpickler(pickle._Unpickler):
    def __init__(self, file: io.BytesIO, *, encoding: str) -> None:
        super().__init__(file, encoding=encoding)
        self._known = _stand_ins()

    def find_class(self, module: str, name: str) -> Any:
        short = module.replace("numpy.core", "numpy._core")  # numpy 2 moved it
        if (short, name) not in self._known:
            asked = f"{shorten(module, 40)}.{shorten(name, 40)}"
            raise RefusedPickle(f"it asks for {asked}, and only plain numbers, text and lists are read")
        return self._known[short, name]

    def persistent_load(self, pid: Any) -> Any:
        raise RefusedPickle("it refers to objects outside the file")


def _stand_ins() -> dict[tuple[str, str], Any]:
    """What may be named in the file; made anew for each reading, so that no file can change it for the next."""

    budget = MAX_BYTES  # a small file could name the same bytes again and again

    class NumberType:
        def __init__(self, code: Any, *_: Any) -> None:
            self.order, self.code = "<", str(code)

        def __setstate__(self, state: Any) -> None:
            self.order = str(state[1])

        def read(self, raw: Any) -> np.ndarray:
            if self.code[:1] not in ("b", "i", "u", "f") or not self.code[1:].isdigit():
                raise RefusedPickle(f"it holds an array of type {self.code[:20]}, and only numbers are read")
            nonlocal budget
            budget -= len(raw)
            if budget < 0:
                raise RefusedPickle("its arrays are larger than the file")
            content = raw.encode("latin1") if isinstance(raw, str) else bytes(raw)
            return np.frombuffer(content, (">" if self.order == ">" else "<") + self.code)

    class Array(Numbers):
        def __setstate__(self, state: Any) -> None:
            _, shape, kind, fortran, raw = state
            self.values = kind.read(raw).reshape(shape, order="F" if fortran else "C")

    class NdArray:
        """Named in the file as the type of an array; never made."""

    def reconstruct(subtype: Any, shape: Any, code: Any) -> Numbers:
        return Array()

    def from_buffer(raw: Any, kind: Any, shape: Any, order: Any) -> Numbers:
        array = Numbers()
        array.values = kind.read(raw).reshape(shape, order=order)
        return array

    def scalar(kind: Any, raw: Any) -> Numbers:
        number = Numbers()
        number.values = kind.read(raw).reshape(())
        return number

    def encode(text: str, encoding: str = "latin1") -> bytes:
        return str(text).encode("latin1")  # how old protocols write bytes

    def no_bytes() -> bytes:
        return b""  # and how they write none

    return {
        ("numpy._core.multiarray", "_reconstruct"): reconstruct,
        ("numpy._core.multiarray", "scalar"): scalar,
        ("numpy._core.numeric", "_frombuffer"): from_buffer,
        ("numpy", "ndarray"): NdArray,
        ("numpy", "dtype"): NumberType,
        ("_codecs", "encode"): encode,
        ("__builtin__", "bytes"): no_bytes,
    }
