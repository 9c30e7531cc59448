"""Videos with object masks: DAVIS in its official layout, or a plain folder of frames with a mask for the first.

DAVIS: `JPEGImages/480p/<sequence>/00000.jpg`, `Annotations/480p/<sequence>/00000.png` and `ImageSets/2017/val.txt`.
Masks of 2017 are indexed: 0 background, 1.. objects, 255 void. Masks of 2016 hold only 0 and 255: one object.

Plain folder: frames in any image format (in the folder or in `frames/`), in the order of the numbers in their names,
and `mask.png` for the first of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
from PIL import Image

from vitscope.core.digest import digest_of_strings
from vitscope.core.errors import BadData, shorten
from vitscope.core.reading import path_inside, read_lines, user_path
from vitscope.data.dataset import Dataset
from vitscope.data.decode import BadImage, decode_image, decode_mask, image_size
from vitscope.data.folders import list_images
from vitscope.data.layouts import expect, found_in
from vitscope.data.samples import file_fingerprint, safe_id

VOID = 255
RESOLUTION = "480p"
LISTS = ("ImageSets/2017/{}.txt", "ImageSets/2016/{}.txt", "ImageSets/480p/{}.txt")
FIRST_MASK = "mask.png"


@dataclass(frozen=True)
class VideoSequence:
    """Frames in order, each with its mask or None. The first frame always has one."""

    name: str
    frames: tuple[Path, ...]
    masks: tuple[Path | None, ...]
    binary: bool  # masks are 0/255, and 255 is object 1, not void
    size: tuple[int, int]  # (height, width)

    def __len__(self) -> int:
        return len(self.frames)

    def frame(self, index: int) -> Image.Image:
        """The upright RGB picture; raises BadImage."""
        return decode_image(self.frames[index])

    def labels(self, index: int) -> np.ndarray | None:
        """uint8 (H, W): 0 background (void included), 1.. objects; None where there is no annotation."""
        values = self._values(index)
        if values is None:
            return None
        found: np.ndarray | None = (values == VOID).astype(np.uint8) if self.binary else values * (values != VOID)
        return found

    def void(self, index: int) -> np.ndarray | None:
        """bool (H, W): pixels that belong to nothing and must not count; None where there is no annotation."""
        values = self._values(index)
        return None if values is None else (values == VOID) & (not self.binary)

    @property
    def objects(self) -> int:
        """How many objects are to be followed: the largest label in the first frame, as the official evaluation
        counts them. An object that only appears later is not among them."""
        labels = self.labels(0)
        assert labels is not None
        return int(labels.max())

    @property
    def is_evaluable(self) -> bool:
        """Every frame is annotated, so that a prediction can be scored."""
        return all(mask is not None for mask in self.masks)

    def _values(self, index: int) -> np.ndarray | None:
        path = self.masks[index]
        if path is None:
            return None
        values = decode_mask(path)
        if values.dtype != np.uint8:
            raise BadImage(path, "has labels above 255")
        return values


@dataclass(frozen=True)
class VideoSet(Dataset):
    """Sequences, each of which is followed from its first mask."""

    sequences: tuple[VideoSequence, ...]
    origin: str = ""
    remarks: tuple[str, ...] = ()

    kind: ClassVar[str] = "video"

    def __len__(self) -> int:
        return len(self.sequences)

    @cached_property
    def digest(self) -> str:
        """Digest of the names of sequences and frames, and of the fingerprints of all files."""
        return digest_of_strings(
            f"{sequence.name}|{path.name}|{file_fingerprint(path)}" if path else "none"
            for sequence in self.sequences
            for path in (*sequence.frames, *sequence.masks)
        )

    @property
    def count(self) -> int:
        return sum(len(sequence) for sequence in self.sequences)

    @property
    def notes(self) -> tuple[str, ...]:
        return self.remarks

    def limit(self, n: int, seed: int = 0) -> VideoSet:
        """The first n sequences: a prefix of the official list, whatever the seed."""
        if n < 1:
            raise BadData(f"a limit of {n} videos leaves nothing to follow: use 1 or more")
        if n >= len(self):
            return self
        return replace(self, title=f"{self.title} ({n} videos)", sequences=self.sequences[:n])


DAVIS_SEQUENCES = 30  # of DAVIS-2017 val


def open_videos(root: Path | str, split: str = "val") -> VideoSet:
    """DAVIS, or a plain folder of frames: whichever is there."""
    root = user_path(root)
    if (root / "JPEGImages").is_dir() or (root / "Annotations").is_dir() or (root / "ImageSets").is_dir():
        return open_davis(root, split)
    if (root / FIRST_MASK).is_file():
        return open_frames(root, root / FIRST_MASK)
    raise BadData(
        f"no video was recognised in {root}: expected DAVIS (JPEGImages/, Annotations/, ImageSets/) or frames with "
        f"{FIRST_MASK}; found {found_in(root) if root.exists() else 'nothing'}"
    )


def open_davis(root: Path | str, split: str = "val") -> VideoSet:
    """The sequences of a split, in the order of its list."""
    root = user_path(root)
    lists = [root / pattern.format(split) for pattern in LISTS]
    listed = next((path for path in lists if path.is_file()), lists[0])
    expected = [
        f"JPEGImages/{RESOLUTION}/",
        f"Annotations/{RESOLUTION}/",
        listed.relative_to(root).as_posix(),
    ]
    expect(root, "DAVIS", expected)
    names = list(dict.fromkeys(_sequence_name(line, listed) for line in read_lines(listed)))
    if not names:
        raise BadData(f"{listed} lists no sequences: expected one name per line")
    sequences = tuple(_davis_sequence(root, name) for name in names)
    unscored = [sequence.name for sequence in sequences if not sequence.is_evaluable]
    notes = [f"only the first frame is annotated in {', '.join(unscored)}"] if unscored else []
    complete = split == "val" and len(sequences) == DAVIS_SEQUENCES
    title = "DAVIS-2017 val" if complete else root.resolve().name
    return VideoSet(title, sequences, f"DAVIS {split} of {root}", tuple(notes))


def open_frames(frames: Path | str, first_mask: Path | str) -> VideoSet:
    """One video: a folder of frames (or of `frames/`), and the mask of the first frame."""
    folder, mask = user_path(frames), user_path(first_mask)
    inner = folder / "frames" if (folder / "frames").is_dir() else folder
    files = [inner / file for file in list_images(inner) if len(file.parts) == 1]
    files = sorted((file for file in files if file.resolve() != mask.resolve()), key=_natural)
    masks = (mask, *[None] * (len(files) - 1))
    name = safe_id(folder.resolve().name)
    return VideoSet(name, (_checked(name, tuple(files), masks),), str(folder))


def _davis_sequence(root: Path, name: str) -> VideoSequence:
    pictures, annotations = (root / kind / RESOLUTION / name for kind in ("JPEGImages", "Annotations"))
    for folder in (pictures, annotations):
        if not folder.is_dir():
            raise BadData(f"the sequence {name} is listed but {folder} does not exist: complete the dataset")
    frames = {file.stem: pictures / file for file in list_images(pictures)}
    masks = {file.stem: annotations / file for file in list_images(annotations)}
    if stray := sorted(set(masks) - set(frames)):
        raise BadData(f"the mask {masks[stray[0]]} has no frame in {pictures}: complete the dataset")
    missing = [stem for stem in frames if stem not in masks]
    if missing and len(masks) > 1:  # the first alone is how test sets are published
        raise BadData(f"{len(missing)} frames of {name} have no mask, the first is {missing[0]}: complete the dataset")
    return _checked(name, tuple(frames.values()), tuple(masks.get(stem) for stem in frames))


def _checked(name: str, frames: tuple[Path, ...], masks: tuple[Path | None, ...]) -> VideoSequence:
    """The sequence, once it is certain that there is something to follow, on masks of the size of the frames."""
    if len(frames) < 2:
        raise BadData(f"the video {name} has {len(frames)} frame: following an object needs two or more")
    if masks[0] is None:
        raise BadData(f"the first frame of {name} has no mask: there is nothing to follow")
    sizes = {path: image_size(path) for path in (*frames, *masks) if path is not None}
    height, width = sizes[frames[0]]
    for path, size in sizes.items():
        if size != (height, width):
            raise BadData(f"{path} is {size[1]}x{size[0]} but the first frame of {name} is {width}x{height}")
    first = decode_mask(masks[0])
    if first.dtype != np.uint8:
        raise BadData(f"the first mask of {name} ({masks[0]}) has labels above 255: objects are numbered from 1 to 254")
    values = set(np.unique(first).tolist())
    if values <= {0}:
        raise BadData(f"the first mask of {name} is empty: there is nothing to follow")
    return VideoSequence(name, frames, masks, binary=values <= {0, VOID}, size=(height, width))


def _sequence_name(line: str, source: Path) -> str:
    """2017 lists names; 2016 lists pairs of files such as `/JPEGImages/480p/bear/00000.jpg /Annotations/...`."""
    parts = line.split()[0].strip("/").split("/")
    name = parts[-2] if len(parts) > 1 else parts[0]
    if path_inside(Path(), name, source=source).name != name:
        raise BadData(f"{source}: '{shorten(line, 60)}' is not the name of a sequence")
    return name


def _natural(path: Path) -> list[tuple[int, str]]:
    """Sorts frame2 before frame10; digits that are no decimals, such as the square in 1²2, are letters."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", path.name)]
