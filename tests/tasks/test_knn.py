"""k-NN: votes and ties by hand, stored features, and labels that do not fit."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image

from tests.tasks.conftest import classes, examined, tiny_backbone, values
from vitscope.core.analysis import PROTOCOLS
from vitscope.core.errors import BadData
from vitscope.core.results import Label
from vitscope.data.labelled import open_labelled
from vitscope.models.backbone import Backbone
from vitscope.tasks import knn
from vitscope.tasks.knn import Knn, KnnConfig, votes, within_top
from vitscope.tasks.linear_probe import Probe
from vitscope.tasks.nearest import nearest, read_rows
from vitscope.tasks.whole_images import LabelledFeatures


def test_votes_by_hand() -> None:
    cosines, labels = torch.tensor([[0.9, 0.83, 0.76]]), torch.tensor([[1, 0, 0]])
    found = votes(cosines, labels, 3)
    # relative to the nearest: 1, e^-1, e^-2; the two of class 0 together are weaker than the one of class 1
    assert found[0].tolist() == pytest.approx([math.exp(-1) + math.exp(-2), 1, 0], rel=1e-5)


def test_of_equal_classes_the_first_wins_and_nobody_without_votes() -> None:
    scores = torch.tensor([[0.5, 0.5, 0.0, 0.2]])
    hits = [[bool(within_top(scores, torch.tensor([truth]), k)[0]) for truth in range(4)] for k in (1, 2, 3, 5)]
    assert hits == [
        [True, False, False, False],
        [True, True, False, False],
        [True, True, False, True],
        [True, True, False, True],  # class 2 has no vote: never among the best five
    ]


def test_classes_without_votes_fill_up_the_best_under_paper() -> None:
    """Two of seven classes have votes; the first three of the others come with them, as in DINO's evaluation."""
    scores = torch.tensor([[0, 0.5, 0, 0, 0, 0.2, 0]])
    hits = {k: [bool(within_top(scores, torch.tensor([truth]), k, without_votes=True)[0]) for truth in range(7)]
            for k in (1, 5)}  # fmt: skip
    assert hits == {
        1: [False, True, False, False, False, False, False],
        5: [True, True, True, True, False, True, False],
    }


def test_what_a_pooling_head_makes_of_images_is_asked_at_the_last_layer(tmp_path: Path) -> None:
    pooling = tiny_backbone(class_token=False, global_pool="map")
    data = open_labelled(classes(tmp_path / "set", {f"c{i}": 4 for i in range(5)}))
    found, outcome = examined(pooling, data, Knn(ks=(3,)), tmp_path / "store")
    rows = pl.concat(outcome.tables).filter(pl.col("variant") == "pool k=3")
    assert rows["layer"].unique().to_list() == [3]
    features = []
    for part in ("train", "test"):
        stored = found.features(part)
        assert stored.pool is not None
        seen = [np.asarray(pooling.preprocessing.geometry(Image.open(one.path))) for one in getattr(data, part)]
        pixels = pooling.preprocessing.normalise(torch.from_numpy(np.stack(seen)).permute(0, 3, 1, 2))
        with torch.no_grad():
            expected = pooling.module(pixels)
        torch.testing.assert_close(stored.pool.whole(), expected, rtol=1e-4, atol=1e-5)
        features.append(expected)
    labels = LabelledFeatures.of(data, found)
    scores = knn.evaluate(features[:1], labels.train_labels, features[1:], labels.test_labels, config=KnnConfig((3,)))
    assert values(outcome, "knn_top1", "pool k=3") == scores.top1.double().mean(0).flatten().tolist()


def test_protocols_differ_in_the_best_five_alone(backbone: Backbone, tmp_path: Path) -> None:
    data = open_labelled(classes(tmp_path / "set", {f"c{i}": 4 for i in range(10)}))
    tables = {p: examined(backbone, data, Knn(ks=(3, 6), protocol=p), tmp_path / p)[1].tables for p in PROTOCOLS}
    rows = {p: {(row["measure"], row["variant"], row["layer"]): row for t in found for row in t.rows(named=True)}
            for p, found in tables.items()}  # fmt: skip
    assert all(row["protocol"] == p for p, found in rows.items() for row in found.values())
    assert rows["corrected"].keys() == rows["paper"].keys()
    for key, row in rows["corrected"].items():
        same = row["value"] == rows["paper"][key]["value"]
        assert same if key[0] == "knn_top1" else row["value"] <= rows["paper"][key]["value"]


def test_fewer_images_than_neighbours() -> None:
    train, labels = torch.eye(6)[None], torch.tensor([0, 0, 1, 1, 2, 2])
    scores = knn.evaluate(list(train), labels, list(train), labels)
    assert scores.ks == (6,)  # all there are
    assert scores.top1.shape == (6, 1, 1)
    assert scores.neighbours.shape == (6, 1, 6)
    assert knn.evaluate(list(train), labels, list(train), labels, config=knn.KnnConfig(ks=(1, 10))).top1.all()


def test_a_class_without_examples_is_told() -> None:
    with pytest.raises(BadData, match=r"1 of the classes asked for \(first: number 3\) have no labelled image"):
        knn.evaluate([torch.eye(4)], torch.tensor([0, 1, 2, 2]), [torch.eye(4)], torch.tensor([0, 1, 2, 3]))


def test_a_zero_feature_is_like_nothing() -> None:
    cosines, _ = nearest(torch.zeros(1, 3), torch.eye(3), 2)
    assert cosines.tolist() == [[0, 0]]


def test_rows_carry_intervals_and_names() -> None:
    train, labels = torch.randn(1, 60, 8), torch.arange(60) % 3
    scores = knn.evaluate(list(train), labels, list(train[:, :30]), labels[:30])
    rows = {(row["measure"], row["variant"]): row for t in scores.rows(Label("m", "none", "d", "p"), "cls", "corrected")
            for row in t.rows(named=True)}  # fmt: skip
    assert set(rows) == {(m, f"cls k={k}") for m in ("knn_top1", "knn_top5") for k in (10, 20)}
    row = rows["knn_top1", "cls k=20"]
    assert row["ci_low"] <= row["value"] <= row["ci_high"]
    assert row["n"] == 30
    assert rows["knn_top5", "cls k=10"]["value"] == 1  # three classes


def test_a_model_on_folders_is_evaluate_on_its_features(backbone: Backbone, tmp_path: Path) -> None:
    root = tmp_path / "set"
    classes(root / "train", {"red": 8, "green": 8, "blue": 8})
    classes(root / "val", {"red": 3, "blue": 3}, seed=77)
    data = open_labelled(root)
    found, outcome = examined(backbone, data, Knn(ks=(5,)), tmp_path / "store")
    features = LabelledFeatures.of(data, found)
    assert features.kinds == ("cls", "mean")
    assert features.test_labels.tolist() == [0, 0, 0, 2, 2, 2]  # classes go by name: blue 0, green 1, red 2
    for kind in features.kinds:
        scores = knn.evaluate(
            [layer.whole() for layer in features.train.layers(kind)],
            torch.tensor(data.train.labels),
            [layer.whole() for layer in features.test.layers(kind)],
            torch.tensor(data.test.labels),
            config=KnnConfig((5,)),
        )
        assert values(outcome, "knn_top1", f"{kind} k=5") == scores.top1[..., 0].double().mean(0).tolist()
    assert min(values(outcome, "knn_top1", "mean k=5")) > 0.8  # colours tell these classes apart, in any network
    _, probed = examined(backbone, data, Probe(), tmp_path / "store")
    assert min(values(probed, "probe_top1", "mean")) > 0.8


def test_stored_features_are_the_networks(backbone: Backbone, tmp_path: Path) -> None:
    """Rows of any stretch, across shards, in both types, are what the network gives for those images alone."""
    data = open_labelled(classes(tmp_path / "set", {"red": 60, "green": 35}))
    assert len(data.train) > 64  # two shards
    exact, _ = examined(backbone, data, Knn(ks=(1,)), tmp_path / "store")
    half, _ = examined(backbone, data, Knn(ks=(1,), dtype="float16"), tmp_path / "store")
    chosen = [0, 63, 64, 75]
    pixels = [np.array(backbone.preprocessing.geometry(data.train[i].load())) for i in chosen]
    images = backbone.preprocessing.normalise(torch.from_numpy(np.stack(pixels)).permute(0, 3, 1, 2))
    tokens = backbone.module.forward_intermediates(  # type: ignore[operator]
        images, intermediates_only=True, norm=False, return_prefix_tokens=True
    )
    for found, tolerance in ((exact, 1e-5), (half, 2e-3)):
        features = found.features("train")
        for layer, (grid, prefix) in enumerate(tokens):
            for kind, expected in (("cls", prefix[:, 0]), ("mean", grid.mean((2, 3)))):
                stored = features.layer(kind, layer)
                for row, position in enumerate(chosen):
                    rows = read_rows(stored, position, position + 2)
                    torch.testing.assert_close(rows[0], expected[row], rtol=tolerance, atol=tolerance)
                assert len(read_rows(stored, 70, 999)) == len(data.train) - 70


def test_a_model_without_cls_is_told_by_its_mean_token(tmp_path: Path) -> None:
    data = open_labelled(classes(tmp_path / "set", {"red": 6, "green": 6}))
    backbone = tiny_backbone(depth=1, class_token=False, global_pool="avg")
    found, outcome = examined(backbone, data, Knn(), tmp_path / "store")
    assert found.features("train").kinds == ("mean",)
    assert outcome.notes == ["{model} has no CLS token: its images are told by the mean token"]


def test_broken_images_drop_out_with_their_labels(backbone: Backbone, tmp_path: Path) -> None:
    data = open_labelled(classes(tmp_path / "set", {"red": 6, "green": 6}))
    data.train[2].path.write_bytes(b"not an image")
    found, outcome = examined(backbone, data, Knn(), tmp_path / "store")
    features = LabelledFeatures.of(data, found)
    assert len(features.train_labels) == len(data.train) - 1
    assert 2 not in features.train.positions.tolist()
    assert features.train_labels.tolist() == [label for i, label in enumerate(data.train.labels) if i != 2]
    assert list(outcome.facts["skipped"]) == [data.train[2].id]


def test_pixels_alone_are_a_baseline(backbone: Backbone, tmp_path: Path) -> None:
    """Classes of different colours are told by pixels; images that are all alike are not."""
    for name, colours in (("told", ((250, 40, 40), (40, 250, 40), (40, 40, 250))), ("alike", ((90, 90, 90),) * 3)):
        generator = np.random.default_rng(0)
        for part, count in (("train", 6), ("val", 4)):
            for number, colour in enumerate(colours):
                folder = tmp_path / name / part / f"class{number}"
                folder.mkdir(parents=True)
                for i in range(count):
                    noise = generator.integers(-30, 30, (40, 48, 3))
                    pixels = np.clip(np.array(colour) + noise, 0, 255).astype(np.uint8)
                    Image.fromarray(pixels).save(folder / f"{i}.png")
        outcome = examined(backbone, open_labelled(tmp_path / name), Knn(ks=(3,)), tmp_path / f"{name}-out")[1]
        (row,) = (row for t in outcome.tables for row in t.rows(named=True) if row["measure"] == "knn_top1_pixels")
        assert (row["variant"], row["n"], row["layer"]) == ("k=3", 12, None)
        hits = outcome.maps["units.knn.pixels"]
        assert hits.mean().item() == pytest.approx(row["value"])
        assert row["value"] == 1 if name == "told" else row["value"] < 0.8
