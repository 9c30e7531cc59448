"""Images in tar files, as WebDataset has them: `train-0000.tar` with 0001.jpg, 0001.cls, 0001.txt, 0002.jpg, ...

Files of one sample share a name up to its first dot. `.cls` is its class, a whole number; each line of `.txt` is a
caption. A tar file that is not compressed says where each of its files begins, so that images are read in any order:
what is taught is the same as from a folder, and resumes exactly.
"""

from __future__ import annotations

import os
import tarfile
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from PIL import Image

from vitscope.core.errors import BadData, shorten
from vitscope.core.reading import open_regular
from vitscope.data.decode import EXTENSIONS, MAX_BYTES, BadImage, decode_bytes, size_of_bytes
from vitscope.data.samples import ListedFiles, Sample, SampleList, file_fingerprint, safe_id

SUFFIX = ".tar"
CLASS, CAPTION = "cls", "txt"
LARGEST_CLASS, LARGEST_CAPTION = 64, 1 << 16  # bytes of such a file
MOST_CLASSES = 1_000_000
LARGEST_HEADER = 1 << 20  # bytes that a header of the archive may have: names, and what else is said of a file
Place = tuple[int, int]  # where a file begins in the archive, and its bytes


@dataclass(frozen=True, kw_only=True)
class ShardSample(Sample):
    """An image within a tar file, which `path` is; places of the image and of its captions (0, 0: there are none)."""

    image: Place
    said: Place = (0, 0)

    def load(self) -> Image.Image:
        return decode_bytes(self._bytes(self.image), f"{self.path}/{self.id}")

    @property
    def size(self) -> tuple[int, int]:
        return size_of_bytes(self._bytes(self.image), f"{self.path}/{self.id}")

    @property
    def fingerprint(self) -> str:
        return f"{self.image}@{file_fingerprint(self.path)}"

    def beside(self, suffix: str) -> bytes:
        return self._bytes(self.said) if suffix == f".{CAPTION}" else b""

    def _bytes(self, place: Place) -> bytes:
        try:
            with self.path.open("rb") as file:
                file.seek(place[0])
                return file.read(place[1])
        except OSError as error:
            raise BadImage(f"{self.path}/{self.id}", f"cannot be read: {error.strerror}") from None


class ShardedFiles(ListedFiles):
    """Images within tar files; a million of them take 250 MB.

    shards: the tar files, below `root`; places: (n, 5), of each image the number of its shard, and the places of the
    image and of its captions.
    """

    def __init__(
        self, root: Path, names: Sequence[str], shards: Sequence[str], places: np.ndarray, labels: Sequence[int] | None
    ) -> None:
        made = [file_fingerprint(root / shard) for shard in shards]
        super().__init__(root, names, [f"{start}+{size}@{made[i]}" for i, start, size, *_ in places.tolist()], labels)
        self.shards, self.places = list(shards), places

    def __getitem__(self, index: Any) -> Any:
        shard, start, size, said, length = self.places[index].tolist()
        label = None if self.labels is None else int(self.labels[index])
        path = Path(self.root, self.shards[shard])
        return ShardSample(self.ids[index], path, label, image=(start, size), said=(said, length))


def shards_in(root: Path) -> list[str]:
    """The tar files of a folder, in the order of their names."""
    return sorted(entry.name for entry in os.scandir(root) if entry.name.lower().endswith(SUFFIX) and entry.is_file())


def open_shards(root: Path, shards: Sequence[str]) -> SampleList:
    """All images of these tar files. Either all of them have a class, or none is said to have one."""
    names: list[str] = []
    places = array("q")
    labels = array("q")
    for number, shard in enumerate(shards):
        for key, files in _samples(root / shard):
            kinds = [kind for kind in files if f".{kind}" in EXTENSIONS]
            if len(kinds) > 1:
                raise BadData(f"{root / shard} has {len(kinds)} images of one name, {shorten(key, 60)}.*: keep one")
            if kinds:
                names.append(f"{shard}/{key}.{kinds[0]}")
                places.extend((number, *files[kinds[0]][:2], *files.get(CAPTION, (0, 0, b""))[:2]))
                labels.append(_label(files[CLASS][2], root / shard, key) if CLASS in files else -1)
    if not names:
        raise BadData(
            f"there are no images in the {len(shards)} tar files of {root}: expected files such as 0001.jpg, not "
            "compressed and not in tar files within them: unpack those"
        )
    if len(set(names)) < len(names):
        raise BadData(f"some tar file of {root} holds the same image twice: pack it anew")
    known = [label for label in labels if label >= 0]
    if known and len(known) < len(labels):
        missing = names[labels.index(-1)]
        raise BadData(f"{len(labels) - len(known)} images of {root} have no .{CLASS}, the first is {safe_id(missing)}")
    table = np.frombuffer(places, np.int64).reshape(-1, 5).copy()
    classes = [str(number) for number in range(max(known, default=-1) + 1)]
    return SampleList(
        ShardedFiles(root, names, shards, table, labels if known else None), classes=classes, origin=str(root)
    )


def _samples(path: Path) -> Iterator[tuple[str, dict[str, tuple[int, int, bytes]]]]:
    """Files of each name: (begin, bytes, content of classes) by what follows the first dot, in lower case."""
    before, files = "", dict[str, tuple[int, int, bytes]]()
    with open_regular(path) as file:
        whole = os.fstat(file.fileno()).st_size
        try:
            with tarfile.open(fileobj=_Careful(file), mode="r:") as archive:  # type: ignore[call-overload]
                for member in archive:
                    archive.members = []  # it would keep all of them
                    folder, _, name = member.name.rpartition("/")
                    stem, _, kind = name.partition(".")
                    if not member.isreg() or member.issparse() or not stem or not kind:
                        continue
                    place = (member.offset_data, member.size)
                    if sum(place) > whole:
                        raise BadData(f"{path} was cut short in {shorten(member.name, 60)}: copy it again")
                    if (key := f"{folder}/{stem}" if folder else stem) != before and files:
                        yield before, files
                        files = {}
                    before, kind = key, kind.lower()
                    limit = {CLASS: LARGEST_CLASS, CAPTION: LARGEST_CAPTION}.get(kind, MAX_BYTES)
                    if member.size > limit:
                        raise BadData(f"{path}: {shorten(member.name, 60)} has more than {limit:,} bytes")
                    content = b""
                    if kind == CLASS:
                        file.seek(place[0])
                        content = file.read(place[1])
                    files[kind] = (*place, content)
                if archive.offset + tarfile.BLOCKSIZE > whole:  # a block of zeros says that nothing follows
                    raise BadData(f"{path} was cut short: copy it again")
        except (tarfile.TarError, OSError, ValueError, OverflowError, EOFError) as error:
            raise BadData(f"{path} is not a tar file that can be read ({shorten(error, 80)}): pack it anew") from error
    if files:
        yield before, files


def _label(content: bytes, path: Path, key: str) -> int:
    text = content.strip()
    if not (text.isdigit() and len(text) < 10 and int(text) < MOST_CLASSES):
        raise BadData(
            f"{path}: {shorten(key, 60)}.{CLASS} must be a whole number below {MOST_CLASSES:,}, the number of a class"
        )
    return int(text)


class _Careful:
    """A file for `tarfile` that is never read in large pieces: what a header asks for may be the whole disk."""

    def __init__(self, file: BinaryIO) -> None:
        self.seek, self.tell, self._file = file.seek, file.tell, file

    def read(self, count: int) -> bytes:
        if not 0 <= count <= LARGEST_HEADER:
            raise ValueError(f"a header of {count:,} bytes")
        return self._file.read(count)
