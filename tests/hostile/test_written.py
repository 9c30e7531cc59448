"""What vitscope wrote itself, and found changed: exactly what was written is read again, or the damage is told."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import polars as pl
import torch
from polars.testing import assert_frame_equal

from tests.hostile.campaign import Case, campaign, photo
from tests.support.hostile import changed_bytes, changed_value, json_text
from tests.teaching.test_loop import open_run
from tests.teaching.tiny import squares
from vitscope.core.analysis import Outcome
from vitscope.core.files import TensorFile, write_tensors
from vitscope.core.results import NOBODY, Coverage, Results, tidy
from vitscope.data.openers import images
from vitscope.features.extraction import load_features, write_index
from vitscope.pipeline.store import Store
from vitscope.teaching.checkpoint import PLAIN
from vitscope.teaching.loop import CHECKPOINT


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


def extracted_features(root: Path) -> Case:
    photo(root / "photos/a.png")
    rows = torch.arange(12.0).reshape(3, 4)
    write_tensors(root / "f.safetensors", {"indices": torch.arange(3), "row/cls/0": rows, "row/mean/0": rows + 1})
    write_index(root, images(root / "photos"), {"A": {"files": ["f.safetensors"], "depth": 1}})
    contents = {name: (root / name).read_bytes() for name in ("features.json", "f.safetensors")}

    def case(random: Random) -> None:
        evil = random.choice(list(contents))
        for name, content in contents.items():
            (root / name).write_bytes(changed_bytes(content, random) if name == evil else content)
        if evil == "features.json" and random.random() < 0.7:
            (root / evil).write_text(json_text(changed_value(json.loads(contents[evil]), random)))
        found = load_features(root)
        assert torch.equal(found.positions, torch.arange(3))
        assert torch.equal(found.layer("cls", 0).whole(), rows)
        assert torch.equal(found.layer("mean", 0).whole(), rows + 1)

    return case


def training_checkpoints(root: Path) -> Case:
    """Of `vitscope teach`, with the learning curve in it: changed bytes, and whole files that say something else."""
    pictures = squares()
    run = open_run(root, "mae", pictures)
    run.train(stop=lambda: run.step == 3)
    path = root / CHECKPOINT
    content = path.read_bytes()
    state = torch.load(path, weights_only=True)
    weights = {name: value.clone() for name, value in run.teacher.state_dict().items()}
    plain = {key: state[key] for key in ("format", "sum", *PLAIN)}
    other = open_run(root, "mae", pictures)

    def case(random: Random) -> None:
        if random.random() < 0.5:
            path.write_bytes(changed_bytes(content, random))
        else:
            kept = ("teacher", "optimiser", "average", "sums")
            changed = changed_value({**plain, **dict.fromkeys(kept, "")}, random)
            if isinstance(changed, dict):
                changed = {key: state[key] if value == "" else value for key, value in changed.items() if key in state}
            torch.save(changed, path)
        assert other.resume(path)
        for name, value in other.teacher.state_dict().items():
            assert torch.equal(value, weights[name]), name
        assert (other.step, other.curve, other.cpu_seconds) == (run.step, run.curve, run.cpu_seconds)

    return case


test_some_cases, test_many_cases = campaign(stores, store_marks, results, extracted_features, training_checkpoints)
