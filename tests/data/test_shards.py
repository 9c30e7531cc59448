"""Tar files in WebDataset's layout: the same images, labels and captions as in a folder, and what is refused."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from random import Random

import numpy as np
import pytest
from PIL import Image

from tests.support.hostile import changed_bytes
from vitscope.core.errors import BadData
from vitscope.data.decode import BadImage
from vitscope.data.folders import open_images
from vitscope.teaching.captions import read_captions


def pack(path: Path, files: Mapping[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def png(number: int, size: tuple[int, int] = (24, 20)) -> bytes:
    pixels = np.random.default_rng(number).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    written = io.BytesIO()
    Image.fromarray(pixels).save(written, "PNG")
    return written.getvalue()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Eight images of two classes in two shards, with captions and files that are nobody's business."""
    for shard in range(2):
        files = {"LICENSE": b"free"}
        for number in range(4 * shard, 4 * shard + 4):
            files[f"set/{number:04}.PNG"] = png(number)
            files[f"set/{number:04}.cls"] = b"%d\n" % (number % 2)
            files[f"set/{number:04}.txt"] = b"number %d\nor so\n" % number
            files[f"set/{number:04}.seg.png"] = png(99)
        pack(tmp_path / "shards" / f"train-{shard:04}.tar", files)
    return tmp_path / "shards"


def test_images_labels_and_captions_are_those_that_were_packed(root: Path) -> None:
    samples = open_images(root)
    assert samples.ids == [f"train-{i // 4:04}.tar/set/{i:04}.png" for i in range(8)]
    assert samples.classes == ("0", "1")
    assert samples.labels == (0, 1) * 4
    for i, sample in enumerate(samples):
        assert sample.size == (20, 24)
        assert np.array_equal(np.asarray(sample.load()), np.asarray(Image.open(io.BytesIO(png(i)))))
    assert read_captions(root, samples) == [(f"number {i}", "or so") for i in range(8)]


def test_subsets_and_digests_are_as_of_any_list(root: Path) -> None:
    samples = open_images(root)
    some = samples.limit(4, seed=3)
    assert sorted(str(label) for label in some.labels) == ["0", "0", "1", "1"]
    assert {sample.id for sample in some} <= set(samples.ids)
    assert np.array_equal(np.asarray(some[0].load()), np.asarray(samples[samples.ids.index(some[0].id)].load()))
    assert open_images(root).digest == samples.digest
    pack(root / "train-0001.tar", {f"set/{i:04}.png": png(i + 1) for i in range(4, 8)} | {"set/0000.cls": b"0"})
    with pytest.raises(BadData, match=r"4 images of .* have no \.cls, the first is train-0001.tar/set/0004.png"):
        open_images(root)
    pack(root / "train-0000.tar", {"set/0000.png": png(0), "set/0001.png": png(0)})
    assert open_images(root).digest != samples.digest
    assert open_images(root).labels == (None,) * 6


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"a.txt": b"no image"}, "there are no images in the 1 tar files"),
        ({"n01440764.tar": b"\0" * 1024}, "unpack those"),
        ({"a.png": b"", "a.jpg": b""}, "2 images of one name"),
        ({"a.png": b"", "b.png": b"", "a.PNG": b""}, "the same image twice"),
        ({"a.png": b"", "a.cls": b"-1"}, "whole number"),
        ({"a.png": b"", "a.cls": b"9" * 9}, "whole number below"),
        ({"a.png": b"", "a.cls": b"1" * 65}, "more than 64 bytes"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, files: dict[str, bytes], said: str) -> None:
    pack(tmp_path / "shards" / "a.tar", files)
    with pytest.raises(BadData, match=said):
        open_images(tmp_path / "shards")


def test_a_header_that_asks_for_the_whole_disk_is_refused(tmp_path: Path) -> None:
    member = tarfile.TarInfo("a.png")
    member.type, member.size = tarfile.XHDTYPE, 1 << 33
    (tmp_path / "a.tar").write_bytes(member.tobuf() + b"\0" * 10240)
    with pytest.raises(BadData, match="not a tar file that can be read"):
        open_images(tmp_path)


def test_damage_is_told_and_never_anything_else(root: Path) -> None:
    whole = (root / "train-0000.tar").read_bytes()
    random = Random(0)
    told = 0
    for case in range(300):
        damaged = changed_bytes(whole, random) if case % 3 else changed_bytes(whole[:1024], random) + whole[1024:]
        (root / "train-0000.tar").write_bytes(damaged)
        try:
            for sample in open_images(root):
                sample.load()
        except BadData:  # BadImage is one
            told += 1
    assert told > 50
    (root / "train-0000.tar").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadData, match="cut short"):
        open_images(root)


def test_an_image_that_went_away_is_told(root: Path) -> None:
    sample = open_images(root)[0]
    (root / "train-0000.tar").unlink()
    with pytest.raises(BadImage, match=r"train-0000\.tar/set/0000\.png: cannot be read"):
        sample.load()
