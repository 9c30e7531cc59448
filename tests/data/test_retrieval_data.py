"""The revisited benchmarks, their pickles honest and malicious, and folders of individuals."""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitscope.core.errors import BadData
from vitscope.data.batches import SkippedImages, batches
from vitscope.data.preprocessing import Preprocessing
from vitscope.data.retrieval import open_retrieval
from vitscope.data.revisited import BoxedSample, open_revisited
from vitscope.data.safe_pickle import Numbers, RefusedPickle, read_plain_pickle

DATABASE = ("all_souls_000013", "oriel_000044", "radcliffe_000520", "christ_church_000179")
QUERIES = ("magdalen_000078", "bodleian_000132")


def truth() -> dict[str, Any]:
    return {
        "imlist": list(DATABASE),
        "qimlist": list(QUERIES),
        "gnd": [
            {
                "bbx": [4.4, 2.0, 20.0, 12.6],
                "easy": np.array([0, 2]),
                "hard": np.array([], np.int64),
                "junk": [3],
            },
            {"bbx": np.array([0.0, 0, 24, 16]), "easy": [], "hard": [np.int64(1)], "junk": (0,)},
        ],
    }


@pytest.fixture
def roxford(photo: Callable[..., Path], tmp_path: Path) -> Path:
    for i, name in enumerate((*DATABASE, *QUERIES)):
        photo(f"roxford5k/jpg/{name}.jpg", size=(24, 16), seed=i)
    write(tmp_path / "roxford5k", truth())
    return tmp_path / "roxford5k"


def write(root: Path, content: Any, protocol: int = 2) -> None:
    (root / "gnd_roxford5k.pkl").write_bytes(pickle.dumps(content, protocol))


@pytest.mark.parametrize("protocol", range(6))
def test_official_layout(roxford: Path, protocol: int) -> None:
    write(roxford, truth(), protocol)
    for root in (roxford, roxford.parent):
        data = open_retrieval(root)
        assert data.title == "ROxford5k (part)"  # 2 of the 70 queries
        assert [s.id for s in data.database] == [f"jpg/{name}.jpg" for name in DATABASE]
        first, second = data.queries
        assert (first.easy, first.hard, first.junk, first.position) == ((0, 2), (), (3,), None)
        assert (second.easy, second.hard, second.junk) == ((), (1,), (0,))


def test_query_is_its_box(roxford: Path) -> None:
    data = open_revisited(roxford)
    query = data.query_images[0]
    assert isinstance(query, BoxedSample)
    whole = data.query_images[1].load()
    assert whole.size == (24, 16)
    picture = query.load()
    assert picture.size == (16, 11)  # x 4..20, y 2..13: corners are rounded
    full = BoxedSample("", query.path, box=(0, 0, 24, 16)).load()
    assert np.array_equal(np.asarray(picture), np.asarray(full)[2:13, 4:20])
    (batch,) = batches(data.query_images, Preprocessing(size=(8, 8)), batch_size=4, skipped=SkippedImages())
    assert batch.images.shape == (2, 3, 8, 8)


def test_box_beyond_the_image_is_cut_and_one_outside_is_skipped(roxford: Path) -> None:
    path = roxford / f"jpg/{QUERIES[0]}.jpg"
    assert BoxedSample("", path, box=(-5, 8, 100, 100)).load().size == (24, 8)
    with pytest.raises(BadData, match="unusable box"):
        BoxedSample("", path, box=(30, 0, 50, 10)).load()


def test_digest_follows_boxes_and_answers(roxford: Path) -> None:
    digests = {open_revisited(roxford).digest}
    for change in ({"bbx": [0, 0, 5, 5]}, {"easy": [1]}):
        content = truth()
        content["gnd"][0] |= change
        write(roxford, content)
        digests.add(open_revisited(roxford).digest)
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"imlist": 5}, "not a revisited ground truth"),
        ({"imlist": ["../../etc/passwd"]}, "outside its folder"),
        ({"imlist": [7]}, "type int where the name of a file"),
        ({"gnd": []}, "2 queries but 0 answers"),
        ({"gnd": [{"bbx": [0, 0, 1, 1]}] * 2}, "easy is missing"),
        ({"gnd": [{"bbx": [0, 0, 1], "easy": [], "hard": [], "junk": []}] * 2}, "query box"),
        (
            {"gnd": [{"bbx": [0, 0, 1, 1], "easy": [4], "hard": [], "junk": []}] * 2},
            "not one of the 4 images",
        ),
        (
            {"gnd": [{"bbx": [0, 0, 1, 1], "easy": [float("inf")], "hard": [], "junk": []}] * 2},
            "ground truth",
        ),
        ({"imlist": [*DATABASE, "nowhere"]}, r"1 of the 7 images of .* are missing \(first: .*nowhere.jpg"),
    ],
)
def test_bad_ground_truth(roxford: Path, change: dict[str, Any], said: str) -> None:
    write(roxford, truth() | change)
    with pytest.raises(BadData, match=said):
        open_revisited(roxford)


def test_wrong_layout(roxford: Path, tmp_path: Path) -> None:
    (roxford / "jpg").rename(roxford / "images")
    with pytest.raises(BadData, match=r"jpg/ is missing; found gnd_roxford5k.pkl, images/"):
        open_revisited(roxford)
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        BadData, match=r"expected gnd_roxford5k.pkl or gnd_rparis6k.pkl and jpg/; found an empty folder"
    ):
        open_revisited(tmp_path / "empty")
    (tmp_path / "rparis6k").mkdir()
    with pytest.raises(BadData, match="holds roxford5k and rparis6k"):
        open_revisited(tmp_path)


class Malicious:
    def __init__(self, call: Callable[..., Any], *arguments: Any) -> None:
        self.call, self.arguments = call, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return self.call, self.arguments


@pytest.mark.parametrize("protocol", range(6))
def test_malicious_pickle_is_refused_and_nothing_is_run(roxford: Path, protocol: int) -> None:
    trace = roxford / "trace"
    for bad in (Malicious(os.mkdir, str(trace)), Malicious(eval, f"__import__('os').mkdir({str(trace)!r})")):
        write(roxford, truth() | {"extra": bad}, protocol)
        with pytest.raises(RefusedPickle, match=r"refused, nothing in it was run: it asks for (posix.mkdir|\w+\.eval)"):
            open_revisited(roxford)
        assert not trace.exists()


@pytest.mark.parametrize(
    ("stream", "said"),
    [
        (b"cnumpy\nload\n.", "numpy.load"),
        (b"cnumpy.core.multiarray\nfromfile\n.", "fromfile"),
        (b"\x80\x04\x8c\x08builtins\x8c\x07getattr\x93.", "builtins.getattr"),
        (b"Pabc\n.", "outside the file"),
    ],
)
def test_other_ways_out_are_closed(tmp_path: Path, stream: bytes, said: str) -> None:
    (tmp_path / "a.pkl").write_bytes(stream)
    with pytest.raises(RefusedPickle, match=said):
        read_plain_pickle(tmp_path / "a.pkl")


def test_memory_is_not_taken_on_a_file_s_word(tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(b"\x80\x02]r\xff\xff\xff\xff.")  # a memo of 2**32 entries, asked for by the file
    assert read_plain_pickle(tmp_path / "a.pkl") == []
    (tmp_path / "b.pkl").touch()
    os.truncate(tmp_path / "b.pkl", 65 << 20)
    with pytest.raises(RefusedPickle, match="more than the 64 MiB"):
        read_plain_pickle(tmp_path / "b.pkl")


def test_the_same_bytes_named_again_and_again_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.arange(50)
    reduced: Any = array.__reduce_ex__(5)
    rebuild, (_, kind, shape, order) = reduced[:2]
    content = array.tobytes()
    (tmp_path / "a.pkl").write_bytes(
        pickle.dumps([Malicious(rebuild, content, kind, shape, order) for _ in range(9)], 5)
    )
    assert len(read_plain_pickle(tmp_path / "a.pkl")) == 9
    monkeypatch.setattr("vitscope.data.safe_pickle.MAX_BYTES", 2000)  # the file has 800 bytes, its arrays 3,600
    with pytest.raises(RefusedPickle, match="larger than the file"):
        read_plain_pickle(tmp_path / "a.pkl")


def test_arrays_of_objects_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(np.array([{}, []], dtype=object), 2))
    with pytest.raises(RefusedPickle, match="only numbers are read"):
        read_plain_pickle(tmp_path / "a.pkl")


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(3, dtype=">i4"),
        np.zeros((0, 4), np.float32),
        np.array([True, False]),
        np.float32(2.5),
        np.int64(-7),
    ],
)
def test_arrays_come_out_as_they_went_in(tmp_path: Path, array: np.ndarray, protocol: int) -> None:
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(array, protocol))
    got = read_plain_pickle(tmp_path / "a.pkl")
    assert isinstance(got, Numbers)
    assert got.values is not None
    assert got.values.dtype == array.dtype
    assert np.array_equal(got.values, array)
    assert got.values.shape == array.shape


@settings(max_examples=300, deadline=None)
@given(
    edits=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=10),
    protocol=st.integers(0, 5),
)
def test_damaged_pickles_do_nothing_worse_than_fail(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[int, int]], protocol: int
) -> None:
    data = bytearray(pickle.dumps(truth(), protocol))
    for position, value in edits:
        data[position % len(data)] = value
    path = tmp_path_factory.getbasetemp() / "damaged.pkl"
    path.write_bytes(data)
    with contextlib.suppress(BadData):  # and nothing else
        read_plain_pickle(path)


def test_individuals(photo: Callable[..., Path], tmp_path: Path) -> None:
    for name in ("bella/1.jpg", "bella/2.jpg", "bella/3.jpg", "luna/1.jpg", "max/1.jpg", "max/2.jpg"):
        photo(f"dogs/{name}")
    data = open_retrieval(tmp_path / "dogs")
    assert data.title == "dogs"
    assert data.database.classes == ("bella", "luna", "max")
    assert [s.id for s in data.query_images] == [
        "bella/1.jpg",
        "bella/2.jpg",
        "bella/3.jpg",
        "max/1.jpg",
        "max/2.jpg",
    ]
    assert [q.position for q in data.queries] == [0, 1, 2, 4, 5]
    assert [q.easy for q in data.queries] == [(1, 2), (0, 2), (0, 1), (5,), (4,)]
    assert [q.junk for q in data.queries] == [(0,), (1,), (2,), (4,), (5,)]
    assert data.notes == ("1 individuals have a single image: they are searched but not asked for",)


def test_no_individuals(photo: Callable[..., Path], tmp_path: Path) -> None:
    photo("flat/1.jpg")
    with pytest.raises(BadData, match=r"is not a folder of individuals: expected one subfolder per.*found 1.jpg"):
        open_retrieval(tmp_path / "flat")
    photo("ones/a/1.jpg")
    photo("ones/b/1.jpg")
    with pytest.raises(BadData, match=r"no individual in .* has two images"):
        open_retrieval(tmp_path / "ones")
