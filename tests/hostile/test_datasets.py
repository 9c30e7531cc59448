"""Images and their annotations, in every layout: inside their folder, inside their image, each once, or told."""

from __future__ import annotations

import csv
import io
import json
import os
import pickle
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from PIL import Image

from tests.hostile.campaign import SIZE, Case, campaign, inside, photo
from tests.support.hostile import changed_bytes, changed_value, json_text
from vitscope.data.conflict import open_conflict
from vitscope.data.davis import VideoSet, open_videos
from vitscope.data.decode import MAX_PIXELS, BadImage, decode_bytes, decode_image, decode_mask, image_size
from vitscope.data.folders import open_images
from vitscope.data.keypoints import KeypointSet
from vitscope.data.labels import with_labels
from vitscope.data.masks import open_masks
from vitscope.data.retrieval import open_retrieval
from vitscope.data.samples import SampleList
from vitscope.data.spair import open_keypoints


def images(root: Path) -> Case:
    formats = {"png": "PNG", "jpg": "JPEG", "gif": "GIF", "bmp": "BMP", "webp": "WEBP", "tif": "TIFF", "ppm": "PPM"}
    contents = {suffix: photo(root / f"a.{suffix}", format=name).read_bytes() for suffix, name in formats.items()}

    def case(random: Random) -> None:
        suffix = random.choice(list(contents))
        path = root / f"b.{suffix}"
        path.write_bytes(changed_bytes(contents[suffix], random))
        size = image_size(path)
        image = decode_image(path)
        assert image.mode == "RGB"
        assert size[0] * size[1] <= MAX_PIXELS
        assert (image.height, image.width) == size
        assert decode_bytes(path.read_bytes(), "an upload").tobytes() == image.tobytes()

    return case


def mask_images(root: Path) -> Case:
    values = np.zeros((SIZE[1], SIZE[0]), np.uint8)
    values[2:9, 3:12] = 1
    buffer = io.BytesIO()
    Image.fromarray(values).save(buffer, "PNG")
    photo(root / "images/a.png")
    (root / "masks").mkdir()

    def case(random: Random) -> None:
        (root / "masks/a.png").write_bytes(changed_bytes(buffer.getvalue(), random))
        samples = open_masks(root)
        decoded = decode_mask(root / "masks/a.png")
        regions = [annotation.decode() for annotation in samples[0].annotations]
        only_void = set(np.unique(decoded)) <= {0, 255}  # beside other values, 255 is void
        assert np.array_equal(np.sum(regions, axis=0) > 0, (decoded > 0) & ((decoded != 255) | only_void))

    return case


def check_regions(samples: SampleList, root: Path) -> None:
    for sample in samples:
        inside(sample.path, root)
        for annotation in sample.annotations:
            assert 0 <= annotation.category < len(samples.categories)
            try:
                region = annotation.decode()
            except BadImage:
                continue
            assert region.dtype == bool
            assert region.shape == annotation.size  # type: ignore[attr-defined]


def coco_content() -> dict[str, Any]:
    shapes: list[Any] = [[[1, 1, 9, 1, 9, 9]], {"counts": [10, 20, 354], "size": [16, 24]}]
    shapes.append({"counts": "0X=2", "size": [16, 24]})
    return {
        "images": [{"id": i, "file_name": f"{name}.png", "height": 16, "width": 24} for i, name in enumerate("ab")],
        "annotations": [
            {"id": i, "image_id": i % 2, "category_id": 1, "segmentation": shape, "iscrowd": 0}
            for i, shape in enumerate(shapes)
        ],
        "categories": [{"id": 1, "name": "cat", "supercategory": "animal"}],
    }


def coco(root: Path) -> Case:
    (root / "annotations").mkdir()
    for name in "ab":
        photo(root / f"val2017/{name}.png")

    def case(random: Random) -> None:
        text = json_text(changed_value(coco_content(), random))
        data = changed_bytes(text.encode(), random) if random.random() < 0.3 else text.encode()
        (root / "annotations/instances_val2017.json").write_bytes(data)
        check_regions(open_masks(root), root)

    return case


def partimagenet(root: Path) -> Case:
    for name in "ab":
        photo(root / f"val/{name}.png")

    def case(random: Random) -> None:
        (root / "val.json").write_text(json_text(changed_value(coco_content(), random)))
        check_regions(open_masks(root), root)

    return case


def check_pairs(found: KeypointSet, root: Path) -> None:
    for sample in found.images:
        inside(sample.path, root)
    assert all(size == (SIZE[1], SIZE[0]) for size in found.sizes)
    for pair in found.pairs:
        assert len(pair.source_points) == len(pair.target_points) > 0
        for x, y in (*pair.source_points, *pair.target_points):
            assert 0 <= x <= SIZE[0]
            assert 0 <= y <= SIZE[1]
        left, top, right, bottom = pair.target_box
        assert 0 <= left < right <= SIZE[0]
        assert 0 <= top < bottom <= SIZE[1]


def pairs(root: Path) -> Case:
    for name in "ab":
        photo(root / f"{name}.png")
    record = {
        "source": "a.png",
        "target": "b.png",
        "source_points": [[1, 1], [5, 5]],
        "target_points": [[2, 2], [6, 6]],
    }
    content = {"pairs": [record | {"category": "cat", "target_box": [0, 0, 20, 10]}, record]}

    def case(random: Random) -> None:
        text = json_text(changed_value(content, random))
        (root / "pairs.json").write_bytes(
            changed_bytes(text.encode(), random) if random.random() < 0.3 else text.encode()
        )
        check_pairs(open_keypoints(root / "pairs.json"), root)

    return case


def spair(root: Path) -> Case:
    folder = root / "PairAnnotation/test"
    folder.mkdir(parents=True)
    (root / "Layout/large").mkdir(parents=True)
    for name in "ab":
        photo(root / f"JPEGImages/cat/{name}.jpg")
    record = {"category": "cat", "src_imname": "a.jpg", "trg_imname": "b.jpg", "src_kps": [[1, 1]], "trg_kps": [[2, 2]]}
    record |= {"trg_bndbox": [0, 0, 20, 10], "src_bndbox": [0, 0, 9, 9]}
    (folder / "1-a-b:cat.json").write_text(json.dumps(record))

    def case(random: Random) -> None:
        (folder / "2-a-b:cat.json").write_text(json_text(changed_value(record, random)))
        listing = b"1-a-b:cat\n2-a-b:cat\n"
        (root / "Layout/large/test.txt").write_bytes(
            changed_bytes(listing, random) if random.random() < 0.3 else listing
        )
        check_pairs(open_keypoints(root), root)

    return case


def revisited(root: Path) -> Case:
    for name in "abc":
        photo(root / f"jpg/{name}.jpg", format="JPEG")
    gnd = {"bbx": [0, 0, 9, 9], "easy": [1], "hard": [2], "junk": [0]}
    truth = {
        "imlist": ["a", "b", "c"],
        "qimlist": ["a", "b"],
        "gnd": [gnd, gnd | {"easy": [0], "hard": [], "junk": []}],
    }

    def case(random: Random) -> None:
        changed = pickle.dumps(changed_value(truth, random), random.choice((0, 2, 5)))
        data = changed_bytes(changed, random) if random.random() < 0.3 else changed
        (root / "gnd_roxford5k.pkl").write_bytes(data)
        found = open_retrieval(root)
        for sample in (*found.database, *found.query_images):
            inside(sample.path, root)
        for query in found.queries:
            named = [*query.easy, *query.hard, *query.junk]
            assert len(set(named)) == len(named)
            assert all(type(place) is int and 0 <= place < len(found.database) for place in named)
        assert any(query.easy or query.hard for query in found.queries)

    return case


def check_videos(found: VideoSet, root: Path) -> None:
    for sequence in found.sequences:
        for path in sequence.frames:
            inside(path, root)
        assert sequence.masks[0] is not None
        first = decode_mask(sequence.masks[0])
        assert first.shape == (SIZE[1], SIZE[0])
        assert first.dtype == np.uint8
        labels = sequence.labels(0)
        assert labels is not None
        assert np.array_equal(labels > 0, (first > 0) & ((first != 255) | sequence.binary))


def davis(root: Path) -> Case:
    for frame in range(2):
        photo(root / f"JPEGImages/480p/cat/{frame:05}.jpg", format="JPEG")
        path = root / f"Annotations/480p/cat/{frame:05}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.eye(16, 24, dtype=np.uint8)).save(path)
    (root / "ImageSets/2017").mkdir(parents=True)
    mask = (root / "Annotations/480p/cat/00000.png").read_bytes()

    def case(random: Random) -> None:
        listing = b"cat\n"
        both = random.random()
        (root / "ImageSets/2017/val.txt").write_bytes(changed_bytes(listing, random) if both < 0.4 else listing)
        (root / "Annotations/480p/cat/00000.png").write_bytes(mask if both < 0.4 else changed_bytes(mask, random))
        check_videos(open_videos(root), root)

    return case


def frames(root: Path) -> Case:
    """A folder of frames, of any names, and the mask of the first."""
    for name in ("1", "2", "10", "1\u00b22", "$\\frac{$", "[/x]"):
        photo(root / f"{name}.png")
    Image.fromarray(np.eye(16, 24, dtype=np.uint8)).save(root / "mask.png")
    contents = {name: (root / f"{name}.png").read_bytes() for name in ("mask", "2")}

    def case(random: Random) -> None:
        evil = random.choice(list(contents))
        for name, content in contents.items():
            (root / f"{name}.png").write_bytes(changed_bytes(content, random) if name == evil else content)
        found = open_videos(root)
        check_videos(found, root)
        order = [path.stem for path in found.sequences[0].frames]
        assert [order.index(name) for name in ("1", "2", "10")] == sorted(order.index(n) for n in ("1", "2", "10"))

    return case


def labels(root: Path) -> Case:
    for name in "abc":
        photo(root / f"photos/{name}.png")
    samples = open_images(root / "photos")
    content = b'path,class\na.png,cat\nb.png,"dog, big"\nc.png,cat\n'

    def case(random: Random) -> None:
        more = random.choice((b"", b"a.png,dog\n", b"a.png,cat\n", b"b.png,\n"))
        (root / "labels.csv").write_bytes(changed_bytes(content, random) if random.random() < 0.7 else content + more)
        found = with_labels(samples, root / "labels.csv")
        text = (root / "labels.csv").read_bytes().decode("utf-8-sig")
        said: dict[str, set[str]] = {}
        for row in csv.reader(io.StringIO(text, newline="")):
            if row and row[1].strip():
                said.setdefault(row[0].strip().replace("\\", "/"), set()).add(row[1].strip())
        assert all(said[sample.id] == {found.classes[sample.label or 0]} for sample in found)
        assert [sample.id for sample in found] == [sample.id for sample in samples if sample.id in said]

    return case


def conflicts(root: Path) -> Case:
    """Names of files are what is read."""
    for name in ("train/cat/a", "train/dog/a"):
        photo(root / f"{name}.png")
    (root / "cue-conflict/cat").mkdir(parents=True)
    folder = os.fsencode(root / "cue-conflict/cat")

    def case(random: Random) -> None:
        stem = changed_bytes(b"cat1-dog2", random).replace(b"/", b"-").replace(b"\0", b"1")[:200]
        path = folder + b"/" + stem + b".png"
        with open(path, "wb") as file:
            file.write(b"x")
        try:
            found = open_conflict(root)
        finally:
            os.unlink(path)
        for sample, texture in zip(found.test, found.textures, strict=True):
            inside(sample.path, root)
            assert sample.id.isprintable()
            assert {sample.label, texture} == {0, 1}

    return case


def path_lists(root: Path) -> Case:
    for name in "abc":
        photo(root / f"{name}.png")

    def case(random: Random) -> None:
        (root / "list.txt").write_bytes(changed_bytes(b"a.png\nb.png\n# c.png\nc.png\n", random))
        for sample in open_images(root / "list.txt"):
            assert sample.path.is_file()
            assert sample.id.isprintable()

    return case


test_some_cases, test_many_cases = campaign(
    images,
    mask_images,
    coco,
    partimagenet,
    pairs,
    spair,
    revisited,
    davis,
    frames,
    labels,
    conflicts,
    path_lists,
)
