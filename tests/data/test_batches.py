"""Batches: the same pixels and indices whatever decodes them, broken images named, masks under the same geometry."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from vitscope.core.errors import BadData
from vitscope.data.batches import SkippedImages, batches
from vitscope.data.folders import open_images
from vitscope.data.preprocessing import Preprocessing
from vitscope.data.samples import Annotation, Sample, SampleList

SMALL = Preprocessing(size=(8, 12))


@pytest.fixture
def ten(photo: Callable[..., Path], tmp_path: Path) -> Path:
    """Ten images in two classes, of which two are broken."""
    for i in range(10):
        photo(f"ten/{'ab'[i % 2]}/{i}.png", size=(20 + i, 31 - i), seed=i)
    (tmp_path / "ten/a/4.png").write_bytes(b"no image")
    (tmp_path / "ten/b/9.png").write_bytes(b"")
    return tmp_path / "ten"


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_each_usable_sample_once_in_order(ten: Path, workers: int, batch_size: int) -> None:
    samples = open_images(ten)
    skipped = SkippedImages()
    got = list(batches(samples, SMALL, batch_size=batch_size, workers=workers, skipped=skipped))
    good = [i for i, sample in enumerate(samples) if sample.id not in ("a/4.png", "b/9.png")]
    assert torch.cat([b.indices for b in got]).tolist() == good
    assert [id for b in got for id in b.ids] == [samples[i].id for i in good]
    labels = torch.cat([b.labels for b in got if b.labels is not None])
    assert labels.tolist() == [samples[i].label for i in good]
    images = torch.cat([b.images for b in got])
    assert images.dtype == torch.uint8
    for image, i in zip(images, good, strict=True):
        expected = np.asarray(SMALL.geometry(Image.open(samples[i].path).convert("RGB")))
        assert np.array_equal(image.permute(1, 2, 0).numpy(), expected)
    assert set(skipped.reasons) == {"a/4.png", "b/9.png"}
    assert "known format" in skipped.reasons["a/4.png"]


def test_batches_stay_where_they_are_when_an_image_is_broken(ten: Path) -> None:
    got = batches(open_images(ten), SMALL, batch_size=2, skipped=SkippedImages())
    assert [b.indices.tolist() for b in got] == [[0, 1], [3], [4, 5], [6, 7], [8]]


def test_a_broken_image_is_counted_once_over_several_passes(ten: Path) -> None:
    skipped = SkippedImages(limit=2)
    for _ in range(3):
        list(batches(open_images(ten), SMALL, batch_size=4, skipped=skipped))
    assert len(skipped) == 2


@pytest.mark.parametrize("workers", [0, 1])
def test_too_many_broken_images_stop_the_work(ten: Path, workers: int) -> None:
    with pytest.raises(BadData, match="more than 1 images are unusable"):
        list(batches(open_images(ten), SMALL, batch_size=4, workers=workers, skipped=SkippedImages(limit=1)))


def test_a_stretch_of_broken_images_is_no_error_of_its_own(tmp_path: Path) -> None:
    """Other shards of the list may have usable ones; that none has is told by whoever sees them all."""
    (tmp_path / "a.jpg").write_bytes(b"x")
    skipped = SkippedImages()
    assert list(batches(open_images(tmp_path), SMALL, batch_size=4, skipped=skipped)) == []
    assert list(skipped.reasons) == ["a.jpg"]


def test_batch_size_must_be_positive(ten: Path) -> None:
    with pytest.raises(BadData, match="batch size"):
        next(batches(open_images(ten), SMALL, batch_size=0, skipped=SkippedImages()))


@dataclass(frozen=True)
class Announced(Sample):
    """A sample that tells when it is decoded."""

    decoded: threading.Event | None = None

    def load(self) -> Image.Image:
        assert self.decoded is not None
        self.decoded.set()
        return Image.new("RGB", (12, 8))


def test_next_batches_are_decoded_while_the_consumer_works() -> None:
    events = [threading.Event() for _ in range(20)]
    samples = SampleList(Announced(str(i), Path(), decoded=event) for i, event in enumerate(events))
    stream = batches(samples, SMALL, batch_size=2, skipped=SkippedImages())
    first = next(stream)  # the consumer is busy with it, and asks for nothing
    assert first.indices.tolist() == [0, 1]
    assert all(event.wait(10) for event in events[2:6])
    assert not any(event.is_set() for event in events[8:])  # but not further ahead: memory stays bounded
    stream.close()


@dataclass(frozen=True)
class Box(Annotation):
    """Columns left..right of an image of `shape`."""

    shape: tuple[int, int]
    left: int
    right: int

    def decode(self) -> np.ndarray:
        region = np.zeros(self.shape, bool)
        region[:, self.left : self.right] = True
        return region


def test_masks_are_averaged_by_area_under_the_geometry_of_the_image(photo: Callable[..., Path]) -> None:
    path = photo("a.png", size=(40, 20))
    regions = (Box(1, (20, 40), 20, 40), Box(0, (20, 40), 19, 20), Box(1, (20, 40), 0, 10))
    samples = SampleList([Sample("a", path, annotations=regions), Sample("b", path)], categories=("x", "y"))
    (batch,) = batches(samples, Preprocessing(size=(10, 10)), batch_size=2, skipped=SkippedImages(), grid=(2, 5))
    assert batch.annotations is not None
    first, second = batch.annotations
    # 40x20 is halved to 20x10, of which columns 5..14 remain
    assert first.categories.tolist() == [1, 0, 1]
    assert first.coverage[0].unique(dim=0).tolist() == [[0] * 5 + [255] * 5]
    assert first.coverage[1].unique(dim=0).tolist() == [[0] * 4 + [128] + [0] * 5]  # half of one pixel
    assert first.coverage[2].max() == 0  # outside the crop
    assert second.categories.shape == (0,)
    assert second.coverage.shape == (0, 10, 10)
    # as published: the middle 20 of 40 columns, straight to the grid by Pillow's bicubic filter
    for number, region in enumerate(regions):
        square = Image.fromarray(255 * region.decode()[:, 10:30].astype(np.uint8))
        expected = np.asarray(square.resize((5, 2), Image.Resampling.BICUBIC))
        assert first.published[number].tolist() == expected.tolist()
    assert first.published[0, 0].tolist()[3:] == [255, 255]
    assert first.published[0, 0, 2] == 128  # columns 8..11 of twenty, of which the region has two
    assert second.published.shape == (0, 2, 5)


def test_a_mask_of_another_size_is_skipped_with_the_reason(photo: Callable[..., Path]) -> None:
    samples = SampleList(
        [
            Sample("a", photo("a.png", size=(40, 20)), annotations=(Box(0, (40, 20), 0, 1),)),
            Sample("b", photo("b.png")),
        ]
    )
    skipped = SkippedImages()
    (batch,) = batches(samples, SMALL, batch_size=2, skipped=skipped, grid=(2, 2))
    assert batch.ids == ["b"]
    assert skipped.reasons == {"a": "is 40x20 but its mask is 20x40"}
