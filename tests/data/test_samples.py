"""Lists of samples: their digest, their subsets and their order."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image

from vitscope.core.errors import BadData
from vitscope.data.folders import open_images
from vitscope.data.samples import Sample, SampleList


def unlabelled(n: int) -> SampleList:
    return SampleList(Sample(f"{i:03}.jpg", Path("nowhere") / f"{i:03}.jpg") for i in range(n))


def labelled(counts: dict[str, int]) -> SampleList:
    samples = [
        Sample(f"{name}/{i:03}.jpg", Path("nowhere"), label)
        for label, (name, count) in enumerate(counts.items())
        for i in range(count)
    ]
    return SampleList(samples, classes=list(counts))


def ids(samples: SampleList) -> list[str]:
    return [sample.id for sample in samples]


def test_sequence() -> None:
    samples = unlabelled(5)
    assert len(samples) == 5
    assert samples[-1].id == "004.jpg"
    assert ids(samples[1:3]) == ["001.jpg", "002.jpg"]
    assert ids(samples.select([4, 0])) == ["004.jpg", "000.jpg"]
    assert not samples.is_labelled
    assert labelled({"a": 1}).is_labelled


def test_digest_depends_on_ids_labels_names_and_order() -> None:
    base = labelled({"a": 2, "b": 2})
    assert base.digest == labelled({"a": 2, "b": 2}).digest
    others = [
        labelled({"a": 2, "c": 2}),
        labelled({"a": 3, "b": 1}),
        base.select([1, 0, 2, 3]),
        SampleList(list(base)),
        SampleList(list(base), classes=base.classes, annotation_digest="edited"),
    ]
    digests = {other.digest for other in others} | {base.digest}
    assert len(digests) == len(others) + 1


def test_digest_tells_folders_with_equal_names_apart(tmp_path: Path) -> None:
    digests = set()
    for folder, content in (("a", b"one"), ("b", b"longer"), ("c", b"two")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "0.jpg").write_bytes(content)
        digests.add(SampleList([Sample("0.jpg", tmp_path / folder / "0.jpg")]).digest)
    assert len(digests) == 3  # "one" and "two" have the same size, and are not the same


@pytest.mark.parametrize("listed", [True, False])
def test_an_image_replaced_by_another_of_the_same_size_is_noticed(tmp_path: Path, listed: bool) -> None:
    path = tmp_path / "0.bmp"
    Image.new("RGB", (4, 4), "red").save(path)
    os.utime(path, (0, 0))  # a file of long ago

    def opened() -> SampleList:
        return open_images(tmp_path) if listed else SampleList([Sample("0.bmp", path)])

    before, size = opened().digest, path.stat().st_size
    Image.new("RGB", (4, 4), "blue").save(path)
    assert path.stat().st_size == size
    assert opened().digest != before


def test_limit_is_seeded_nested_and_keeps_the_order() -> None:
    samples = unlabelled(100)
    small, large = samples.limit(10, seed=3), samples.limit(20, seed=3)
    assert len(small) == 10
    assert set(ids(small)) < set(ids(large))
    assert ids(large) == sorted(ids(large))
    assert ids(small) == ids(samples.limit(10, seed=3))
    assert ids(small) != ids(samples.limit(10, seed=4))
    assert samples.limit(100) is samples


def test_limit_is_the_same_on_every_machine() -> None:
    # the three smallest digests of `printf '0|000.jpg' | b2sum -l 128` ... `0|007.jpg`
    assert ids(unlabelled(8).limit(3, seed=0)) == ["001.jpg", "005.jpg", "007.jpg"]


def test_limit_balances_classes() -> None:
    samples = labelled({"a": 50, "b": 50, "rare": 2})
    picked = samples.limit(20)
    assert Counter(s.id.split("/")[0] for s in picked) == {"a": 9, "b": 9, "rare": 2}
    assert [s.label for s in picked] == sorted(s.label for s in picked if s.label is not None)
    assert picked.classes == samples.classes


def test_limit_below_the_number_of_classes_takes_different_classes() -> None:
    picked = labelled(dict.fromkeys("abcdefgh", 5)).limit(3)
    assert len({s.label for s in picked}) == 3


def test_nothing_is_not_a_limit() -> None:
    with pytest.raises(BadData, match="1 or more"):
        unlabelled(3).limit(0)


def test_shuffle_is_a_seeded_permutation() -> None:
    samples = unlabelled(50)
    once = samples.shuffled(1)
    assert ids(once) == ids(samples.shuffled(1))
    assert ids(once) != ids(samples)
    assert sorted(ids(once)) == ids(samples)
    # an image's place does not depend on the others: without the last ten the order of the rest is the same
    assert ids(samples[:40].shuffled(1)) == [i for i in ids(once) if i < "040"]
