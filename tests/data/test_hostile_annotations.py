"""Annotations that lead out of their folder, or say numbers that would give wrong results: told, never used."""

from __future__ import annotations

import json
import pickle
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from vitscope.core.errors import BadData, VitscopeError
from vitscope.data.coco import open_coco
from vitscope.data.davis import open_frames, open_videos
from vitscope.data.folders import open_images
from vitscope.data.masks import open_masks
from vitscope.data.polygons import rasterise
from vitscope.data.retrieval import open_retrieval
from vitscope.data.safe_pickle import read_plain_pickle
from vitscope.data.spair import open_keypoints

Photo = Callable[..., Path]
OUTSIDE = ["/etc/passwd.png", "../secret.png", "a/../../secret.png", "..\\secret.png", "C:\\secret.png", "\\secret.png"]
IMPOSSIBLE = ["", "a\0b.png", "\ud800.png", "k" * 300 + ".png", 7, None, ["a.png"], {"a": 1}, True, 1e999]


def pairs(path: Path, **changes: Any) -> Path:
    record = {"source": "a.png", "target": "b.png", "source_points": [[1, 1]], "target_points": [[2, 2]]} | changes
    path.write_text(json.dumps([record]).replace("Infinity", "1e999"))  # which is JSON, and as infinite
    return path


@pytest.mark.parametrize("name", [*OUTSIDE, *IMPOSSIBLE], ids=lambda name: repr(name)[:20])
def test_every_format_reads_images_of_its_own_folder_only(photo: Photo, tmp_path: Path, name: Any) -> None:
    photo("secret.png")
    for file in ("data/a.png", "data/b.png", "data/jpg/a.jpg"):
        photo(file)
    root = tmp_path / "data"
    with pytest.raises(BadData):
        open_keypoints(pairs(root / "pairs.json", source=name))
    with pytest.raises(BadData):
        open_keypoints(pairs(root / "pairs.json", target=name))
    image = {"id": 1, "file_name": name, "height": 16, "width": 24}
    region = {"image_id": 1, "category_id": 1, "segmentation": [[1, 1, 9, 1, 9, 9]]}
    content = {"images": [image], "annotations": [region], "categories": [{"id": 1, "name": "cat"}]}
    (root / "coco.json").write_text(json.dumps(content))
    with pytest.raises(BadData):
        open_coco(root / "coco.json", root)
    truth = {"imlist": [name], "qimlist": ["a"], "gnd": [{"bbx": [0, 0, 9, 9], "easy": [0], "hard": [], "junk": []}]}
    (root / "gnd_roxford5k.pkl").write_bytes(pickle.dumps(truth))
    with pytest.raises(BadData):
        open_retrieval(root)
    spair = tmp_path / "SPair"
    (spair / "PairAnnotation/test").mkdir(parents=True)
    photo("SPair/JPEGImages/cat/a.png")
    record = {"category": "cat", "src_imname": name, "trg_imname": "a.png", "src_kps": [[1, 1]], "trg_kps": [[1, 1]]}
    (spair / "PairAnnotation/test/1.json").write_text(json.dumps(record | {"trg_bndbox": [0, 0, 9, 9]}))
    with pytest.raises(BadData):
        open_keypoints(spair)


def test_lists_of_pairs_and_sequences_stay_in_their_folder(photo: Photo, tmp_path: Path) -> None:
    photo("SPair/JPEGImages/cat/a.png")
    (tmp_path / "SPair/PairAnnotation/test").mkdir(parents=True)
    (tmp_path / "SPair/Layout/large").mkdir(parents=True)
    (tmp_path / "SPair/secret.json").write_text("{}")
    (tmp_path / "SPair/Layout/large/test.txt").write_text("../../secret\n")
    with pytest.raises(BadData, match="outside its folder"):
        open_keypoints(tmp_path / "SPair")
    for folder in ("JPEGImages/480p", "Annotations/480p", "ImageSets/2017"):
        (tmp_path / "DAVIS" / folder).mkdir(parents=True)
    for name in ("..", "a/../b", "a\\..\\b", "k" * 300):
        (tmp_path / "DAVIS/ImageSets/2017/val.txt").write_text(name)
        with pytest.raises(BadData):
            open_videos(tmp_path / "DAVIS")


def test_a_box_of_a_thousand_images_does_not_make_every_match_right(photo: Photo, tmp_path: Path) -> None:
    photo("a.png", size=(24, 16))
    photo("b.png", size=(24, 16))
    cut = open_keypoints(pairs(tmp_path / "p.json", target_box=[-1e9, 2, 1e9, 10]))
    assert cut.pairs[0].target_box == (0, 2, 24, 10)
    assert "1 target boxes were cut at the border of their image" in cut.notes
    whole = open_keypoints(pairs(tmp_path / "p.json", target_box=[0, 0, 24, 16]))
    assert whole.pairs[0].target_box == (0, 0, 24, 16)
    assert not whole.notes
    with pytest.raises(BadData, match="1 pairs were left out: their target box lies outside its image"):
        open_keypoints(pairs(tmp_path / "p.json", target_box=[100, 100, 200, 200]))


@pytest.mark.parametrize(
    "changes",
    [
        *(
            {"target_box": box}
            for box in ([0, 0, 1e999, 9], [0, 0, 10**400, 9], ["0", "0", "9", "9"], "0099", 7, [0, 0, 9])
        ),
        *({"target_box": box} for box in ([0, 0, True, True], [[0], 0, 9, 9], {"0": 0}, [9, 9, 0, 0], [0, 0, 0, 0])),
        *({"source_points": points} for points in (None, 7, "ab", [[1]], [[1, 2, 3]], [["1", "1"]], [1, 1], {"ab": 1})),
        *({"source_points": points} for points in ([[1e999, 1]], [[10**400, 1]], [[1, 1], [2, 2]], [[1, 1]] * 20_000)),
    ],
    ids=lambda changes: repr(changes)[:40],
)
def test_numbers_of_pairs_that_are_none(photo: Photo, tmp_path: Path, changes: dict[str, Any]) -> None:
    photo("a.png")
    photo("b.png")
    with pytest.raises(BadData, match="pair 1 in"):
        open_keypoints(pairs(tmp_path / "p.json", **changes))


@pytest.mark.parametrize(
    "text", ["[NaN]", '[{"a": Infinity}]', "[-Infinity]", "[" * 100_000, "[1" + "0" * 5000 + "]", ""]
)
def test_json_that_is_none(photo: Photo, tmp_path: Path, text: str) -> None:
    photo("val2017/a.png")
    (tmp_path / "p.json").write_text(text)
    for read in (lambda: open_keypoints(tmp_path / "p.json"), lambda: open_coco(tmp_path / "p.json", tmp_path)):
        with pytest.raises(BadData, match=r"p\.json"):
            read()


def coco(path: Path, **changes: Any) -> Path:
    image = {"id": 1, "file_name": "a.png", "height": 16, "width": 24}
    region = {"image_id": 1, "category_id": 1, "segmentation": [[1, 1, 9, 1, 9, 9]]}
    content = {"images": [image], "annotations": [region], "categories": [{"id": 1, "name": "cat"}]}
    for key, value in changes.items():
        where = {"images": image, "annotations": region, "categories": content["categories"][0]}[key.split("__")[0]]
        where[key.split("__")[1]] = value
    path.write_text(json.dumps(content).replace("Infinity", "1e999"))
    return path


@pytest.mark.parametrize(
    "changes",
    [
        *({"images__width": value} for value in (0, -24, 24.5, "24", None, [24], 1e999, 10**400, True, 10**9)),
        *({"annotations__segmentation": [[1, 1, 9, 1, 9, value]]} for value in ("9", 1e999, 10**400, None, [9])),
        *({"annotations__segmentation": {"counts": value, "size": [16, 24]}} for value in (["384"], [1e999], 7, None)),
        *({"annotations__category_id": value} for value in (2, "1", [1], None)),
        {"categories__id": [1]},
        {"images__id": {}},
        {"annotations__image_id": []},
        {"annotations__segmentation": [[1, 1, 9, 1, 9, 9]] * 2, "images__id": 2},
    ],
    ids=lambda changes: repr(changes)[:60],
)
def test_numbers_of_coco_that_are_none(photo: Photo, tmp_path: Path, changes: dict[str, Any]) -> None:
    photo("a.png")
    with pytest.raises(BadData, match=r"c\.json"):
        open_coco(coco(tmp_path / "c.json", **changes), tmp_path)


def test_more_regions_than_memory(photo: Photo, tmp_path: Path) -> None:
    photo("a.png")
    path = coco(tmp_path / "c.json")
    content = json.loads(path.read_text())
    content["annotations"] *= 5000
    path.write_text(json.dumps(content))
    with pytest.raises(BadData, match="5000 regions"):
        open_coco(path, tmp_path)


def test_a_polygon_that_would_fill_the_memory_is_not_drawn() -> None:
    zigzag = np.tile([0.0, 0.0, 9000.0, 1.0], 50_000)
    with pytest.raises(ValueError, match="outline is too long"):
        rasterise((zigzag,), 9000, 9000)


def test_a_run_length_mask_of_another_size_is_left_out(photo: Photo, tmp_path: Path) -> None:
    photo("a.png")
    with pytest.raises(BadData, match="1 regions are of another size"):
        open_coco(coco(tmp_path / "c.json", annotations__segmentation={"counts": [0, 384], "size": [24, 16]}), tmp_path)


def test_partimagenet_with_strange_categories(photo: Photo, tmp_path: Path) -> None:
    photo("part/train/a.png")
    strange: list[Any] = [7, None, "cat", [], {"id": 1}, {"name": "cat"}]
    for category in strange:
        path = coco(tmp_path / "part/train.json")
        content = json.loads(path.read_text())
        content["categories"] = [category]
        path.write_text(json.dumps(content))
        with pytest.raises(BadData, match=r"train\.json"):
            open_masks(tmp_path / "part")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"easy": [0, 0]}, "stands twice"),
        ({"easy": [0], "junk": [0]}, "stands twice"),
        ({"easy": [0], "hard": [0]}, "stands twice"),
        ({"easy": [], "hard": [], "junk": [0]}, "no query has an image"),
        ({"easy": ["0"]}, "type str"),
        ({"easy": [0.5]}, "whole number"),
        ({"easy": [float("inf")]}, "finite"),
        ({"easy": [10**400]}, "finite"),
        ({"easy": [True]}, "type bool"),
        ({"easy": [2]}, "not one of the 2 images"),
        ({"easy": [-1]}, "not one of the 2 images"),
        ({"bbx": [0, 0, float("nan"), 9]}, "finite"),
        ({"bbx": [0, 0, 9]}, "query box"),
    ],
)
def test_retrieval_answers_that_change_the_score(
    photo: Photo, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    photo("data/jpg/a.jpg")
    photo("data/jpg/b.jpg")
    record = {"bbx": [0, 0, 9, 9], "easy": [1], "hard": [], "junk": []} | change
    truth = {"imlist": ["a", "b"], "qimlist": ["a"], "gnd": [record]}
    (tmp_path / "data/gnd_roxford5k.pkl").write_bytes(pickle.dumps(truth))
    with pytest.raises(BadData, match=said):
        open_retrieval(tmp_path / "data")


def test_an_image_that_stands_twice_in_the_database(photo: Photo, tmp_path: Path) -> None:
    photo("data/jpg/a.jpg")
    truth = {
        "imlist": ["a", "a"],
        "qimlist": ["a"],
        "gnd": [{"bbx": [0, 0, 9, 9], "easy": [0], "hard": [], "junk": []}],
    }
    (tmp_path / "data/gnd_roxford5k.pkl").write_bytes(pickle.dumps(truth))
    with pytest.raises(BadData, match="twice"):
        open_retrieval(tmp_path / "data")


def test_pickles_that_never_end(tmp_path: Path) -> None:
    endless: Any = ()
    for _ in range(60):
        endless = (endless, endless)
    lists: Any = []
    for _ in range(60):
        lists = [lists, lists]
    itself: list[Any] = []
    itself.append(itself)
    key = pickle.dumps(endless, 2)[:-1]  # the same as the key of a dictionary: the unpickler itself hashes it
    streams = [pickle.dumps(endless), pickle.dumps(lists), pickle.dumps(itself), b"}" + key + b"K\x01s."]
    for stream in streams:
        (tmp_path / "a.pkl").write_bytes(stream)
        with pytest.raises(BadData, match="refused"):
            read_plain_pickle(tmp_path / "a.pkl")


def test_frames_whose_names_are_numbers_to_some(tmp_path: Path, photo: Photo) -> None:
    for name in ("1²2.png", "10.png", "9.png", "①.png", "٣.png"):
        photo(f"video/{name}")
    Image.fromarray(np.full((16, 24), 1, np.uint8)).save(tmp_path / "video/mask.png")
    sequence = open_videos(tmp_path / "video").sequences[0]
    names = [path.name for path in sequence.frames]
    assert names.index("9.png") < names.index("10.png")
    assert len(names) == 5


def test_first_masks_with_more_labels_than_a_byte(tmp_path: Path, photo: Photo) -> None:
    photo("video/1.png")
    photo("video/2.png")
    Image.fromarray(np.full((16, 24), 300, np.uint16)).save(tmp_path / "video/mask.png")
    with pytest.raises(BadData, match="above 255"):
        open_frames(tmp_path / "video", tmp_path / "video/mask.png")


def test_masks_with_a_value_for_every_pixel(tmp_path: Path, photo: Photo) -> None:
    photo("images/a.png", size=(100, 100))
    (tmp_path / "masks").mkdir()
    Image.fromarray(np.arange(10_000, dtype=np.uint16).reshape(100, 100)).save(tmp_path / "masks/a.png")
    with pytest.raises(BadData, match="not a mask"):
        open_masks(tmp_path)


OPENERS = (open_images, open_masks, open_retrieval, open_videos, open_keypoints)


@pytest.mark.parametrize("opener", OPENERS, ids=lambda opener: opener.__name__)
@pytest.mark.parametrize(
    "path", ["~nosuchuser/x", "k" * 300, "a\0b", "k/" * 3000, "\ud800", ""], ids=lambda p: repr(p)[:12]
)
def test_paths_that_no_machine_has(
    opener: Callable[[Any], Any], path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(VitscopeError):
        opener(path)


def test_folders_nested_beyond_reason(photo: Photo, tmp_path: Path) -> None:
    deep = tmp_path / "deep" / "/".join("d" * 200)
    deep.mkdir(parents=True)
    with pytest.raises(BadData, match="nested"):
        open_images(tmp_path / "deep")


def test_a_hundred_thousand_pairs_fit_into_memory(photo: Photo, tmp_path: Path) -> None:
    photo("a.png")
    photo("b.png")
    points = [[float(i % 20), float(i % 15)] for i in range(20)]
    record = {"source": "a.png", "target": "b.png", "source_points": points, "target_points": points}
    line = json.dumps(record)
    (tmp_path / "p.json").write_text(f"[{','.join([line] * 5000)}]")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = open_keypoints(tmp_path / "p.json")
    assert len(found.digest) == 16
    assert len(found.pairs) == 5000
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 100 << 10  # KiB, so 2 GB for the hundred thousand
