"""Thousands of hostile files against every reader, with one oracle: one printable sentence, or the right numbers.

Never another exception, never more than SECONDS, never more than BYTES of memory. A reader is a function that makes its
files in a folder and hands back how one of them is changed and what must hold of whatever is read nevertheless.
"""

from __future__ import annotations

import io
import json
import math
import pickle
import resource
import shutil
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pytest
import timm
import torch
from PIL import Image
from polars.testing import assert_frame_equal
from safetensors.torch import load_file, save_file
from torch import nn

from tests.support.hostile import changed_bytes, changed_value, evil_files, json_text, toml_text
from vitscope.core.analysis import Outcome
from vitscope.core.errors import VitscopeError
from vitscope.core.files import TensorFile
from vitscope.core.results import NOBODY, Coverage, Results, tidy
from vitscope.data.davis import open_videos
from vitscope.data.decode import MAX_PIXELS, BadImage, decode_image, decode_mask, image_size
from vitscope.data.folders import open_images
from vitscope.data.keypoints import KeypointSet
from vitscope.data.labels import read_labels, with_labels
from vitscope.data.masks import open_masks
from vitscope.data.retrieval import open_retrieval
from vitscope.data.safe_pickle import Numbers, read_plain_pickle
from vitscope.data.samples import SampleList
from vitscope.data.spair import open_keypoints
from vitscope.models.card import read_card
from vitscope.models.checkpoints import load_checkpoint
from vitscope.models.spec import resolve
from vitscope.pipeline.store import Store
from vitscope.pipeline.study import read_study
from vitscope.teaching.captions import read_captions
from vitscope.teaching.config import TrainConfig

SECONDS, BYTES = 10, 1 << 30  # of one case, of all cases of a reader together
QUICK, SLOW = 12, 300  # cases of each reader
SIZE = (24, 16)  # width and height of images

Case = Callable[[Random], Any]  # changes the files, reads them, and checks what was read
Reader = Callable[[Path], Case]


def photo(path: Path, seed: int = 0, format: str | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (SIZE[1], SIZE[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path, format)
    return path


def inside(path: Path, root: Path) -> None:
    assert path.resolve().is_relative_to(root.resolve()), path


# -- images ---------------------------------------------------------------------------------------------------------


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


# -- weights --------------------------------------------------------------------------------------------------------


def tiny() -> nn.Module:
    torch.manual_seed(0)
    shape: dict[str, Any] = {"img_size": 32, "embed_dim": 16, "depth": 1, "num_heads": 2, "num_classes": 0}
    return timm.create_model("vit_tiny_patch16_224", **shape)


def checkpoints(root: Path, save: Callable[[dict[str, torch.Tensor], Path], None], read: Callable[[Path], Any]) -> Case:
    module, path = tiny(), root / "weights"
    save(module.state_dict(), path)
    content = path.read_bytes()

    def case(random: Random) -> None:
        path.write_bytes(changed_bytes(content, random))
        load_checkpoint(module, path)
        state = read(path)  # the library's own reader
        for name, value in module.state_dict().items():
            assert value.is_floating_point()
            assert bool(value.isfinite().all())
            assert torch.equal(value, state[name].to(value.dtype)), name

    return case


def safetensors_weights(root: Path) -> Case:
    return checkpoints(root, lambda state, path: save_file(state, path), load_file)


def zipped_weights(root: Path) -> Case:
    return checkpoints(root, torch.save, lambda path: torch.load(path, weights_only=True))


def legacy_weights(root: Path) -> Case:
    def save(state: dict[str, torch.Tensor], path: Path) -> None:
        torch.save(state, path, _use_new_zipfile_serialization=False)

    return checkpoints(root, save, lambda path: torch.load(path, weights_only=True))


def sharded_weights(root: Path) -> Case:
    module = tiny()
    state = module.state_dict()
    save_file(state, root / "part.safetensors")
    index = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(state, "part.safetensors")}

    def case(random: Random) -> None:
        (root / "model.safetensors.index.json").write_text(json_text(changed_value(index, random)))
        load_checkpoint(module, root / "model.safetensors.index.json")
        for name, value in module.state_dict().items():
            assert torch.equal(value, state[name])

    return case


def torchscript_weights(root: Path) -> Case:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x)

    path = root / "net.pt"
    torch.jit.script(Net()).save(str(path))
    content = path.read_bytes()

    def case(random: Random) -> None:
        if random.random() < 0.5:  # the pickle of the module tree alone, so that the archive around it stays whole
            with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(path, "w") as after:
                for name in before.namelist():
                    data = before.read(name)
                    after.writestr(name, changed_bytes(data, random) if name.endswith("data.pkl") else data)
        else:
            path.write_bytes(changed_bytes(content, random))
        load_checkpoint(tiny(), path)
        raise AssertionError("a network of another architecture was loaded")

    return case


def odd_tensors(root: Path) -> Case:
    """State dicts in which one tensor is of another kind: only floating-point numbers are weights."""
    module, path = tiny(), root / "weights.pth"
    state = module.state_dict()
    kinds: dict[str, Callable[[torch.Tensor], Any]] = {
        **{str(kind): (lambda t, kind=kind: t.to(kind)) for kind in (torch.int8, torch.uint8, torch.int64, torch.bool)},
        **{str(kind): (lambda t, kind=kind: t.to(kind)) for kind in (torch.complex64, torch.float8_e4m3fn)},
        "sparse": lambda t: t.to_sparse(),
        "meta": lambda t: t.to("meta"),
        "nan": lambda t: t * math.nan,
        "infinite": lambda t: t / 0,
        "shape": lambda t: t[None],
        "empty": lambda t: t[:0],
        "text": lambda t: "weights",
        "expanded": lambda t: torch.zeros(1).expand(1 << 40),
    }

    def case(random: Random) -> None:
        name, kind = random.choice(list(state)), random.choice(list(kinds))
        torch.save({**state, name: kinds[kind](state[name])}, path)
        load_checkpoint(module, path)
        raise AssertionError(f"{name} was taken as {kind}")

    return case


def pickles(root: Path) -> Case:
    truth = {"imlist": ["a", "b"], "gnd": [{"bbx": np.arange(4.0), "easy": np.array([1]), "junk": [0]}], "x": (1, None)}
    contents = [pickle.dumps(truth, protocol) for protocol in (0, 2, 4, 5)]
    contents.append(b"cos\nsystem\n(S'touch sprung'\ntR.")
    path = root / "a.pkl"

    def check(value: Any) -> None:
        if isinstance(value, dict):
            assert all(isinstance(key, (str, int, float, bytes, bool, tuple, type(None))) for key in value)
            value = list(value.values())
        if isinstance(value, (list, tuple, set, frozenset)):
            for item in value:
                check(item)
        elif isinstance(value, Numbers):
            assert value.values is None or value.values.dtype.kind in "biuf"
        elif value is not None and not callable(value):
            assert isinstance(value, (str, bytes, bytearray, int, float, bool, complex)), type(value)

    def case(random: Random) -> None:
        path.write_bytes(changed_bytes(random.choice(contents), random))
        check(read_plain_pickle(path))

    return case


# -- annotations ----------------------------------------------------------------------------------------------------


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
        for sequence in open_videos(root).sequences:
            for path in sequence.frames:
                inside(path, root)
            assert sequence.masks[0] is not None
            first = decode_mask(sequence.masks[0])
            assert first.shape == (SIZE[1], SIZE[0])
            assert first.dtype == np.uint8

    return case


# -- texts ----------------------------------------------------------------------------------------------------------


def studies(root: Path) -> Case:
    photo(root / "photos/a.png")
    content: dict[str, Any] = {
        "title": "T",
        "out": "runs/x",
        "seed": 1,
        "skip_limit": 3,
        "processes": 1,
        "workers": 0,
        "protocols": ["corrected"],
        "models": [{"name": "zoo/dino", "title": "A", "size": 64, "teaching": "dino"}, {"name": "random:zoo/dino"}],
        "data": {"images": {"path": "photos", "limit": 5, "title": "P"}},
        "analyses": {"attention": {}},
    }

    def case(random: Random) -> None:
        text = toml_text(changed_value(content, random) if random.random() < 0.9 else content)
        data = changed_bytes(text.encode("utf-8", "surrogatepass"), random) if random.random() < 0.3 else None
        (root / "s.toml").write_bytes(data if data is not None else text.encode("utf-8", "surrogatepass"))
        study = read_study(root / "s.toml")
        assert 0 <= study.seed < 2**63
        assert study.title.isprintable()
        assert 1 <= study.processes <= 4096
        for _, entry in study.data.entries():
            assert entry.path.exists()
            assert entry.limit is None or entry.limit >= 1
        study.specs()
        study.datasets()

    return case


def cards(root: Path) -> Case:
    save_file({"a": torch.ones(1)}, root / "w.safetensors")
    content: dict[str, Any] = {
        "name": "mine",
        "architecture": "vit_tiny_patch16_224",
        "weights": "w.safetensors",
        "teaching": "dino",
        "title": "Mine",
        "options": {"patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 2, "qkv_bias": True, "mlp_ratio": 2.0},
        "preprocessing": {
            "size": [64, 64],
            "mean": [0.5, 0.5, 0.5],
            "std": [0.5, 0.5, 0.5],
            "interpolation": "bicubic",
        },
        "provenance": {"free": ["form", 1]},
    }
    traps = ("checkpoint_path", "pretrained", "pretrained_cfg", "cache_dir", "features_only", "scriptable", "img_size")

    def case(random: Random) -> None:
        changed = changed_value(content, random)
        if random.random() < 0.2:
            changed = {**content, "options": {**content["options"], random.choice(traps): "/etc/passwd"}}
        (root / "card.toml").write_bytes(toml_text(changed).encode("utf-8", "surrogatepass"))
        read_card(root / "card.toml")
        spec = resolve(f"random:{root / 'card.toml'}")
        shape = spec.shape
        height, width = spec.preprocessing.size
        assert (shape.layout.grid[0] * shape.patch[0], shape.layout.grid[1] * shape.patch[1]) == (height, width)
        assert all(math.isfinite(number) and number > 0 for number in spec.preprocessing.std)

    return case


def teaching_settings(root: Path) -> Case:
    content: dict[str, Any] = {"arch": "vit_tiny_patch16_224", "size": 32, "epochs": 1.5, "batch": 8, "rate": 0.1}
    content |= {"options": {"depth": 2}, "recipe": {"momentum": 0.9}, "seed": 3, "ema": 0.5, "precision": "auto"}

    def case(random: Random) -> None:
        (root / "c.toml").write_bytes(toml_text(changed_value(content, random)).encode("utf-8", "surrogatepass"))
        settings = TrainConfig.read(root / "c.toml")
        assert 0 < settings.epochs < math.inf
        assert settings.batch >= 1
        assert 0 <= settings.seed < 2**63

    return case


def captions(root: Path) -> Case:
    samples = open_images(photo(root / "photos/a.png").parent)

    def case(random: Random) -> None:
        text = json_text(changed_value({"a.png": ["a cat", "on a mat"], "b.png": "b"}, random))
        (root / "photos/captions.json").write_bytes(changed_bytes(text.encode(), random))
        said = read_captions(root / "photos", samples)
        assert said is not None
        assert all(isinstance(line, str) and line for lines in said for line in lines)

    return case


def labels(root: Path) -> Case:
    for name in "abc":
        photo(root / f"photos/{name}.png")
    samples = open_images(root / "photos")
    content = b'path,class\na.png,cat\nb.png,"dog, big"\nc.png,cat\n'

    def case(random: Random) -> None:
        (root / "labels.csv").write_bytes(changed_bytes(content, random))
        table = read_labels(root / "labels.csv")
        found = with_labels(samples, root / "labels.csv")
        assert [found.classes[sample.label or 0] for sample in found] == [table[sample.id] for sample in found]

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


# -- what vitscope wrote itself -------------------------------------------------------------------------------------


def stores(root: Path) -> Case:
    store = Store(root / "store")
    tensors = {"a": torch.arange(100.0), "b": torch.ones(3, 4, dtype=torch.float16)}
    table = tidy(NOBODY, "m", torch.arange(4.0), axes=["layer"])
    store.write_state("key", 0, tensors, skipped={"x": "why"}, about={"n": 1})
    store.write_outcome("digest", Outcome([table], dict(tensors), ["note"], {"fact": 1}))
    contents = {path: path.read_bytes() for path in (store.state_path("key", 0), store.outcome_path("digest"))}

    def case(random: Random) -> None:
        one = random.choice(list(contents))  # not both: what is wrong with the first would hide the second
        for path, content in contents.items():
            path.write_bytes(changed_bytes(content, random) if path == one else content)
        with_state = dict(TensorFile(store.state_path("key", 0)))
        assert all(torch.equal(with_state[name], tensors[name]) for name in tensors)
        outcome = store.read_outcome("digest")
        assert_frame_equal(outcome.tables[0], table)
        assert all(torch.equal(outcome.maps[name], tensors[name]) for name in tensors)

    return case


def store_marks(root: Path) -> Case:
    Store(root / "store", "T")
    mark = root / "store/store.json"
    content = mark.read_bytes()

    def case(random: Random) -> None:
        mark.write_bytes(changed_bytes(content, random))
        Store(root / "store", "T")
        json.loads(mark.read_bytes())

    return case


def results(root: Path) -> Case:
    table = tidy(NOBODY, "m", torch.arange(4.0), axes=["layer"])
    pairs = pl.DataFrame({"cka": [0.5, 0.25]})
    coverage = [Coverage("A", "D", "images", 4, 4, {"x": "why"})]
    saved = Results(table, {"A/map": torch.arange(9.0)}, [{"digest": "d"}], {"x": "why"}, ["note"], "T", coverage)
    saved.pairs = pairs
    saved.save(root / "run")
    names = ("provenance.json", "results.parquet", "pairs.parquet", "maps.safetensors")
    contents = {name: (root / "run" / name).read_bytes() for name in names}

    def case(random: Random) -> None:
        name = random.choice(names)
        for file, content in contents.items():
            (root / "run" / file).write_bytes(content)
        about = json.loads(contents["provenance.json"])
        if name == "provenance.json" and random.random() < 0.7:
            (root / "run" / name).write_text(json_text(changed_value(about, random)))
        else:
            (root / "run" / name).write_bytes(changed_bytes(contents[name], random))
        found = Results.load(root / "run")
        assert_frame_equal(found.table, table)
        assert torch.equal(found.maps["A/map"], saved.maps["A/map"])
        if not found.pairs.is_empty():
            assert_frame_equal(found.pairs, pairs)

    return case


# -- the campaign ---------------------------------------------------------------------------------------------------

READERS: tuple[Reader, ...] = (
    images,
    mask_images,
    safetensors_weights,
    zipped_weights,
    legacy_weights,
    sharded_weights,
)
READERS += (
    torchscript_weights,
    odd_tensors,
    pickles,
    coco,
    partimagenet,
    pairs,
    spair,
    revisited,
    davis,
    studies,
    cards,
)
READERS += (teaching_settings, captions, labels, path_lists, stores, store_marks, results)


def run_campaign(reader: Reader, root: Path, cases: int) -> Counter[str]:
    """How many cases were refused in one sentence, and how many were read rightly."""
    random = Random(reader.__name__)
    case = reader(root)
    count: Counter[str] = Counter()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(cases):
        seed = random.randrange(1 << 32)
        start = time.monotonic()
        try:
            case(Random(seed))
            count["read"] += 1
        except VitscopeError as error:
            said = str(error)
            assert said, seed
            assert said.isprintable(), (seed, said)
            assert len(said) < 1100, (seed, said)
            count["refused"] += 1
        except BaseException as error:
            raise AssertionError(f"{reader.__name__}, case {seed}: {type(error).__name__}: {error}") from error
        assert time.monotonic() - start < SECONDS, seed
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    assert grown < BYTES, f"{grown >> 20} MiB"
    return count


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_some_cases(reader: Reader, tmp_path: Path) -> None:
    assert run_campaign(reader, tmp_path, QUICK)["refused"]


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_many_cases(reader: Reader, tmp_path: Path) -> None:
    count = run_campaign(reader, tmp_path, SLOW)
    print(f"{reader.__name__}: {dict(count)}")
    assert count["refused"]


EVIL: dict[str, Callable[[Path], Any]] = {
    "card": read_card,
    "study": read_study,
    "teaching": TrainConfig.read,
    "labels": read_labels,
    "list": open_images,
    "pairs": open_keypoints,
    "masks": open_masks,
    "image": decode_image,
    "mask": decode_mask,
    "weights": lambda path: load_checkpoint(tiny(), path),
    "pickle": read_plain_pickle,
    "tensors": TensorFile,
    "results": Results.load,
    "video": open_videos,
    "retrieval": open_retrieval,
}
SUFFIXES = {"labels": ".csv", "list": ".txt", "pairs": ".json", "masks": ".json", "image": ".png", "mask": ".png"}


@pytest.mark.parametrize("name", EVIL)
def test_pipes_devices_folders_and_endless_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for kind, path in evil_files(tmp_path / "evil", SUFFIXES.get(name, ".toml")).items():
        start = time.monotonic()
        try:
            EVIL[name](path)
        except VitscopeError:
            pass
        except Exception as error:
            pytest.fail(f"{kind}: {type(error).__name__}: {error}")
        else:
            # an empty file of settings has its defaults
            assert (name, kind) == ("teaching", "empty")
        assert time.monotonic() - start < SECONDS, kind
    assert not (tmp_path / "sprung").exists()


def test_results_with_something_else_in_the_place_of_a_file(tmp_path: Path) -> None:
    results(tmp_path)
    for name in ("provenance.json", "results.parquet", "pairs.parquet", "maps.safetensors"):
        for kind, evil in evil_files(tmp_path / name.replace(".", "-")).items():
            if kind in ("user", "long", "half", "loop"):
                continue  # no file could be put there, or none that a link leads to
            run = tmp_path / "copy"
            shutil.rmtree(run, ignore_errors=True)
            shutil.copytree(tmp_path / "run", run)
            (run / name).unlink()
            (run / name).symlink_to(evil)
            with pytest.raises(VitscopeError):
                Results.load(run)
