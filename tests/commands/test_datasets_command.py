"""`vitscope datasets`: what is here, what is not and how to get it, and whether a copy is complete."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.datasets import write_coco, write_study_datasets
from vitscope.cli import main
from vitscope.core.errors import BadData
from vitscope.data import imagenet50
from vitscope.data.imagined import imagine
from vitscope.data.official import COUNTS, OFFICIAL, check_copy, official
from vitscope.data.openers import OPENERS

TWO = {"n01601694": "Dipper", "n01669191": "Box Turtle"}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VITSCOPE_DATA", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(imagenet50, "imagenet50_classes", lambda: TWO)
    return tmp_path


def test_the_table_is_consistent() -> None:
    for name, known in OFFICIAL.items():
        assert name == known.name == name.lower()
        assert known.kind in OPENERS
        assert set(known.facts) <= set(COUNTS)
        assert known.folders
        assert known.expected
        assert all(digest.partition(":")[0] in hashlib.algorithms_available for digest in known.archives.values())


def test_all_is_missing_and_then_present(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["datasets"])
    text = capsys.readouterr().out
    assert text.count("missing (about") == len(OFFICIAL)
    write_study_datasets(root)
    main(["datasets"])
    text = capsys.readouterr().out
    assert text.count(f"present {root}") == len(OFFICIAL)
    assert str(root / "DAVIS") in text
    assert "frames with mask.png" in text  # layouts of one's own data


def test_one_dataset_in_words(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["datasets", "SPair-71k"])
    text = capsys.readouterr().out
    for words in ("missing", str(root / "SPair-71k"), "PairAnnotation/test/", "12,234 pairs", "POSTECH", "240 MB"):
        assert words in text


@pytest.mark.parametrize("name", OFFICIAL)
def test_every_layout_opens_and_is_found_to_be_a_part(
    root: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The counts of the small copies are known: they were written with them."""
    write_study_datasets(root)
    known = official(name)
    place = known.find()
    assert place is not None
    dataset = known.open(place)
    made = {
        "imagenet": {"classes": 2, "training images": 4, "test images": 2},
        "imagenet-50": {"classes": 2, "images": 4},
        "coco-val2017": {"images with regions": 2, "categories": 80, "regions": 180},
        "partimagenet": {"classes": 2, "categories": 40},
        "roxford5k": {"queries": 1, "database images": 3},
        "rparis6k": {"queries": 1, "database images": 3},
        "davis-2017": {"videos": 1, "frames": 3, "objects": 2},
        "spair-71k": {"pairs": 1, "categories": 1},
    }
    assert {what: COUNTS[what](dataset) for what in known.facts} == made[name]
    with pytest.raises(SystemExit) as stop:
        main(["datasets", name, "--check"])
    assert stop.value.code == 2
    assert "WRONG" in capsys.readouterr().out


def test_a_complete_copy_is_right_and_a_broken_image_is_not(root: Path) -> None:
    place = write_coco(root / "coco")
    (root / "images.zip").write_bytes(b"as published")
    known = replace(
        official("coco-val2017"),
        facts={"images with regions": 2, "regions": 180},
        archives={"images.zip": f"sha256:{hashlib.sha256(b'as published').hexdigest()}", "gone.zip": "md5:00"},
    )
    assert [fact.right for fact in check_copy(known, place)] == [True, True, True, True, None]
    (root / "images.zip").write_bytes(b"cut")
    (place / "val2017/000000000001.jpg").write_bytes(b"no image")
    assert [fact.right for fact in check_copy(known, place)] == [True, True, False, False, None]


def test_a_copy_elsewhere(tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = write_coco(tmp_path / "other" / "place")
    with pytest.raises(SystemExit):
        main(["datasets", "coco-val2017", "--check", "--path", str(place)])
    assert "right categories: 80" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["datasets", "coko-val2017"], "did you mean 'coco-val2017'"),
        (["datasets", "--path", "x"], "name it too"),
        (["datasets", "--check"], "there is nothing to check"),
    ],
)
def test_what_is_wrong_is_told(root: Path, words: list[str], match: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    assert match in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("name", sorted(set(OFFICIAL) - {"imagenet"}))
def test_a_dataset_that_is_not_here_is_imagined_as_large_as_it_is(name: str) -> None:
    known = official(name)
    dataset = imagine(known)
    assert dataset.kind == known.kind
    assert dataset.count == known.images
    exact = {what: count for what, count in known.facts.items() if what not in ("regions", "classes", "objects")}
    assert {what: COUNTS[what](dataset) for what in exact} == exact
    if known.kind == "masks":
        assert imagine(known, per_supercategory=100).count == 1100
        with pytest.raises(BadData, match="not on this machine"):
            dataset.samples[0].annotations[0].decode()  # type: ignore[attr-defined]
