"""COCO instances: masks as pycocotools draws them, and every mismatch counted."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from pycocotools import mask as mask_tools

from vitscope.core.errors import BadData
from vitscope.data.coco import CocoMask, open_coco
from vitscope.data.decode import BadImage
from vitscope.data.polygons import rasterise
from vitscope.data.rle import decode_counts, decompress_counts


@settings(max_examples=100, deadline=None)
@given(arrays(bool, array_shapes(min_dims=2, max_dims=2, max_side=40)))
def test_run_length_codes_agree_with_pycocotools(mask: np.ndarray) -> None:
    code = mask_tools.encode(np.asfortranarray(mask, np.uint8))
    assert np.array_equal(decode_counts(decompress_counts(code["counts"]), *mask.shape), mask)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=30))
def test_hostile_run_length_codes_are_refused(code: bytes) -> None:
    mask = CocoMask(0, (6, 7), counts=code)
    with contextlib.suppress(BadImage):  # and nothing else
        assert mask.decode().shape == (6, 7)


@pytest.mark.parametrize("counts", [[-1, 43], [2**63, 2**63], [5], [42, 1], []])
def test_run_lengths_that_do_not_fit_are_refused(counts: list[int]) -> None:
    with pytest.raises(BadImage, match="7x6 pixels"):
        CocoMask(0, (6, 7), counts=tuple(counts)).decode()


def test_polygon_is_drawn() -> None:
    mask = CocoMask(0, (10, 12), polygons=(np.array([2.0, 3, 8, 3, 8, 7, 2, 7]),)).decode()
    expected = np.zeros((10, 12), bool)
    expected[3:7, 2:8] = True  # x from 2 to 8, y from 3 to 7: whole pixels
    assert np.array_equal(mask, expected)


def test_several_polygons_are_one_region() -> None:
    left, right = np.array([0.0, 0, 4, 0, 4, 4, 0, 4]), np.array([6.0, 0, 8, 0, 8, 4, 6, 4])
    mask = CocoMask(0, (4, 8), polygons=(left, right)).decode()
    assert mask[0].tolist() == [True] * 4 + [False] * 2 + [True] * 2


@pytest.mark.parametrize("far", [1e18, -1e9, float("nan"), float("inf")])
def test_polygon_far_outside_is_refused(far: float) -> None:
    with pytest.raises(BadImage, match="far outside"):
        CocoMask(0, (10, 12), polygons=(np.array([0, 0, far, 0, 5, 5]),)).decode()


def content() -> dict[str, Any]:
    """Two usable images, a missing one, one without annotation; a crowd; regions without a mask."""
    square = [[0, 0, 4, 0, 4, 4, 0, 4]]
    compressed = mask_tools.encode(np.asfortranarray(np.eye(8, dtype=np.uint8)))
    return {
        "images": [
            {"id": 7, "file_name": "b.png", "width": 8, "height": 8},
            {"id": 3, "file_name": "a.png", "width": 8, "height": 8},
            {"id": 5, "file_name": "missing.png", "width": 8, "height": 8},
            {"id": 6, "file_name": "plain.png", "width": 8, "height": 8},
        ],
        "annotations": [
            {"id": 1, "image_id": 3, "category_id": 90, "iscrowd": 0, "segmentation": square},
            {
                "id": 2,
                "image_id": 3,
                "category_id": 1,
                "iscrowd": 1,
                "segmentation": {"size": [8, 8], "counts": [60, 4]},
            },
            {
                "id": 3,
                "image_id": 7,
                "category_id": 1,
                "iscrowd": 0,
                "segmentation": {"size": [8, 8], "counts": compressed["counts"].decode()},
            },
            {"id": 4, "image_id": 5, "category_id": 1, "iscrowd": 0, "segmentation": square},
            {"id": 5, "image_id": 6, "category_id": 1, "iscrowd": 0, "segmentation": []},
            {"id": 6, "image_id": 6, "category_id": 1, "iscrowd": 0, "segmentation": [[1, 1, 2, 2]]},
            {"id": 7, "image_id": 99, "category_id": 1, "iscrowd": 0, "segmentation": square},
        ],
        "categories": [
            {"id": 90, "name": "toothbrush", "supercategory": "indoor"},
            {"id": 1, "name": "person", "supercategory": "person"},
        ],
    }


@pytest.fixture
def coco(photo: Callable[..., Path], tmp_path: Path) -> Callable[[Any], Path]:
    for name in ("a.png", "b.png", "plain.png", "unmentioned.png"):
        photo(f"val2017/{name}", size=(8, 8))

    def write(data: Any) -> Path:
        path = tmp_path / "annotations" / "instances_val2017.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(data if isinstance(data, str) else json.dumps(data))
        return path

    return write


def test_coco_file(coco: Callable[[Any], Path], tmp_path: Path) -> None:
    samples = open_coco(coco(content()), tmp_path / "val2017")
    assert [s.id for s in samples] == ["a.png", "b.png"]
    assert samples.categories == ("person", "toothbrush")  # in the order of their ids
    a, b = samples
    assert [(r.category, r.crowd) for r in a.annotations if isinstance(r, CocoMask)] == [
        (1, False),
        (0, True),
    ]
    assert a.annotations[0].decode().sum() == 16
    last_column = np.zeros((8, 8), bool)
    last_column[4:, 7] = True  # 60 zeros down the columns, then 4 ones
    assert np.array_equal(a.annotations[1].decode(), last_column)
    assert np.array_equal(b.annotations[0].decode(), np.eye(8, dtype=bool))
    assert sorted(samples.notes) == [
        "instances_val2017.json: 1 images have no annotated region",
        "instances_val2017.json: 1 images named there do not exist",
        "instances_val2017.json: 1 regions are crowds, kept as foreground",
        "instances_val2017.json: 1 regions belong to no image of the file",
        "instances_val2017.json: 2 regions without a usable mask",
    ]


def test_digest_follows_the_annotations(coco: Callable[[Any], Path], tmp_path: Path) -> None:
    data = content()
    before = open_coco(coco(data), tmp_path / "val2017").digest
    assert open_coco(coco(data), tmp_path / "val2017").digest == before
    data["annotations"][0]["segmentation"] = [[0, 0, 5, 0, 5, 4, 0, 4]]
    assert open_coco(coco(data), tmp_path / "val2017").digest != before


def broken(change: str) -> Any:
    data = content()
    if change == "no categories":
        del data["categories"]
    elif change == "unknown category":
        data["annotations"][0]["category_id"] = 55
    elif change == "twice":
        data["images"].append(dict(data["images"][0]))
    elif change == "outside":
        data["images"][0]["file_name"] = "../../secret.png"
    elif change == "giant":
        data["images"][0]["width"] = 10**9
    elif change == "no width":
        del data["images"][0]["width"]
    elif change == "nothing usable":
        data["images"] = data["images"][2:]
    elif change == "strings":
        data["annotations"] = ["a", "b"]
    elif change == "a list":
        return [1, 2]
    elif change == "not json":
        return "{"
    elif change == "deep":
        return "[" * 100_000
    return data


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("no categories", "expected the lists images, annotations, categories, found images, annotations"),
        ("unknown category", "category 55"),
        ("twice", "describes image 7 .* twice"),
        ("outside", "outside its folder"),
        ("giant", "1000000000x8 pixels"),
        ("no width", "width is missing"),
        ("nothing usable", "1 images named there do not exist"),
        ("strings", "not a COCO instances file"),
        ("a list", "found list"),
        ("not json", "not valid JSON"),
        ("deep", "not valid JSON"),
    ],
)
def test_bad_files(coco: Callable[[Any], Path], tmp_path: Path, change: str, said: str) -> None:
    with pytest.raises(BadData, match=said):
        open_coco(coco(broken(change)), tmp_path / "val2017")


@pytest.mark.parametrize("kind", ["polygons", "compressed", "uncompressed"])
def test_every_kind_of_mask_is_read_without_pycocotools(
    coco: Callable[[Any], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    shapes: dict[str, Any] = {
        "polygons": [[1.3, 0.2, 7.5, 2.1, 3.2, 7.9], [0.0, 6.0, 2.0, 6.0, 2.0, 8.0]],
        "compressed": mask_tools.encode(np.asfortranarray(np.tri(8, dtype=np.uint8))),
        "uncompressed": {"size": [8, 8], "counts": [3, 10, 20, 5, 26]},
    }
    code = mask_tools.frPyObjects(shapes[kind], 8, 8) if kind != "compressed" else shapes[kind]
    expected = mask_tools.decode(mask_tools.merge(code) if kind == "polygons" else code)
    data = content()
    if kind == "compressed":
        shapes[kind]["counts"] = shapes[kind]["counts"].decode()
    data["annotations"] = [{**data["annotations"][0], "segmentation": shapes[kind]}]
    for name in [name for name in sys.modules if name.partition(".")[0] == "pycocotools"]:
        monkeypatch.setitem(sys.modules, name, None)
    (sample,) = open_coco(coco(data), tmp_path / "val2017")
    assert np.array_equal(sample.annotations[0].decode(), expected)


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 24), st.integers(1, 24), st.data())
def test_polygons_agree_with_pycocotools(height: int, width: int, data: st.DataObject) -> None:
    """Crossing themselves, with corners twice, on pixel borders, and partly outside the image."""
    corners = st.lists(
        st.tuples(st.floats(-width, 2 * width), st.floats(-height, 2 * height))
        | st.tuples(st.integers(-width, 2 * width), st.integers(-height, 2 * height)),
        min_size=3,
        max_size=8,
    )
    drawn = data.draw(st.lists(corners, min_size=1, max_size=3))
    polygons = [[float(value) for corner in polygon for value in corner] for polygon in drawn]
    expected = mask_tools.decode(mask_tools.merge(mask_tools.frPyObjects(polygons, height, width)))
    assert np.array_equal(rasterise([np.array(p) for p in polygons], height, width), expected)


def test_an_outline_that_would_fill_the_memory_is_refused() -> None:
    zigzag = np.tile([0.0, 0.0, 4000.0, 4000.0], 1000)
    with pytest.raises(BadImage, match="too long"):
        CocoMask(0, (4000, 4000), polygons=(zigzag,)).decode()
