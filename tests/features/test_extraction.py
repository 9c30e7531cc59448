"""Extracted features: what is written is what was computed, what is there is not computed again, damage is repaired."""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from collections.abc import Callable, Sequence
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from torch import Tensor

import vitscope
from tests.features.made import inside, tiny, write_images
from vitscope.api import StudyResults
from vitscope.core.errors import BadData, VitscopeError
from vitscope.core.files import Damaged, only_run
from vitscope.core.observer import Observer
from vitscope.data import openers
from vitscope.data.folders import open_images
from vitscope.features.extraction import Extraction, load_features
from vitscope.features.pooling import PooledStatistic
from vitscope.models.backbone import Backbone
from vitscope.models.observe import observe
from vitscope.pipeline.exports import export_features

PROCESSES = get_context("forkserver")  # libraries are imported once, and no thread of this process is copied
PROCESSES.set_forkserver_preload(["tests.features.test_extraction"])


def extract(
    backbone: Backbone,
    images: Path,
    store: Path,
    *,
    limit: int | None = None,
    skip_limit: int = 50,
    **settings: Any,
) -> StudyResults:
    """Features of a network in memory; settings: of `Extraction`."""
    return vitscope.evaluate(
        [backbone],
        [openers.images(images, limit=limit)],
        [Extraction(**settings)],
        store=store,
        device="cpu",
        export=export_features,
        skip_limit=skip_limit,
    )


def contents_of(folder: Path) -> dict[str, bytes]:
    """Every file that a finished store has, byte for byte; the log tells of times."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in (".lock", "log.jsonl")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def states_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("states/*/*.safetensors"))


def test_a_store_holds_what_one_pass_computes(tmp_path: Path) -> None:
    folder, backbone = write_images(tmp_path / "p", 150, classes=3), tiny()
    extract(backbone, folder, tmp_path / "s", dtype="float32")
    found, samples = load_features(tmp_path / "s"), open_images(folder)
    pooled = PooledStatistic(backbone.layout)
    observe(backbone, samples, [pooled])
    expected = pooled.result()
    assert (len(found), len(found.shards), found.kinds, found.depth) == (150, 3, ("cls", "mean"), 3)
    for pooling in ("cls", "mean"):
        for layer in range(3):
            assert torch.equal(found.layer(pooling, layer).whole(), expected[pooling][:, layer])
    third = found.layer("mean", 2)
    for rows in (slice(0, 5), slice(60, 70), slice(60, 140), slice(-1, None), slice(7, 7)):  # across shards, and none
        assert torch.equal(third[rows], expected["mean"][rows, 2])
    assert torch.equal(third.whole(70), expected["mean"][:70, 2])
    assert found.positions.tolist() == list(range(150))
    table = pl.read_parquet(tmp_path / "s" / "images.parquet")
    assert table["id"].to_list() == [sample.id for sample in samples]
    assert table["label"].to_list() == list(samples.labels)
    assert table["class"][0] == "class0"


def test_half_precision_halves_the_store(tmp_path: Path) -> None:
    folder, backbone = write_images(tmp_path / "p", 8), tiny()
    for dtype in ("float16", "float32"):
        extract(backbone, folder, tmp_path / dtype, dtype=dtype, poolings=("mean", "max", "tokens"))
    half, full = (load_features(tmp_path / dtype) for dtype in ("float16", "float32"))
    for pooling in ("mean", "max", "tokens"):
        one, other = (features.layer(pooling, 1).whole() for features in (half, full))
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)
    assert full.layer("tokens", 1).whole().shape == (8, 17, 24)
    sizes = [states_in(tmp_path / dtype)[0].stat().st_size for dtype in ("float16", "float32")]
    assert sizes[0] < 0.6 * sizes[1]
    assert pl.read_parquet(tmp_path / "float16" / "images.parquet")["label"].to_list() == [None] * 8


def test_what_is_not_there_is_told_by_name(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "p", 8)
    extract(tiny(), folder, tmp_path / "s")
    found = load_features(tmp_path / "s")
    with pytest.raises(VitscopeError, match="there are cls, mean features, not max"):
        found.layer("max", 0)
    with pytest.raises(VitscopeError, match="no layer 4: the model has 3"):
        found.layer("cls", 3)
    assert found.layer("cls", 1)[:3].shape == (3, 24)
    with pytest.raises(ValueError, match="stretches"):
        found.layer("cls", 1)[::2]
    with pytest.raises(BadData, match="holds features of tiny: say of which model"):
        load_features(tmp_path / "s", "another")
    with pytest.raises(BadData, match="holds no features"):
        load_features(tmp_path / "p")


def test_reading_a_block_reads_its_shards_and_no_others(tmp_path: Path) -> None:
    """A block of one layer costs the memory of its shards, not of the store."""
    folder = write_images(tmp_path / "p", 150)
    extract(tiny(), folder, tmp_path / "s")
    layer = load_features(tmp_path / "s").layer("cls", 1)
    for path in states_in(tmp_path / "s")[1:]:
        path.unlink()
    assert layer[10:60].shape == (50, 24)
    with pytest.raises(Damaged):
        layer[60:70]


# -- interrupted ----------------------------------------------------------------------------------------------------


def extract_slowly(images: Path, store: Path, die_before_rename: int | None = None) -> None:
    """In a process of its own; it may kill itself just before its n-th file gets its name."""
    torch.set_num_threads(1)
    backbone, renames = tiny(), count(1)
    trace, replace = backbone.trace, os.replace

    def slow(images: Tensor, observers: Sequence[Observer] = ()) -> Tensor:
        time.sleep(0.03)
        return trace(images, observers)

    def fatal(source: str, target: str) -> None:
        if next(renames) == die_before_rename:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)

    backbone.trace = slow  # type: ignore[method-assign]
    os.replace = fatal  # type: ignore[assignment]
    extract(backbone, images, store).save(store)


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
    images = write_images(tmp_path / "p", 150)  # three shards
    assert run(images, tmp_path / "whole") == 0
    return contents_of(tmp_path / "whole")


def test_killed_before_any_rename_and_continued_the_store_is_the_same(tmp_path: Path, whole: dict[str, bytes]) -> None:
    # what a whole run renames: store.json, three states, an outcome, images.parquet, features.json, and the results
    for rename in (1, 2, 3, 2, 1, 2, 1, 1):  # each run begins after what the runs before it finished
        assert run(tmp_path / "p", tmp_path / "s", rename) == -signal.SIGKILL
        with pytest.raises(BadData, match="holds no features"):
            load_features(tmp_path / "s")
    assert run(tmp_path / "p", tmp_path / "s") == 0
    assert contents_of(tmp_path / "s") == whole


def test_killed_at_any_time_and_continued_the_store_is_the_same(tmp_path: Path, whole: dict[str, bytes]) -> None:
    killed = [run(tmp_path / "p", tmp_path / "s", alive=seconds) for seconds in (0.0, 0.1, 0.17, 0.05)]
    assert -signal.SIGKILL in killed
    assert run(tmp_path / "p", tmp_path / "s") == 0
    assert contents_of(tmp_path / "s") == whole


# -- used again, damaged, refused -----------------------------------------------------------------------------------


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all batches that networks are shown."""
    traced, trace = list[int](), Backbone.trace

    def count_batch(self: Backbone, images: Tensor, observers: Sequence[Observer] = ()) -> Tensor:
        traced.append(len(images))
        return trace(self, images, observers)

    monkeypatch.setattr(Backbone, "trace", count_batch)
    return traced


def test_finished_shards_are_not_computed_again(tmp_path: Path, counted: list[int]) -> None:
    folder, backbone = write_images(tmp_path / "p", 100), tiny()
    extract(backbone, folder, tmp_path / "s")
    assert counted == [32, 32, 32, 4]
    before = contents_of(tmp_path / "s")
    extract(backbone, folder, tmp_path / "s")
    assert len(counted) == 4
    states_in(tmp_path / "s")[1].unlink()
    extract(backbone, folder, tmp_path / "s")
    assert counted[4:] == [32, 4]
    assert contents_of(tmp_path / "s") == before


def cut(at: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:at]


def flipped(at: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:at] + bytes([data[at] ^ 1]) + data[at:][1:] if at >= 0 else flipped(len(data) + at)(data)


def read_all(folder: Path) -> None:
    found = load_features(folder)
    for kind in found.kinds:
        for layer in found.layers(kind):
            layer.whole()


@pytest.mark.parametrize(
    "damage",
    [cut(-1), cut(100), cut(8), cut(0), flipped(3), flipped(40), flipped(-1), flipped(-5000)],
    ids=["last byte gone", "100 bytes left", "8 bytes left", "empty", "length", "header", "last byte", "middle"],
)
def test_a_damaged_shard_is_told_and_repaired_alone(
    tmp_path: Path, damage: Callable[[bytes], bytes], counted: list[int]
) -> None:
    folder, backbone = write_images(tmp_path / "p", 100), tiny()
    extract(backbone, folder, tmp_path / "s")
    path, before = states_in(tmp_path / "s")[1], contents_of(tmp_path / "s")
    path.write_bytes(damage(path.read_bytes()))
    assert contents_of(tmp_path / "s") != before
    with pytest.raises(Damaged, match=r"00001.safetensors is damaged .*run again to make it anew"):
        read_all(tmp_path / "s")
    again = extract(backbone, folder, tmp_path / "s")
    assert counted[4:] == [32, 4]
    assert any("damaged and made anew" in note and "00001.safetensors" in note for note in again.notes)
    assert contents_of(tmp_path / "s") == before


def test_every_file_of_a_store_damaged_at_once_is_made_anew(tmp_path: Path) -> None:
    folder, backbone = write_images(tmp_path / "p", 600), tiny()  # ten shards
    extract(backbone, folder, tmp_path / "s")
    before = contents_of(tmp_path / "s")
    for name in before:
        if name != "store.json":
            path = tmp_path / "s" / name
            path.write_bytes(flipped(path.stat().st_size // 2)(path.read_bytes()))
    extract(backbone, folder, tmp_path / "s")
    assert contents_of(tmp_path / "s") == before


def test_shards_of_two_models_that_changed_places_are_noticed(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "p", 12)
    extract(tiny("A", seed=1), folder, tmp_path / "s")
    before = contents_of(tmp_path / "s")
    [mine] = states_in(tmp_path / "s")
    extract(tiny("B", seed=2), folder, tmp_path / "s")
    [theirs] = [path for path in states_in(tmp_path / "s") if path != mine]
    mine.write_bytes(theirs.read_bytes())
    again = extract(tiny("A", seed=1), folder, tmp_path / "s")
    assert any("it lies in the place of another" in note for note in again.notes)
    assert mine.read_bytes() == before[str(mine.relative_to(tmp_path / "s"))]


def test_other_weights_images_and_settings_never_answer_for_each_other(tmp_path: Path) -> None:
    """They lie side by side in one store: what was extracted last is what is read."""
    folder = write_images(tmp_path / "p", 8)
    first = extract(tiny(), folder, tmp_path / "s").provenance[0]["digest"]
    features = load_features(tmp_path / "s").layer("cls", 2).whole()
    digests = {first}
    others: list[tuple[Backbone, dict[str, Any]]] = [
        (tiny(seed=1), {}),
        (tiny(), {"limit": 6}),
        (tiny(), {"poolings": ("cls",)}),
        (tiny(), {"dtype": "float32"}),
    ]
    for backbone, settings in others:
        digests.add(extract(backbone, folder, tmp_path / "s", **settings).provenance[0]["digest"])
        found = load_features(tmp_path / "s").layer("cls", 2).whole()
        assert len(found) == settings.get("limit", 8)
        if backbone.weights_digest != tiny().weights_digest or "dtype" in settings:
            assert not torch.equal(found, features)
    assert len(digests) == 5
    assert extract(tiny(), folder, tmp_path / "s").provenance[0]["digest"] == first
    assert torch.equal(load_features(tmp_path / "s").layer("cls", 2).whole(), features)
    with pytest.raises(ValueError, match="'float16' or 'float32'"):
        Extraction(dtype="int8")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["{", "[]", '{"models": {"tiny": {"depth": 3}}}', '{"models": {"tiny": 7}}'])
def test_an_index_changed_by_hand_is_told(tmp_path: Path, text: str) -> None:
    extract(tiny(), write_images(tmp_path / "p", 8), tmp_path / "s")
    (tmp_path / "s" / "features.json").write_text(text)
    with pytest.raises(BadData, match=r"features.json is damaged .*extract the features again"):
        load_features(tmp_path / "s")


def test_broken_images_are_left_out_by_name_even_after_resuming(tmp_path: Path) -> None:
    folder, broken = write_images(tmp_path / "p", 160), [3, *range(64, 128)]
    for i in broken:  # one in the first shard, the whole second shard
        (folder / f"{i:04}.png").write_bytes(b"not an image")
    for _ in range(2):
        results = extract(tiny(), folder, tmp_path / "s", skip_limit=70)
        found = load_features(tmp_path / "s")
        assert [name.rpartition("/")[2] for name in results.skipped] == [f"{i:04}.png" for i in broken]
        assert found.positions.tolist() == [i for i in range(160) if i not in broken]
        assert found.layer("cls", 0).whole().shape == (95, 24)
    with pytest.raises(BadData, match="more than 2 images are unusable"):
        extract(tiny(seed=1), folder, tmp_path / "t", skip_limit=2)


def test_nothing_usable_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    folder.mkdir()
    for i in range(3):
        (folder / f"{i}.png").write_bytes(b"x")
    with pytest.raises(BadData, match="none of the 3 images"):
        extract(tiny(), folder, tmp_path / "s")


def test_two_processes_do_not_write_one_store(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "p", 4)
    (tmp_path / "s").mkdir()
    with only_run(tmp_path / "s"), pytest.raises(VitscopeError, match="another run is working"):
        extract(tiny(), folder, tmp_path / "s")
    extract(tiny(), folder, tmp_path / "s")
    assert len(load_features(tmp_path / "s")) == 4


def test_a_disk_that_fills_up_is_told_and_leaves_no_half_shard(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "p", 8)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # as a full disk: an error, not a signal
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
        with pytest.raises(VitscopeError, match=r"could not write .*MiB free"):
            extract(tiny(), folder, tmp_path / "s")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert not states_in(tmp_path / "s")
    with pytest.raises(BadData, match="holds no features"):
        load_features(tmp_path / "s")
    extract(tiny(), folder, tmp_path / "s")
    assert len(load_features(tmp_path / "s")) == 8


def test_features_that_half_precision_cannot_hold_are_told(tmp_path: Path) -> None:
    folder, backbone = write_images(tmp_path / "p", 4), tiny()
    inside(backbone).blocks[1].mlp.fc2.bias[3] = 1e5
    backbone = Backbone("large", backbone.module, backbone.preprocessing)  # a digest of its own
    with pytest.raises(VitscopeError, match=r"layer 2 reach 1e\+05 .*float16.* as float32"):
        extract(backbone, folder, tmp_path / "s")
    extract(backbone, folder, tmp_path / "s", dtype="float32")
    assert load_features(tmp_path / "s").layer("cls", 1).whole().max() > 65504


def test_the_tables_can_be_read_by_anything(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "p", 6, classes=2)
    extract(tiny(), folder, tmp_path / "s")
    table = pl.read_parquet(tmp_path / "s" / "images.parquet")
    assert table.columns == ["index", "id", "label", "class"]
    assert table["index"].to_list() == list(range(6))
    known = json.loads((tmp_path / "s" / "features.json").read_text())
    assert known["models"]["tiny"]["files"] == [str(p.relative_to(tmp_path / "s")) for p in states_in(tmp_path / "s")]
