"""The feature store: what is written is what was computed, a killed extraction continues, damage is told."""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from collections.abc import Sequence
from itertools import count
from multiprocessing import get_context
from pathlib import Path

import polars as pl
import pytest
import torch
from torch import Tensor

from tests.features.made import tiny, write_pictures
from vitscope.data.folders import open_images
from vitscope.errors import BadData, VitscopeError
from vitscope.features.extract import extract
from vitscope.features.gram_statistic import GramStatistic
from vitscope.features.pooling import PooledStatistic
from vitscope.features.store import FeatureStore
from vitscope.features.writing import only_writer
from vitscope.models import Observer
from vitscope.observe import observe
from vitscope.statistic import Statistic

PROCESSES = get_context("forkserver")  # libraries are imported once, and no thread of this process is copied
PROCESSES.set_forkserver_preload(["tests.features.test_extract"])


def contents_of(folder: Path) -> dict[str, bytes]:
    """Every file that a finished store has, byte for byte."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name != ".lock"}


def test_a_store_holds_what_one_pass_computes(tmp_path: Path) -> None:
    samples, backbone = open_images(write_pictures(tmp_path / "p", 30, classes=3)), tiny()
    store = extract(backbone, samples, tmp_path / "s", dtype="float32", batch_size=4, shard=8)
    pooled = PooledStatistic(backbone.layout)
    observe(backbone, samples, [pooled], batch_size=4)
    expected = pooled.result()
    assert len(store) == 30
    assert len(store.shards) == 4
    for pooling in ("cls", "mean"):
        for layer in range(3):
            torch.testing.assert_close(store.features(pooling, layer), expected[pooling][:, layer])
    blocks = dict(store.blocks("mean", [2, 0], rows=5))
    assert list(blocks) == [0, 5, 8, 13, 16, 21, 24, 29]
    torch.testing.assert_close(torch.cat(list(blocks.values())), expected["mean"][:, [2, 0]])
    assert store.labels is not None
    assert store.labels.tolist() == list(samples.labels)
    assert store.manifest["id"].to_list() == [sample.id for sample in samples]
    assert store.manifest["class"][0] == "class0"
    assert store.manifest["path"][0] == str(samples[0].path)


def test_half_precision_halves_the_store(tmp_path: Path) -> None:
    samples, backbone = open_images(write_pictures(tmp_path / "p", 8)), tiny()
    half = extract(backbone, samples, tmp_path / "half", dtype="float16", poolings=["mean", "max", "tokens"])
    full = extract(backbone, samples, tmp_path / "full", dtype="float32", poolings=["mean", "max", "tokens"])
    for pooling in ("mean", "max", "tokens"):
        torch.testing.assert_close(half.features(pooling, 1), full.features(pooling, 1), rtol=1e-3, atol=1e-3)
    assert full.features("tokens", 1).shape == (8, 17, 24)
    sizes = [store.shards[0].path.stat().st_size for store in (half, full)]
    assert sizes[0] < 0.6 * sizes[1]
    assert half.labels is None


def test_reading_maps_instead_of_loading(tmp_path: Path) -> None:
    """A block of one layer costs the memory of the block, not of the shard."""
    samples = open_images(write_pictures(tmp_path / "p", 8))
    store = extract(tiny(), samples, tmp_path / "s", shard=8)
    with pytest.raises(VitscopeError, match="holds cls, mean features, not max"):
        next(store.blocks("max", [0]))
    with pytest.raises(VitscopeError, match="no layer 4"):
        next(store.blocks("cls", [3]))
    first, block = next(store.blocks("cls", [1], rows=3))
    assert (first, block.shape) == (0, (3, 1, 24))


def extract_slowly(pictures: Path, store: Path, die_before_rename: int | None = None) -> None:
    """In a process of its own; it may kill itself just before its n-th file gets its name."""
    torch.set_num_threads(1)
    backbone, renames = tiny(), count(1)
    trace, replace = backbone.trace, os.replace

    def slow(images: Tensor, observers: Sequence[Observer] = ()) -> Tensor:
        time.sleep(0.01)
        return trace(images, observers)

    def fatal(source: str, target: str) -> None:
        if next(renames) == die_before_rename:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)

    backbone.trace = slow  # type: ignore[method-assign]
    os.replace = fatal  # type: ignore[assignment]

    def statistics() -> list[Statistic]:
        return [GramStatistic(backbone.layout, backbone.depth, block=4)]

    extract(backbone, open_images(pictures), store, batch_size=4, shard=8, statistics=statistics)


def run(*arguments: object, alive: float | None = None) -> int | None:
    """Exit status of an extraction that is killed `alive` seconds after it began."""
    process = PROCESSES.Process(target=extract_slowly, args=arguments)
    process.start()
    if alive is not None:
        while process.is_alive() and not Path(str(arguments[1])).exists():
            time.sleep(0.005)
        time.sleep(alive)
        process.kill()
    process.join(timeout=120)
    return process.exitcode


@pytest.fixture
def whole(tmp_path: Path) -> dict[str, bytes]:
    """The store of an extraction that nobody interrupts."""
    pictures = write_pictures(tmp_path / "p", 40)
    assert run(pictures, tmp_path / "whole") == 0
    return contents_of(tmp_path / "whole")


def test_killed_before_any_rename_and_continued_the_store_is_the_same(tmp_path: Path, whole: dict[str, bytes]) -> None:
    # renames of a run: store.json (the first run only), then states and features of each of 5 shards, the manifest
    for rename in (1, 2, 3, 4, 3, 2, 1):
        assert run(tmp_path / "p", tmp_path / "s", rename) == -signal.SIGKILL
        with pytest.raises(BadData, match=r"incomplete|not a feature store"):
            FeatureStore(tmp_path / "s")
    assert run(tmp_path / "p", tmp_path / "s") == 0
    assert contents_of(tmp_path / "s") == whole


def test_killed_at_any_time_and_continued_the_store_is_the_same(tmp_path: Path, whole: dict[str, bytes]) -> None:
    killed = [run(tmp_path / "p", tmp_path / "s", alive=seconds) for seconds in (0.0, 0.04, 0.09, 0.02)]
    assert -signal.SIGKILL in killed
    assert run(tmp_path / "p", tmp_path / "s") == 0
    assert contents_of(tmp_path / "s") == whole


def test_finished_shards_are_not_computed_again(tmp_path: Path) -> None:
    samples, backbone = open_images(write_pictures(tmp_path / "p", 16)), tiny()
    store = extract(backbone, samples, tmp_path / "s", batch_size=4, shard=8)
    traced, trace = list[int](), backbone.trace

    def counted(images: Tensor, observers: Sequence[Observer] = ()) -> Tensor:
        traced.append(len(images))
        return trace(images, observers)

    backbone.trace = counted  # type: ignore[method-assign]
    before = contents_of(tmp_path / "s")
    extract(backbone, samples, tmp_path / "s", batch_size=4, shard=8)
    assert traced == []
    store.shards[1].path.unlink()
    extract(backbone, samples, tmp_path / "s", batch_size=4, shard=8)
    assert traced == [4, 4]
    assert contents_of(tmp_path / "s") == before


def test_a_shard_cut_short_is_told_and_repaired(tmp_path: Path) -> None:
    samples, backbone = open_images(write_pictures(tmp_path / "p", 16)), tiny()
    store = extract(backbone, samples, tmp_path / "s", batch_size=4, shard=8)
    path, before = store.shards[1].path, contents_of(tmp_path / "s")
    for cut in (len(before[path.name]) - 1, 100, 8, 0):
        path.write_bytes(before[path.name][:cut])
        with pytest.raises(BadData, match=r"cut short or damaged.*extraction again"):
            FeatureStore(tmp_path / "s")
        extract(backbone, samples, tmp_path / "s", batch_size=4, shard=8)
        assert contents_of(tmp_path / "s") == before


def test_other_weights_pictures_and_poolings_are_refused(tmp_path: Path) -> None:
    samples = open_images(write_pictures(tmp_path / "p", 8))
    extract(tiny(), samples, tmp_path / "s")
    with pytest.raises(VitscopeError, match=r"features of other weights .*choose another folder"):
        extract(tiny(seed=1), samples, tmp_path / "s")
    with pytest.raises(VitscopeError, match="features of other pictures"):
        extract(tiny(), samples[:6], tmp_path / "s")
    with pytest.raises(VitscopeError, match="other poolings"):
        extract(tiny(), samples, tmp_path / "s", poolings=["mean"])
    with pytest.raises(VitscopeError, match="another number format"):
        extract(tiny(), samples, tmp_path / "s", dtype="float32")
    with pytest.raises(VitscopeError, match="float16 or float32, not int8"):
        extract(tiny(), samples, tmp_path / "s", dtype="int8")


def test_a_description_changed_by_hand_is_refused(tmp_path: Path) -> None:
    samples = open_images(write_pictures(tmp_path / "p", 8))
    extract(tiny(), samples, tmp_path / "s")
    path = tmp_path / "s" / "store.json"
    values = json.loads(path.read_text())
    path.write_text(json.dumps(values | {"count": 7}))
    with pytest.raises(BadData, match="changed by hand"):
        FeatureStore(tmp_path / "s")
    path.write_text("{")
    with pytest.raises(BadData, match="damaged"):
        FeatureStore(tmp_path / "s")
    with pytest.raises(BadData, match="not a feature store"):
        FeatureStore(tmp_path / "p")


def test_broken_pictures_are_left_out_by_name_even_after_resuming(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "p", 20)
    for i in (3, *range(8, 16)):  # one in the first shard, the whole second shard
        (folder / f"{i:04}.png").write_bytes(b"not an image")
    samples, backbone = open_images(folder), tiny()
    for _ in range(2):
        store = extract(backbone, samples, tmp_path / "s", batch_size=4, shard=8)
        assert len(store) == 11
        assert list(store.skipped) == [f"{i:04}.png" for i in (3, *range(8, 16))]
        assert store.indices.tolist() == [i for i in range(20) if i != 3 and not 8 <= i < 16]
        assert store.features("cls", 0).shape == (11, 24)
    with pytest.raises(BadData, match="more than 2 images are unusable"):
        extract(backbone, samples, tmp_path / "t", skip_limit=2)


def test_nothing_usable_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    folder.mkdir()
    for i in range(3):
        (folder / f"{i}.png").write_bytes(b"x")
    with pytest.raises(BadData, match="none of the 3 images"):
        extract(tiny(), open_images(folder), tmp_path / "s")


def test_two_processes_do_not_write_one_store(tmp_path: Path) -> None:
    samples = open_images(write_pictures(tmp_path / "p", 4))
    (tmp_path / "s").mkdir()
    with only_writer(tmp_path / "s"), pytest.raises(VitscopeError, match="another process is extracting"):
        extract(tiny(), samples, tmp_path / "s")
    assert len(extract(tiny(), samples, tmp_path / "s")) == 4


def test_a_disk_that_fills_up_is_told_and_leaves_no_half_shard(tmp_path: Path) -> None:
    samples = open_images(write_pictures(tmp_path / "p", 8))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # as a full disk: an error, not a signal
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
        with pytest.raises(VitscopeError, match=r"could not write .*MiB free"):
            extract(tiny(), samples, tmp_path / "s")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert not list((tmp_path / "s").glob("*.safetensors"))
    with pytest.raises(BadData, match="incomplete, 0 of 1 shards"):
        FeatureStore(tmp_path / "s")
    assert len(extract(tiny(), samples, tmp_path / "s")) == 8


def test_the_manifest_can_be_read_by_anything(tmp_path: Path) -> None:
    samples = open_images(write_pictures(tmp_path / "p", 6, classes=2))
    extract(tiny(), samples, tmp_path / "s")
    table = pl.read_parquet(tmp_path / "s" / "manifest.parquet")
    assert table.columns == ["row", "index", "id", "path", "label", "class", "shard"]
    assert table["row"].to_list() == list(range(6))
