"""A digest stands for one number: by whatever way it was reached, in whatever company, after whatever interruption."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image
from polars.testing import assert_frame_equal

import vitscope
from tests.conftest import make_photos
from tests.features.made import tiny
from vitscope.attention.analysis import Attention
from vitscope.attention.saliency import Saliency
from vitscope.cli import main
from vitscope.core.analysis import Analysis
from vitscope.core.results import Results
from vitscope.data import openers
from vitscope.data.dataset import MaskSet
from vitscope.features.analysis import Features
from vitscope.features.objects import Objects

MODEL = "random:vit_tiny_patch16_224"
STUDY = """
title = "one"
out = "study"
analyses = ["attention", "features"]
[[models]]
name = "random:vit_tiny_patch16_224"
size = 32
[data.images]
path = "photos"
"""
QUICK = Features(cluster_seeds=1, projections=False)


@pytest.fixture
def masked(tmp_path: Path) -> Path:
    """Seventy images with an object each, of two categories: two shards."""
    photos = make_photos(tmp_path / "masked" / "images", count=70, classes=1)
    for i, photo in enumerate(sorted(photos.rglob("*.png"))):
        where = tmp_path / "masked" / "masks" / photo.relative_to(photos)
        where.parent.mkdir(parents=True, exist_ok=True)
        mask = np.zeros((48, 60), np.uint8)
        mask[10 + i % 7 : 40, 15:45] = 1 + i % 2
        Image.fromarray(mask).save(where)
    return tmp_path / "masked"


def by_digest(results: Results, measure: str) -> pl.DataFrame:
    """The numbers of a measure under their digests; what models and datasets are called is not part of them."""
    keys = ["layer", "head", "variant", "protocol"]
    rows = results.table.filter(pl.col("measure") == measure)
    return rows.select("provenance", *keys, "value", "ci_low", "ci_high").sort("provenance", *keys)


def test_one_attention_number_has_one_digest_by_every_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photos = make_photos(tmp_path / "photos", count=12)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    main(["attention", MODEL, "--size", "32", "--images", str(photos), "--out", "command", "--no-page"])
    main(["run", "study.toml", "--figures", "none"])
    spec = vitscope.resolve(MODEL, size=32)
    ways = [
        Results.load("command"),
        Results.load("study"),
        vitscope.evaluate([spec], on=[vitscope.images(photos)], analyses=[Attention()]),
        vitscope.evaluate([spec], on=photos, engine=vitscope.Local(processes=2)),
    ]
    for measure in ("attention_distance", "head_kind", "offset"):
        first, *others = [by_digest(results, measure) for results in ways]
        assert first["provenance"].n_unique() == 1
        for other in others:
            assert_frame_equal(other, first, check_exact=True)


@pytest.mark.parametrize(
    ("alone", "company", "measure"),
    [([QUICK], [Attention()], "effective_rank"), ([Objects(cluster_seeds=1)], [Saliency()], "purity")],
    ids=["features", "objects"],
)
def test_whoever_else_watches_no_digest_stands_for_two_numbers(
    masked: Path, alone: Sequence[Analysis], company: Sequence[Analysis], measure: str
) -> None:
    """With somebody who watches attention the kernels are not fused, which changes last digits of all features."""
    dataset = openers.images(masked / "images") if alone[0].kind == "images" else openers.masks(masked)
    found: dict[str, pl.DataFrame] = {}
    for analyses in (alone, [*alone, *company], [*company, *alone]):
        results = vitscope.evaluate(tiny(), on=[dataset], analyses=analyses, device="cpu")
        rows = by_digest(results, measure)
        for (digest,), mine in rows.group_by("provenance"):
            assert_frame_equal(found.setdefault(str(digest), mine), mine, check_exact=True)
    assert len(found) == 2


def test_a_state_made_anew_alone_is_the_same_as_beside_others(tmp_path: Path, masked: Path) -> None:
    """As after a kill between two states of one shard: what is missing is computed without those who are done."""
    photos, store = openers.images(masked / "images"), tmp_path / "s"
    vitscope.evaluate(tiny(), on=[photos], analyses=[Attention(), QUICK], store=store, device="cpu")
    states = {path: path.read_bytes() for path in store.glob("states/*/*.safetensors")}
    assert len(states) == 5 * 2  # attention, pooled, two kinds of Grams and the residual stream, of two shards
    for path, data in states.items():
        path.unlink()
        for outcome in store.glob("outcomes/*"):
            outcome.unlink()
        vitscope.evaluate(tiny(), on=[photos], analyses=[Attention(), QUICK], store=store, device="cpu")
        assert path.read_bytes() == data


def test_saliency_and_regions_do_not_depend_on_the_order_in_which_images_went_by(masked: Path) -> None:
    """Bootstrap and k-means draw by position in the dataset; `seed` only shuffles the stream."""
    first, second = (
        vitscope.evaluate(tiny(), on=[dataset], analyses=[Saliency(), Objects(cluster_seeds=2)], device="cpu")
        for dataset in (MaskSet("m", openers.masks(masked).samples, seed) for seed in (0, 1))
    )
    for measure in ("saliency_iou", "saliency_best_head", "purity", "nmi"):
        rows = [by_digest(results, measure).drop("provenance") for results in (first, second)]
        for column in rows[0].columns:
            one, other = (found[column].to_numpy() for found in rows)
            if rows[0][column].dtype == pl.Float64:
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
            else:
                np.testing.assert_array_equal(one, other)
    assert set(first.table["provenance"]).isdisjoint(second.table["provenance"])


def test_a_relation_carries_the_digest_of_both(masked: Path) -> None:
    photos = openers.images(masked / "images")
    results = vitscope.evaluate([tiny("A"), tiny("B", seed=1), tiny("C", seed=2)], [photos], [QUICK], device="cpu")
    pairs = results.table.filter(pl.col("other_model").is_not_null())
    assert (
        pairs.group_by("model", "other_model").agg(pl.col("provenance").n_unique())["provenance"].to_list() == [1] * 3
    )
    assert pairs["provenance"].n_unique() == 3
    assert pairs["other_layer"].unique().to_list() == [3]
