"""Training data: square uint8 images of one size with labels or captions, stored if they fit, else decoded on the fly.

Images keep their aspect ratio: the short side is resized, the centre is cropped. Augmentation works on the stored
square, in batches, on the device that trains.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from vitscope.core.digest import digest_of
from vitscope.core.errors import BadData
from vitscope.core.files import discard, make_folder, write_atomically
from vitscope.core.reading import STRANGE
from vitscope.data.decode import BadImage
from vitscope.data.samples import SampleList
from vitscope.teaching.distributed import rank, world
from vitscope.teaching.teachers.base import Lesson

LARGEST_STORE = 4 * 2**30  # bytes of images that are kept decoded
CHECKED = 2000  # files whose size is looked at before long work begins


class TrainingImages(ABC):
    """A sequence of images; subclasses say where the pixels are."""

    def __init__(
        self,
        size: tuple[int, int],
        *,
        labels: Tensor | None = None,
        classes: Sequence[str] = (),
        captions: Sequence[tuple[str, ...]] | None = None,
        digest: str,
    ) -> None:
        self.size, self.labels, self.classes, self.captions = size, labels, tuple(classes), captions
        self.digest = digest

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def take(self, indices: Sequence[int]) -> Tensor:
        """uint8 (B, 3, H, W)."""

    def lesson(self, indices: Sequence[int], images: Tensor) -> Lesson:
        """The images with what is known about them."""
        return Lesson(
            images,
            None if self.labels is None else self.labels[torch.as_tensor(indices)],
            None if self.captions is None else [self.captions[i] for i in indices],
        )

    def lessons(self, order: Iterable[list[int]], workers: int = 0) -> Iterator[Lesson]:
        """One lesson per list of indices."""
        for indices in order:
            yield self.lesson(indices, self.take(indices))


class StoredImages(TrainingImages):
    """Decoded images in memory, or in a file that is mapped into memory: uint8 (N, 3, H, W)."""

    def __init__(self, pixels: np.ndarray | Tensor, **known: Any) -> None:
        self.pixels = pixels if isinstance(pixels, np.ndarray) else pixels.numpy()
        super().__init__((self.pixels.shape[2], self.pixels.shape[3]), **known)

    def __len__(self) -> int:
        return len(self.pixels)

    def take(self, indices: Sequence[int]) -> Tensor:
        return torch.from_numpy(self.pixels[np.asarray(indices)])


class ImageFiles(TrainingImages):
    """Files that are decoded each time they are needed."""

    def __init__(self, samples: SampleList, size: tuple[int, int], **known: Any) -> None:
        self.samples = samples
        super().__init__(size, **known)

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[int, Tensor]:
        return index, torch.from_numpy(square(self.samples[index].load(), self.size, self.samples[index].path))

    def take(self, indices: Sequence[int]) -> Tensor:
        return torch.stack([self[i][1] for i in indices])

    def lessons(self, order: Iterable[list[int]], workers: int = 0) -> Iterator[Lesson]:
        if not workers:
            yield from super().lessons(order)
            return
        loader: torch.utils.data.DataLoader[Any] = torch.utils.data.DataLoader(
            self,  # type: ignore[arg-type]  # indexing is all that a loader needs
            batch_sampler=order,
            num_workers=workers,
            pin_memory=torch.cuda.is_available(),
            worker_init_fn=_one_thread,
        )
        for indices, images in loader:
            yield self.lesson(indices.tolist(), images)


def _one_thread(worker: int) -> None:
    torch.set_num_threads(1)


def square(image: Image.Image, size: tuple[int, int], path: Path) -> np.ndarray:
    """uint8 (3, h, w): short side resized, centre cropped. An image smaller than that is refused, not blown up."""
    check_large_enough((image.height, image.width), size, path)
    scale = max(size[0] / image.height, size[1] / image.width)
    height, width = (
        max(edge, round(side * scale)) for edge, side in zip(size, (image.height, image.width), strict=True)
    )
    image = image.resize((width, height), Image.Resampling.BICUBIC)
    top, left = (height - size[0]) // 2, (width - size[1]) // 2
    image = image.crop((left, top, left + size[1], top + size[0]))
    return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))


def check_large_enough(found: tuple[int, int], size: tuple[int, int], path: Path) -> None:
    if found[0] < size[0] or found[1] < size[1]:
        raise BadImage(
            path,
            f"is {found[0]}x{found[1]} pixels, smaller than the {size[0]}x{size[1]} that the network sees: "
            "use --size with a smaller number, or leave such images out",
        )


def open_training_images(
    samples: SampleList,
    size: tuple[int, int],
    *,
    captions: Sequence[tuple[str, ...]] | None = None,
    cache: Path | None = None,
) -> TrainingImages:
    """The images of a list, at `size`. cache: folder where decoded images are kept, if all of them fit."""
    if len(samples) < 2:
        raise BadData(f"{samples.origin} has {len(samples)} image: teaching needs at least two")
    for sample in samples[:CHECKED]:
        check_large_enough(sample.size, size, sample.path)
    labels = [sample.label for sample in samples]
    known: dict[str, Any] = {
        "labels": torch.tensor(labels) if samples.is_labelled else None,
        "classes": samples.classes,
        "captions": captions,
        "digest": digest_of([samples.digest, list(size), captions]),
    }
    files = ImageFiles(samples, size, **known)
    if cache is None or len(files) * 3 * size[0] * size[1] > LARGEST_STORE:
        return files
    return StoredImages(stored(files, cache / f"images-{digest_of([samples.digest, list(size)])}.npy"), **known)


def stored(files: ImageFiles, path: Path) -> np.ndarray:
    """All images of `files` decoded once into an array file, mapped into memory; a damaged one is made anew."""
    shape = (len(files), 3, *files.size)
    make_folder(path.parent)
    if not _sound(path, shape):
        discard(path)

        def write(to: Path) -> None:
            # written, not mapped: a full disk is then an error, and not the end of the process
            with to.open("wb") as file:
                header = {"descr": "|u1", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, header)
                for i in range(len(files)):
                    file.write(files[i][1].numpy().tobytes())

        write_atomically(path, write)
    found: np.ndarray = np.load(path, mmap_mode="r")
    return found


def _sound(path: Path, shape: tuple[int, ...]) -> bool:
    """Whether an array file of these bytes lies there; one that was cut would end the process when it is read."""
    try:
        found = np.load(path, mmap_mode="r") if path.is_file() else np.empty(0)
    except STRANGE:
        return False
    return found.shape == shape and found.dtype == np.uint8 and found.flags.c_contiguous


# -- the order in which images are seen: a function of seed and position, so that nothing must be remembered -------


def step_seed(seed: int, step: int, process: int) -> int:
    """One seed per run, step and process (splitmix64 of a packed number)."""
    z = (seed * 0x9E3779B97F4A7C15 + step * 0xD1B54A32D192ED03 + process * 0x8CB92BA72F3D8DD7) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return (z ^ (z >> 31)) % 2**63


@lru_cache(maxsize=2)
def epoch_order(images: int, seed: int, epoch: int) -> Tensor:
    """A permutation of the images, another one in each epoch."""
    generator = torch.Generator().manual_seed(step_seed(seed, epoch, -1))
    return torch.randperm(images, generator=generator)


def batch_at(step: int, images: int, batch: int, seed: int) -> Tensor:
    """int64 (batch,): the images of a step; epochs follow each other without a gap."""
    positions = torch.arange(step * batch, (step + 1) * batch)
    parts = [
        epoch_order(images, seed, int(epoch))[positions[positions // images == epoch] % images]
        for epoch in (positions // images).unique()
    ]
    return torch.cat(parts)


def batches_from(step: int, images: int, batch: int, seed: int) -> Iterator[list[int]]:
    """This process's share of each batch, from `step` on, without end."""
    while True:
        share = batch // world()
        yield batch_at(step, images, batch, seed)[rank() * share : (rank() + 1) * share].tolist()
        step += 1
