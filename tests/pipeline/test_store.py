"""The store: whose it is, one run at a time, and no changed byte that is not noticed."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
import torch

from vitscope.core.analysis import Outcome
from vitscope.core.errors import VitscopeError
from vitscope.core.files import Damaged
from vitscope.core.results import NOBODY, tidy
from vitscope.pipeline.store import Store

STATE = {
    "indices": torch.arange(3),
    "sum/total": torch.tensor([1.5, -2.0], dtype=torch.float64),
    "row/half": torch.ones(3, 2, dtype=torch.float16),
    "row/empty": torch.empty(0, 4),
}


def write(store: Store, key: str = "abc", shard: int = 0) -> Path:
    store.write_state(key, shard, STATE, skipped={"a.jpg": "is broken"}, about={"model": "m"})
    return store.state_path(key, shard)


def test_states_come_back_as_they_were(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    write(store)
    found = store.read_state("abc", 0)
    assert set(found) == set(STATE)
    for name, value in STATE.items():
        assert torch.equal(found[name], value)
        assert found[name].dtype == value.dtype
    assert found.about["skipped"] == {"a.jpg": "is broken"}
    assert store.shards_of("abc") == {0}
    assert store.shards_of("other") == set()


def test_outcomes_come_back_as_they_were(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    table = tidy(NOBODY, "m", torch.tensor([0.25, torch.nan]), axes=("layer",), n=7)
    outcome = Outcome([table, table], {"x": torch.eye(2)}, ["a note"], {"n": 3}, pl.DataFrame({"a": [1]}))
    assert not store.has_outcome("abc")
    store.write_outcome("abc", outcome)
    assert store.has_outcome("abc")
    found = store.read_outcome("abc")
    assert pl.concat(found.tables).equals(pl.concat([table, table]))
    assert torch.equal(found.maps["x"], torch.eye(2))
    assert (found.notes, found.facts) == (["a note"], {"n": 3})
    assert found.pairs is not None
    assert found.pairs.equals(pl.DataFrame({"a": [1]}))


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    files = {write(Store(tmp_path / str(number))).read_bytes() for number in range(8)}
    assert len(files) == 1


def test_no_changed_byte_goes_unnoticed(tmp_path: Path) -> None:
    """Every byte of a state, in every way that leaves the file's length: what is read is right, or it is told."""
    store = Store(tmp_path / "store")
    path = write(store)
    whole = path.read_bytes()
    told = 0
    for place in range(len(whole)):
        for flipped in (0x01, 0x0F, 0x20, 0xFF):
            data = bytearray(whole)
            data[place] ^= flipped
            path.write_bytes(bytes(data))
            try:
                found = store.read_state("abc", 0)
                assert {name: found[name].tolist() for name in found} == {n: v.tolist() for n, v in STATE.items()}
                assert all(found[name].dtype == value.dtype for name, value in STATE.items())
                assert found.about["skipped"] == {"a.jpg": "is broken"}
            except Damaged:
                told += 1
    assert told > 0.95 * 4 * len(whole)  # some white space of the header means nothing


def test_a_type_that_was_changed_is_noticed(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    path = write(store)
    assert b'"F64"' in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(b'"F64"', b'"I64"'))
    with pytest.raises(Damaged, match="checksum"):
        store.read_state("abc", 0)["sum/total"]


@pytest.mark.parametrize("length", [0, 1, 8, 100, -1])
def test_files_that_were_cut_are_noticed(tmp_path: Path, length: int) -> None:
    store = Store(tmp_path / "store")
    path = write(store)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(Damaged, match="run again to make it anew"):
        store.read_state("abc", 0).verify()


def test_states_in_the_place_of_another_are_noticed(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    one, shard, key = write(store), write(store, shard=1), write(store, key="other")
    for place in (shard, key):
        place.write_bytes(one.read_bytes())
    for name, number in (("abc", 1), ("other", 0)):
        with pytest.raises(Damaged, match="in the place of another"):
            store.read_state(name, number)


def test_another_study_is_not_mixed_in(tmp_path: Path) -> None:
    Store(tmp_path / "store", "mine")
    Store(tmp_path / "store")
    Store(tmp_path / "store", "mine")
    with pytest.raises(VitscopeError, match=r"holds another study \('mine'\)"):
        Store(tmp_path / "store", "other")


def test_a_store_without_a_title_takes_the_first_one(tmp_path: Path) -> None:
    Store(tmp_path / "store")
    Store(tmp_path / "store", "mine")
    with pytest.raises(VitscopeError, match="holds another study"):
        Store(tmp_path / "store", "other")


def test_a_folder_that_holds_something_else(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(VitscopeError, match="not empty"):
        Store(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_somebody_elses_store_json_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "store.json").write_text('{"shop": "flowers"}')
    with pytest.raises(VitscopeError, match="choose another folder"):
        Store(tmp_path)
    assert json.loads((tmp_path / "store.json").read_text()) == {"shop": "flowers"}


def test_stores_of_another_version_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Store(tmp_path / "store")
    monkeypatch.setattr("vitscope.pipeline.store.FORMAT", 99)
    with pytest.raises(VitscopeError, match="another version"):
        Store(tmp_path / "store")


def test_two_runs_at_once_are_refused_and_leftovers_cleared(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    path = write(store)
    leftover = path.parent / ".writing-killed"
    leftover.mkdir()
    (leftover / "00001.safetensors").write_bytes(b"half")
    with store.locked():
        assert not leftover.exists()
        with pytest.raises(VitscopeError, match="another run is working"), Store(store.root).locked():
            pass
    with store.locked():
        pass
    assert store.shards_of("abc") == {0}


def test_lines_of_the_log_that_were_torn_are_passed_over(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.log("one", n=1)
    with (store.root / "log.jsonl").open("a") as file:
        file.write('{"time": "2026')
    store.log("glued to it")
    store.log("two")
    events = store.events()
    assert [event["event"] for event in events] == ["one", "two"]
    assert all(event["pid"] > 0 for event in events)
