"""Retrieval: average precision with junk by hand, setups, boxes and the ways of the paper, individuals."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image

from tests.tasks.conftest import classes, examined, photo, values
from vitscope.core.errors import BadData
from vitscope.core.results import Label
from vitscope.data.preprocessing import HALF, Preprocessing, ShrunkPreprocessing, in_geometry
from vitscope.data.retrieval import open_retrieval
from vitscope.data.revisited import RetrievalQuery
from vitscope.models.backbone import Backbone
from vitscope.tasks import retrieval
from vitscope.tasks.nearest import read_rows
from vitscope.tasks.retrieval import Retrieval, average_precision, positive_ranks, precision_at


def test_average_precision_by_hand() -> None:
    # found at ranks 0 and 2 of two: (1 + 1) / 2 for the first; (1/2 + 2/3) / 2 for the second; mean of both
    assert average_precision(np.array([0, 2]), 2) == pytest.approx((1 + (1 / 2 + 2 / 3) / 2) / 2)
    assert average_precision(np.array([0, 1, 2]), 3) == 1
    assert average_precision(np.array([3]), 1) == pytest.approx((0 + 1 / 4) / 2)
    # one of two positives is missing from the ranking altogether
    assert average_precision(np.array([0]), 2) == pytest.approx(0.5)


def test_junk_is_taken_out_before_ranks_are_counted() -> None:
    order = np.array([7, 4, 1, 9, 0])
    assert positive_ranks(order, [1, 0], junk=[7, 9]).tolist() == [1, 2]
    assert positive_ranks(order, [1, 0], junk=[]).tolist() == [2, 4]
    assert positive_ranks(order, [7], junk=[1, 9, 0, 4]).tolist() == [0]


def test_precision_looks_no_further_than_the_last_positive() -> None:
    ranks = np.array([0, 3])
    assert precision_at(ranks, 1) == 1
    assert precision_at(ranks, 5) == pytest.approx(2 / 4)  # both are among the first four
    assert precision_at(ranks, 2) == pytest.approx(1 / 2)


def line(*similarities: float) -> torch.Tensor:
    """Features on the unit circle whose cosines with (1, 0) are these."""
    cosines = torch.tensor(similarities)
    return torch.stack([cosines, (1 - cosines**2).sqrt()], 1)


def test_setups_by_hand() -> None:
    database = line(0.9, 0.8, 0.7, 0.6)  # ranked 0, 1, 2, 3
    query = RetrievalQuery(easy=(1,), hard=(3,), junk=(0,))
    scores = retrieval.evaluate([torch.tensor([[1.0, 0.0]])], [database], [query])
    found = {setup: values.item() for setup, values in scores.precision.items()}
    # easy: 0 and 3 ignored, 1 is first. medium: 1 first, 3 third. hard: 0 and 1 ignored, 3 is second
    assert found == pytest.approx({"easy": 1, "medium": (1 + (1 / 2 + 2 / 3) / 2) / 2, "hard": (0 + 1 / 2) / 2})
    assert scores.at["medium"][0, 0].tolist() == pytest.approx([1, 2 / 3, 2 / 3])
    assert scores.first[0, 0].tolist() == [1, 2, 3] + 7 * [-1]  # without the junk


def test_positives_that_are_all_junk_are_nothing_to_find() -> None:
    database = line(0.9, 0.8, 0.7)
    truth = [RetrievalQuery((0,), (), (2,)), RetrievalQuery((1,), (), (1, 2)), RetrievalQuery((0, 1), (), (0,))]
    scores = retrieval.evaluate([torch.tensor([[1.0, 0.0]] * 3)], [database], truth)
    found = scores.precision["all"][:, 0].tolist()
    assert (found[0], found[2]) == (1, 1)  # of what is both, only the rest counts: image 1, first once 0 is ignored
    assert np.isnan(found[1])
    rows = [row for t in scores.rows(Label("m", "none", "d", "p"), "cls", "corrected") for row in t.rows(named=True)]
    assert {row["n"] for row in rows} == {2}
    with pytest.raises(BadData, match="no query has anything to find"):
        retrieval.evaluate([torch.tensor([[1.0, 0.0]])], [database], truth[1:2])


def test_queries_without_positives_are_skipped() -> None:
    database = line(0.9, 0.8, 0.7)
    truth = [RetrievalQuery((0,), (2,), ()), RetrievalQuery((), (0,), ())]
    scores = retrieval.evaluate([torch.tensor([[1.0, 0.0]] * 2)], [database], truth)
    rows = {(row["measure"], row["variant"]): row for t in scores.rows(Label("m", "none", "d", "p"), "cls", "corrected")
            for row in t.rows(named=True)}  # fmt: skip
    assert rows["retrieval_map", "cls easy"]["n"] == 1
    assert rows["retrieval_map", "cls easy"]["value"] == 1
    assert rows["retrieval_map", "cls hard"]["n"] == 2
    assert rows["retrieval_map", "cls hard"]["value"] == pytest.approx(
        (0.25 + 1) / 2
    )  # the easy one is ignored: second


def test_a_truth_without_positives_is_told() -> None:
    with pytest.raises(BadData, match="no query has anything to find"):
        retrieval.evaluate([torch.eye(2)], [torch.eye(2)], [RetrievalQuery((), (), (0,))] * 2)


def test_the_official_layout_in_both_protocols(backbone: Backbone, roxford: Path, tmp_path: Path) -> None:
    data = open_retrieval(roxford)
    assert data.title == "ROxford5k (part)"
    protocols: tuple[Literal["corrected", "paper"], ...] = ("corrected", "paper")
    for protocol in protocols:
        _, outcome = examined(backbone, data, Retrieval(protocol=protocol), tmp_path / "store")
        rows = pl.concat(outcome.tables).filter(pl.col("measure") == "retrieval_map")
        assert set(rows["variant"]) == {f"{k} {s}" for k in ("cls", "mean") for s in ("easy", "medium", "hard")}
        assert set(rows["protocol"]) == {protocol}
        assert set(rows.filter(pl.col("variant") == "cls easy")["n"]) == {1}  # the second query has no easy one
        assert set(rows.filter(pl.col("variant") == "cls medium")["n"]) == {2}
        assert rows.filter(pl.col("variant") == "mean hard")["layer"].to_list() == [1, 2, 3]


def test_corrected_queries_are_boxes(backbone: Backbone, roxford: Path, tmp_path: Path) -> None:
    data = open_retrieval(roxford)
    found, _ = examined(backbone, data, Retrieval(), tmp_path / "store")
    asked = read_rows(found.features("queries").layer("cls", 0), 0, 1)
    box = Image.open(roxford / "jpg/image_000006.jpg").convert("RGB").crop((2, 2, 30, 28))
    pixels = torch.from_numpy(np.array(backbone.preprocessing.geometry(box))).permute(2, 0, 1)[None]
    tokens = backbone.module.forward_intermediates(  # type: ignore[operator]
        backbone.preprocessing.normalise(pixels), intermediates_only=True, norm=False, return_prefix_tokens=True
    )
    torch.testing.assert_close(asked[0], tokens[0][1][0, 0], atol=1e-5, rtol=1e-4)


def test_as_published_a_photograph_is_shrunk_before_it_is_enlarged() -> None:
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (60, 120, 3), dtype=np.uint8))
    shrunk = in_geometry(Preprocessing((32, 32), *HALF), "shrunk")
    small = picture.copy()
    small.thumbnail((32, 32), Image.Resampling.LANCZOS)
    assert small.size == (32, 16)
    expected = small.resize((64, 32), Image.Resampling.BICUBIC).crop((16, 0, 48, 32))
    np.testing.assert_array_equal(np.asarray(shrunk.geometry(picture)), np.asarray(expected))
    assert picture.size == (120, 60)
    assert shrunk.digest not in {
        Preprocessing((32, 32), *HALF).digest,
        ShrunkPreprocessing((32, 32), *HALF, first="another way").digest,
    }


def test_individuals_query_each_other(backbone: Backbone, tmp_path: Path) -> None:
    data = open_retrieval(classes(tmp_path / "herd", {"red": 4, "green": 3, "blue": 1}))
    assert len(data.queries) == 7  # a single image has nobody to be found by
    found, outcome = examined(backbone, data, Retrieval(), tmp_path / "store")
    known = found.features("database")
    for layer in range(3):  # leave one out, by hand
        unit = torch.nn.functional.normalize(known.layer("mean", layer).whole().double(), dim=1)
        precisions = []
        for query in data.queries:
            assert query.position is not None
            others = [i for i in range(8) if i != query.position]
            order = sorted(others, key=lambda i: -(unit[i] @ unit[query.position]).item())
            ranks = [rank for rank, i in enumerate(order) if i in query.easy]
            precisions.append(
                sum(((n / r if r else 1) + (n + 1) / (r + 1)) / 2 for n, r in enumerate(ranks)) / len(ranks)
            )
        assert values(outcome, "retrieval_map", "mean all")[layer] == pytest.approx(np.mean(precisions))


def test_unreadable_images_are_neither_found_nor_asked(backbone: Backbone, roxford: Path, tmp_path: Path) -> None:
    whole, _ = examined(backbone, open_retrieval(roxford), Retrieval(), tmp_path / "store")
    (roxford / "jpg/image_000003.jpg").write_bytes(b"broken")  # an easy one of the first query
    (roxford / "jpg/image_000007.jpg").write_bytes(b"broken")  # the second query
    found, outcome = examined(backbone, open_retrieval(roxford), Retrieval(), tmp_path / "store")
    assert found.features("database").positions.tolist() == [0, 1, 2, 4, 5]
    assert found.features("queries").positions.tolist() == [0]
    rows = pl.concat(outcome.tables).filter(pl.col("measure") == "retrieval_map")
    assert set(rows["n"]) == {1}
    # by hand, from features of the undamaged set: what is left to be found, easy 0 and hard 4, junk 5
    kept = [0, 1, 2, 4, 5]
    for layer in range(3):
        known = torch.nn.functional.normalize(whole.features("database").layer("cls", layer).whole(), dim=1)
        asked = torch.nn.functional.normalize(whole.features("queries").layer("cls", layer).whole(), dim=1)[0]
        order = sorted((i for i in kept if i != 5), key=lambda i: -(known[i] @ asked).item())
        ranks = np.array([rank for rank, i in enumerate(order) if i in (0, 4)])
        expected = average_precision(ranks, 2)
        assert values(outcome, "retrieval_map", "cls medium")[layer] == pytest.approx(expected)
    photo(roxford / "jpg/image_000003.jpg", seed=3)
    mended, _ = examined(backbone, open_retrieval(roxford), Retrieval(), tmp_path / "store")
    assert mended.features("database").positions.tolist() == [0, 1, 2, 3, 4, 5]
