"""A plain folder of `images/` and `masks/`: for each picture a PNG mask of the same name and size.

A mask whose values are only 0 and 255 marks one object. Otherwise every value from 1 up is a category of its own
(255 beside other values is void, as in Pascal VOC and DAVIS, and belongs to nothing).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from vitscope.core.digest import digest_of_strings
from vitscope.core.errors import BadData
from vitscope.core.reading import user_path
from vitscope.data.decode import BadImage, decode_mask, image_size
from vitscope.data.folders import list_images
from vitscope.data.samples import MOST_REGIONS, Annotation, Sample, SampleList, file_fingerprint, safe_id

VOID = 255
OBJECT = "object"


@dataclass(frozen=True)
class ValueMask(Annotation):
    """The pixels of a mask file that have one value."""

    path: Path
    value: int

    def decode(self) -> np.ndarray:
        found: np.ndarray = _read(self.path, file_fingerprint(self.path)) == self.value
        return found


@lru_cache(maxsize=4)  # the values of one file are asked for one after the other
def _read(path: Path, _fingerprint: str) -> np.ndarray:
    return decode_mask(path)


def open_mask_folder(images: Path | str, masks: Path | str) -> SampleList:
    """images, masks: the two folders. Images without a mask, and masks without an image, are left out and told."""
    images, masks = user_path(images), user_path(masks)
    pictures, mask_files = _by_stem(images), _by_stem(masks)
    both = [stem for stem in pictures if stem in mask_files]
    if not both:
        raise BadData(
            f"no image in {images} ({len(pictures)} images) has a mask of the same name in {masks} "
            f"({len(mask_files)} masks): expected pairs such as {images.name}/a.jpg and {masks.name}/a.png"
        )
    values, digests = {}, []
    for stem in both:
        path = masks / mask_files[stem]
        mask = decode_mask(path)
        _check_same_size(images / pictures[stem], path, mask)
        values[stem] = sorted(set(np.unique(mask).tolist()) - {0})
        if len(values[stem]) > MOST_REGIONS:
            raise BadData(f"{path} is not a mask: it has {len(values[stem])} values, more than {MOST_REGIONS}")
        digests.append(hashlib.blake2b(mask.tobytes(), digest_size=16).hexdigest())
    if all(found in ([], [VOID]) for found in values.values()):
        category, names = {VOID: 0}, [OBJECT]
    else:
        present = sorted({value for found in values.values() for value in found} - {VOID})
        category, names = {value: i for i, value in enumerate(present)}, [str(value) for value in present]
    samples = [
        Sample(
            safe_id(pictures[stem]),
            images / pictures[stem],
            annotations=tuple(
                ValueMask(category[value], masks / mask_files[stem], value)
                for value in values[stem]
                if value in category
            ),
        )
        for stem in both
    ]
    counts = {
        "without a mask": len(pictures) - len(both),
        "whose mask is empty": sum(not sample.annotations for sample in samples),
    }
    if not any(sample.annotations for sample in samples):
        raise BadData(f"all masks in {masks} are empty: expected 255, or values from 1 up, where the objects are")
    notes = [f"{n} of {len(pictures)} images {what} were left out" for what, n in counts.items() if n]
    if lonely := len(mask_files) - len(both):
        notes.append(f"{lonely} masks have no image")
    return SampleList(
        [sample for sample in samples if sample.annotations],
        categories=names,
        origin=f"{images} with masks of {masks}",
        notes=notes,
        annotation_digest=digest_of_strings(digests),
    )


def _by_stem(folder: Path) -> dict[Path, Path]:
    """Image files of a folder by their relative path without the extension."""
    files: dict[Path, Path] = {}
    for file in list_images(folder):
        if (other := files.setdefault(file.with_suffix(""), file)) != file:
            raise BadData(f"{folder} has both {other} and {file}: an image and its mask are paired by name alone")
    return files


def _check_same_size(picture: Path, path: Path, mask: np.ndarray) -> None:
    try:
        height, width = image_size(picture)
    except BadImage:
        return  # a broken picture is skipped, with its reason, when its turn comes
    if mask.shape != (height, width):
        raise BadData(
            f"the mask {path} is {mask.shape[1]}x{mask.shape[0]} but its image is {width}x{height}: "
            f"make masks of the size of their images"
        )
