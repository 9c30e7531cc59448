"""k-NN: votes and ties by hand, stored features, and labels that do not fit."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from tests.tasks.conftest import classes, tiny_backbone
from vitscope.errors import BadData
from vitscope.models.backbone import Backbone
from vitscope.results import Label
from vitscope.tasks import knn, linear_probe
from vitscope.tasks.knn import votes, within_top
from vitscope.tasks.labelled import extract, open_labelled
from vitscope.tasks.nearest import nearest, read_rows


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


def test_fewer_pictures_than_neighbours() -> None:
    train, labels = torch.eye(6)[None], torch.tensor([0, 0, 1, 1, 2, 2])
    scores = knn.evaluate(list(train), labels, list(train), labels)
    assert scores.ks == (6,)  # all there are
    assert scores.top1.shape == (6, 1, 1)
    assert scores.neighbours.shape == (6, 1, 6)
    assert knn.evaluate(list(train), labels, list(train), labels, config=knn.KnnConfig(ks=(1, 10))).top1.all()


def test_a_class_without_examples_is_told() -> None:
    with pytest.raises(BadData, match=r"1 of the classes asked for \(first: number 3\) have no labelled picture"):
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
    features = extract(backbone, data)
    found = knn.run(backbone, data, features=features)
    assert set(found) == {"cls", "mean"}
    assert found["mean"].top1.float().mean() > 0.8  # colours tell these classes apart, in any network
    assert torch.equal(knn.run(backbone, data)["cls"].top1, found["cls"].top1)
    assert linear_probe.run(backbone, data, features=features)["mean"].top1.float().mean() > 0.8
    assert features.test_labels.tolist() == [0, 0, 0, 2, 2, 2]  # classes go by name: blue 0, green 1, red 2


def test_features_in_a_store_are_the_same_and_used_again(backbone: Backbone, tmp_path: Path) -> None:
    root = classes(tmp_path / "set", {"red": 7, "green": 6})
    data = open_labelled(root)
    in_memory, stored = extract(backbone, data), extract(backbone, data, store=tmp_path / "features")
    for kind in ("cls", "mean"):
        for a, b in zip(in_memory.train[kind], stored.train[kind], strict=True):
            assert len(a) == len(b)
            torch.testing.assert_close(read_rows(b, 2, 9), read_rows(a, 2, 9), rtol=1e-3, atol=1e-3)
            assert len(read_rows(b, 9, 99)) == len(a) - 9
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "features").rglob("*.safetensors")}
    again = extract(backbone, data, store=tmp_path / "features")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "features").rglob("*.safetensors")} == files
    assert torch.equal(
        knn.run(backbone, data, features=again)["cls"].top1, knn.run(backbone, data, features=stored)["cls"].top1
    )


def test_a_model_without_cls_is_told_by_its_mean_token(tmp_path: Path) -> None:
    data = open_labelled(classes(tmp_path / "set", {"red": 6, "green": 6}))
    found = knn.run(tiny_backbone(depth=1, class_token=False, global_pool="avg"), data)
    assert set(found) == {"mean"}


def test_broken_pictures_drop_out_with_their_labels(backbone: Backbone, tmp_path: Path) -> None:
    root = classes(tmp_path / "set", {"red": 6, "green": 6})
    data = open_labelled(root)
    victim = data.train[2]
    victim.path.write_bytes(b"not an image")
    features = extract(backbone, data)
    assert len(features.train_labels) == len(data.train) - 1
    assert 2 not in features.train_positions.tolist()
    expected = [label for i, label in enumerate(data.train.labels) if i != 2]
    assert features.train_labels.tolist() == expected
