"""SPair-71k in its official layout with its oddities, and a plain JSON of pairs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from vitscope.core.errors import BadData
from vitscope.data.keypoints import KeypointPair
from vitscope.data.spair import open_keypoints, open_spair


def pair(category: str, source: str, target: str, **changes: Any) -> dict[str, Any]:
    """A pair annotation with the fields of the official files."""
    return {
        "pair_id": 1,
        "category": category,
        "src_imname": f"{source}.jpg",
        "trg_imname": f"{target}.jpg",
        "src_imsize": [24, 16, 3],
        "trg_imsize": [24, 16, 3],
        "src_bndbox": [1, 1, 20, 12],
        "trg_bndbox": [2, 3, 22, 15],
        "src_kps": [[3, 4], [10, 11]],
        "trg_kps": [[5, 6], [12, 13]],
        "kps_ids": ["0", "4"],
        "mirror": 0,
        "viewpoint_variation": 1,
        "scale_variation": 0,
        "truncation": 2,
        "occlusion": 0,
    } | changes


@pytest.fixture
def spair(photo: Callable[..., Path], tmp_path: Path) -> Path:
    root = tmp_path / "SPair-71k"
    for name in ("cat/a.jpg", "cat/b.jpg", "cat/c.jpg", "dog/a.jpg", "dog/b.jpg", "sheep/a.jpg"):
        photo(f"SPair-71k/JPEGImages/{name}", size=(24, 16))
    Image.fromarray(np.full((16, 24), 90, np.uint8)).save(root / "JPEGImages/cat/c.jpg")  # grey
    records = {
        "000002-b-c:cat": pair("cat", "b", "c"),
        "000001-a-b:cat": pair("cat", "a", "b", trg_kps=[[5, 6], [24.0, 16.0]]),
        "000003-a-b:dog": pair("dog", "a", "b", src_kps=[[3, 4], [30, 4]]),  # the second lies outside
    }
    for split in ("trn", "val", "test"):
        (root / "PairAnnotation" / split).mkdir(parents=True)
    for name, record in records.items():
        (root / "PairAnnotation/test" / f"{name}.json").write_text(json.dumps(record))
    (root / "Layout/large").mkdir(parents=True)
    (root / "Layout/large/test.txt").write_text("\n".join(records) + "\n")
    return root


def test_official_layout(spair: Path) -> None:
    keypoints = open_keypoints(spair)
    assert [p.id for p in keypoints.pairs] == ["000002-b-c:cat", "000001-a-b:cat", "000003-a-b:dog"]
    assert [s.id for s in keypoints.images] == [
        "cat/b.jpg",
        "cat/c.jpg",
        "cat/a.jpg",
        "dog/a.jpg",
        "dog/b.jpg",
    ]
    assert set(keypoints.sizes) == {(16, 24)}
    assert keypoints.categories == ("cat", "dog")
    second = keypoints.pairs[1]
    assert second == KeypointPair(
        id="000001-a-b:cat",
        category="cat",
        source=2,
        target=0,  # the image of the first pair, encoded once
        source_points=((3.0, 4.0), (10.0, 11.0)),
        target_points=((5.0, 6.0), (24.0, 16.0)),  # on the far corner: still inside
        target_box=(2.0, 3.0, 22.0, 15.0),
    )
    assert keypoints.pairs[2].source_points == ((3.0, 4.0),)
    assert keypoints.pairs[2].target_points == ((5.0, 6.0),)
    assert keypoints.notes == (
        "1 points were left out: they lie outside their image",
        "there are no pairs of sheep",
    )
    assert all(sample.load().mode == "RGB" for sample in keypoints.images)


def test_digest_follows_the_points(spair: Path) -> None:
    before = open_spair(spair).digest
    assert open_spair(spair).digest == before
    file = spair / "PairAnnotation/test/000002-b-c:cat.json"
    file.write_text(json.dumps(pair("cat", "b", "c", src_kps=[[3, 4], [10, 12]])))
    assert open_spair(spair).digest != before


def test_without_layout_file_and_with_underscores(spair: Path) -> None:
    for file in (spair / "PairAnnotation/test").iterdir():
        file.rename(file.with_name(file.name.replace(":", "_")))
    assert len(open_spair(spair).pairs) == 3  # found through the layout's names
    (spair / "Layout/large/test.txt").unlink()
    assert [p.id for p in open_spair(spair).pairs] == ["000001-a-b_cat", "000002-b-c_cat", "000003-a-b_dog"]


def test_missing_images_are_counted(spair: Path) -> None:
    (spair / "JPEGImages/cat/a.jpg").unlink()
    (spair / "JPEGImages/dog/b.jpg").write_bytes(b"broken")
    keypoints = open_spair(spair)
    assert [p.id for p in keypoints.pairs] == ["000002-b-c:cat"]
    assert [s.id for s in keypoints.images] == ["cat/b.jpg", "cat/c.jpg"]
    assert "2 pairs were left out: an image is missing or unreadable" in keypoints.notes
    assert "there are no pairs of dog, sheep" in keypoints.notes


def test_pairs_without_points_are_counted(spair: Path) -> None:
    file = spair / "PairAnnotation/test/000002-b-c:cat.json"
    file.write_text(json.dumps(pair("cat", "b", "c", src_kps=[], trg_kps=[])))
    assert "1 pairs were left out: they have no points" in open_spair(spair).notes


def test_limit_is_per_category_and_keeps_needed_images(spair: Path) -> None:
    keypoints = open_spair(spair)
    few = keypoints.limit(1, seed=5)
    assert sorted(p.category for p in few.pairs) == ["cat", "dog"]
    assert len(few.images) == 4
    for p in few.pairs:
        original = next(q for q in keypoints.pairs if q.id == p.id)
        assert few.images[p.source] == keypoints.images[original.source]
        assert few.images[p.target] == keypoints.images[original.target]
    assert few.digest == keypoints.limit(1, seed=5).digest
    with pytest.raises(BadData, match="1 or more"):
        keypoints.limit(0)


def spoil(root: Path, how: str) -> None:
    file = root / "PairAnnotation/test/000002-b-c:cat.json"
    records: dict[str, Any] = {
        "no points": {k: v for k, v in pair("cat", "b", "c").items() if k != "src_kps"},
        "unequal": pair("cat", "b", "c", src_kps=[[1, 1]]),
        "nan": pair("cat", "b", "c", src_kps=[[1, 1], [float("nan"), 1]]),
        "escaping": pair("cat", "../../b", "c"),
        "box": pair("cat", "b", "c", trg_bndbox=[5, 5, 5, 9]),
        "list": [],
    }
    if how in records:
        file.write_text(json.dumps(records[how]))
    elif how == "no json":
        file.write_text("{")
    elif how == "missing pair":
        file.unlink()
    elif how == "no images":
        (root / "JPEGImages").rename(root / "Images")
    elif how == "all missing":
        for image in (root / "JPEGImages").rglob("*.jpg"):
            image.unlink()


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("no points", "not a pair of SPair-71k: src_kps is missing"),
        ("unequal", "source points but"),
        ("nan", "NaN is not a number"),
        ("escaping", "outside its folder"),
        ("box", "target box"),
        ("list", "not a pair of SPair-71k"),
        ("no json", "not valid JSON"),
        ("missing pair", "pair 000002-b-c:cat is listed but"),
        (
            "no images",
            "is not SPair-71k: expected .*JPEGImages/ is missing; found Images/, Layout/, PairAnnotation/",
        ),
        ("all missing", "no usable pairs: 3 pairs were left out"),
    ],
)
def test_what_is_wrong_is_said(spair: Path, how: str, said: str) -> None:
    spoil(spair, how)
    with pytest.raises(BadData, match=said):
        open_spair(spair)


def test_a_split_without_pairs(spair: Path) -> None:
    with pytest.raises(BadData, match=r"there are no pairs in .*found an empty folder"):
        open_spair(spair, "val")


def test_plain_json(photo: Callable[..., Path], tmp_path: Path) -> None:
    photo("pictures/a.png", size=(40, 20))
    photo("b.png", size=(10, 30))
    pairs = [
        {
            "source": "pictures/a.png",
            "target": "b.png",
            "source_points": [[1, 2]],
            "target_points": [[3, 4.5]],
        },
        {
            "source": "b.png",
            "target": "pictures/a.png",
            "source_points": [[1, 2]],
            "target_points": [[3, 4]],
            "target_box": [0, 0, 8, 9],
            "category": "mug",
        },
    ]
    for content in (pairs, {"pairs": pairs}):
        (tmp_path / "pairs.json").write_text(json.dumps(content))
        keypoints = open_keypoints(tmp_path / "pairs.json")
        assert keypoints.sizes == ((20, 40), (30, 10))
        assert keypoints.pairs[0].target_box == (0, 0, 10, 30)  # the whole image
        assert keypoints.pairs[0].target_points == ((3.0, 4.5),)
        assert keypoints.pairs[1].target_box == (0, 0, 8, 9)
        assert keypoints.categories == ("all", "mug")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"images": []}, "not a list of keypoint pairs"),
        ([{"source": "a.png"}], "pair 1 in .* is unusable: target is missing"),
        (["x"], "pair 1 in .* is unusable"),
        ([], "the list is empty"),
    ],
)
def test_bad_plain_json(tmp_path: Path, content: Any, said: str) -> None:
    (tmp_path / "pairs.json").write_text(json.dumps(content))
    with pytest.raises(BadData, match=said):
        open_keypoints(tmp_path / "pairs.json")
