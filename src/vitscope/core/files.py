"""Writing so that a file is there completely or not at all; reading so that damage is noticed; one run in a folder."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import torch
from filelock import FileLock, Timeout
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from vitscope.core.errors import VitscopeError
from vitscope.core.reading import STRANGE, reason, user_path

UNREADABLE: tuple[type[Exception], ...] = (SafetensorError, *STRANGE)
LOCK = ".lock"
MARK = "store.json"  # says that a folder is a store
WRITING = ".writing-"  # start of the name of what is being written
DESCRIPTION = "vitscope"  # entry of a tensor file's header: a checksum, and a JSON of what it describes


class Damaged(VitscopeError):
    """A file that vitscope wrote and that is no longer what was written."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path} is damaged ({why}): run again to make it anew")
        self.path, self.why = path, why

    def __reduce__(self) -> tuple[type[Damaged], tuple[Path, str]]:
        return Damaged, (self.path, self.why)


_made: dict[Path, None] = {}  # folders that this process made, parents first


def make_folder(folder: Path) -> None:
    """Make sure results can be written there, before long work starts."""
    folder = user_path(folder)
    try:
        missing = [place for place in (folder, *folder.parents) if not place.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        _made.update(dict.fromkeys(place.resolve() for place in reversed(missing)))
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise VitscopeError(f"cannot write to {folder}: {error.strerror}: choose another --out") from error


def clear_unused() -> None:
    """Take away the folders that this process made and in which nothing came to be but a mark or a lock."""
    for folder in reversed(_made):
        with suppress(OSError):  # it is gone, or somebody else's by now
            if {path.name for path in folder.iterdir()} <= {LOCK, MARK}:
                for name in (LOCK, MARK):
                    (folder / name).unlink(missing_ok=True)
                folder.rmdir()
    _made.clear()


def write_atomically(path: Path, write: Callable[[Path], Any]) -> None:
    """Write under a temporary name in the same folder, then rename: a file is there completely or not at all."""
    made = ""
    try:
        made = tempfile.mkdtemp(prefix=WRITING, dir=path.parent)
        temporary = Path(made) / path.name
        write(temporary)
        temporary.chmod(0o666 & ~_umask())  # some writers make files that only their owner can read
        os.replace(temporary, path)
    except VitscopeError:
        raise
    except Exception as error:  # libraries have errors of their own for a full disk
        free = _free(path.parent)
        if not isinstance(error, OSError) and free:
            raise
        why = reason(error) if isinstance(error, OSError) else "No space left on device"
        remedy = "make room and run the same command again; " if free == 0 else ""
        raise VitscopeError(f"could not write {path}: {why} ({free} MiB free): {remedy}earlier files stay") from error
    finally:
        if made:
            shutil.rmtree(made, ignore_errors=True)


def _free(folder: Path) -> int:
    """MiB on the disk of a folder."""
    try:
        return shutil.disk_usage(folder).free >> 20
    except OSError:
        return 0


def discard(path: Path) -> None:
    """Remove what lies in the place of a file, whatever it is."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    write_atomically(path, lambda to: to.write_text(text, encoding="utf-8"))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def only_run(folder: Path) -> Iterator[None]:
    """Nobody else works in this folder; what a killed run left half-written is cleared away.

    The lock is the system's: it ends with the process, however that ends.
    """
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise VitscopeError(f"another run is working in {folder}: wait for it, or choose another folder") from None
    except OSError as error:
        raise VitscopeError(f"cannot lock {folder}: {error.strerror}: choose another --out") from error
    try:
        for leftover in folder.rglob(f"{WRITING}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        yield
    finally:
        lock.release()


# -- tensors with checksums -----------------------------------------------------------------------------------


def write_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any] | None = None) -> None:
    """Write named tensors with a checksum of each and some words about them; `TensorFile` reads them."""
    whole = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    sums = {name: _checksum(value) for name, value in whole.items()}
    words = json.dumps({"sums": sums, "about": dict(about or {})}, sort_keys=True, default=str)
    # One entry: safetensors writes several in an order of chance, and the same content must give the same bytes.
    data = save(whole, {DESCRIPTION: f"{zlib.crc32(words.encode())} {words}"})
    write_atomically(path, lambda to: to.write_bytes(data))


def _checksum(tensor: Tensor) -> int:
    """Of the bytes and of how they are to be read."""
    flat, kind = tensor.reshape(-1), zlib.crc32(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
    return zlib.crc32(flat.view(torch.uint8).numpy().data, kind) if flat.numel() else kind


class TensorFile(Mapping[str, Tensor]):
    """Named tensors on disk; each is read, and checked against its checksum, when it is asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            if path.exists() and not path.is_file():
                raise ValueError("it is not a regular file")
            with safe_open(path, framework="pt") as file:
                checksum, _, words = (file.metadata() or {})[DESCRIPTION].partition(" ")
                self._names = tuple(file.keys())
            if zlib.crc32(words.encode()) != int(checksum):
                raise ValueError("its description was changed")
            described = json.loads(words)
            self._sums: dict[str, int] = described["sums"]
            self.about: dict[str, Any] = described["about"]
            if set(self._sums) != set(self._names):
                raise ValueError("its list of contents was changed")
        except FileNotFoundError:
            raise Damaged(path, "it is missing") from None
        except UNREADABLE as error:
            raise Damaged(path, reason(error)) from None

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._sums:
            raise KeyError(name)
        try:
            with safe_open(self.path, framework="pt") as file:
                tensor: Tensor = file.get_tensor(name)
        except (SafetensorError, OSError) as error:
            raise Damaged(self.path, str(error)[:120]) from None
        if _checksum(tensor) != self._sums[name]:
            raise Damaged(self.path, f"the checksum of {name} is another")
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def verify(self) -> None:
        """Read everything once; `Damaged` if something is not what was written."""
        for name in self:
            self[name]


Thing = TypeVar("Thing", bound=Hashable)


def file_names(things: Iterable[Thing], text: Callable[[Thing], str] = str) -> dict[Thing, str]:
    """A file name for every thing, different for different things: numbered where it must be.

    >>> file_names(["DINO B/16", "A B", "a-b"])
    {'DINO B/16': 'dino-b-16', 'A B': 'a-b', 'a-b': 'a-b-2'}
    """
    plain = {thing: _plain_name(text(thing)) for thing in things}
    names: dict[Thing, str] = {}
    for thing, name in plain.items():
        numbered = (f"{name}-{number}" for number in count(2))
        # a number must not make it the plain name of another thing either
        free = (choice for choice in numbered if choice not in {*names.values(), *plain.values()})
        names[thing] = next(free) if name in names.values() else name
    return names


def _plain_name(title: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in title.lower()).split())[:100] or "untitled"
