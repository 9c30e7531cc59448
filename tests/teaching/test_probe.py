"""A plain training loop, watched: what is written is what NumPy and scikit-learn say, and training is as without it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn

import vitscope
from tests.conftest import make_photos
from tests.teaching.tiny import squares
from vitscope import VitscopeError
from vitscope.teaching.probe import Probe

HALF = (0.5, 0.5, 0.5)


@pytest.fixture
def images() -> tuple[Tensor, Tensor]:
    """160 images of four classes."""
    stored = squares(160)
    assert stored.labels is not None
    return torch.from_numpy(np.asarray(stored.pixels)), stored.labels


def train(vit: VisionTransformer, images: Tensor, labels: Tensor, probe: Probe | None, steps: int = 5) -> list[float]:
    """Somebody's own loop: SGD on class labels, with dropout-like noise from the global generator."""
    head = nn.Linear(vit.embed_dim, 4)
    optimiser = torch.optim.SGD([*vit.parameters(), *head.parameters()], lr=0.1)
    vit.train()
    losses = []
    for step in range(steps):
        chosen = torch.randperm(len(images))[:32]
        loss = nn.functional.cross_entropy(head(vit(images[chosen] / 127.5 - 1)[:, : vit.embed_dim]), labels[chosen])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
        if probe is not None:
            probe.step(step)
    return losses


def headless(vit: VisionTransformer) -> VisionTransformer:
    vit.reset_classifier(0)
    return vit


def test_a_loop_is_watched_every_so_many_steps(
    vit: VisionTransformer, images: tuple[Tensor, Tensor], tmp_path: Path
) -> None:
    probe = vitscope.watch(headless(vit), *images, every=2, out=tmp_path, mean=HALF, std=HALF)
    train(vit, *images, probe)
    lines = [json.loads(line) for line in (tmp_path / "watch.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [0, 2, 4]
    assert lines == probe.history
    for line in lines:
        assert len(line["attention_distance"]) == 2  # layers
        assert len(line["rankme"]["cls"]) == len(line["rankme"]["patches"]) == 2
        assert [sum(heads) for heads in zip(*line["head_kinds"].values(), strict=True)] == [
            2,
            2,
        ]  # each head has a kind
    assert lines[0]["attention_distance"] != lines[-1]["attention_distance"]


def test_training_is_what_it_is_without_the_probe(
    vit: VisionTransformer, images: tuple[Tensor, Tensor], tmp_path: Path
) -> None:
    start = {name: value.clone() for name, value in headless(vit).state_dict().items()}
    torch.manual_seed(1)
    alone = train(vit, *images, None)
    vit.load_state_dict(start)
    probe = vitscope.watch(vit, *images, every=1, out=tmp_path, mean=HALF, std=HALF)
    torch.manual_seed(1)
    assert train(vit, *images, probe) == alone
    assert vit.training


def features(vit: VisionTransformer, images: Tensor) -> list[tuple[np.ndarray, np.ndarray]]:
    """CLS and mean patch token of every block, by timm's own hand."""
    with torch.no_grad():
        tokens: Any = vit.eval().forward_intermediates(
            images / 127.5 - 1, intermediates_only=True, output_fmt="NLC", return_prefix_tokens=True
        )
    return [(prefix[:, 0].numpy(), patches.mean(1).numpy()) for patches, prefix in tokens]


def test_numbers_are_those_of_numpy_and_scikit_learn(
    vit: VisionTransformer, images: tuple[Tensor, Tensor], tmp_path: Path
) -> None:
    pixels, labels = images
    probe = vitscope.watch(vit, pixels, labels, out=tmp_path, mean=HALF, std=HALF)
    record = probe.measure(7)
    known, asked = probe.datasets[1].train, probe.datasets[1].test  # type: ignore[attr-defined]
    train_rows, test_rows = ([int(name) for name in part.ids] for part in (known, asked))
    assert not set(train_rows) & set(test_rows)
    assert len(test_rows) == 32  # a fifth
    for layer, (cls, mean) in enumerate(features(vit, pixels)):
        values = np.linalg.svd(cls.astype(float) - cls.mean(0, dtype=float), compute_uv=False)
        share = values / values.sum()
        assert record["rankme"]["cls"][layer] == pytest.approx(np.exp(-(share * np.log(share)).sum()), rel=1e-3)
        for name, found in (("cls", cls), ("patches", mean)):
            voter = KNeighborsClassifier(
                20, metric="cosine", algorithm="brute", weights=lambda distance: np.exp((1 - distance) / 0.07)
            ).fit(found[train_rows], labels[train_rows].numpy())
            expected = voter.score(found[test_rows], labels[test_rows].numpy())
            assert record["knn_top1"][name][layer] == pytest.approx(expected, abs=1e-4)


def test_a_network_that_looks_evenly_has_the_distance_of_even_attention(
    vit: VisionTransformer, images: tuple[Tensor, Tensor], tmp_path: Path
) -> None:
    for block in vit.blocks:
        nn.init.zeros_(block.attn.qkv.weight)
        nn.init.zeros_(block.attn.qkv.bias)
    record = vitscope.watch(vit, images[0], out=tmp_path).measure(0)
    points = np.stack(np.meshgrid(range(4), range(4), indexing="ij"), -1).reshape(-1, 2) / 3
    even = np.linalg.norm(points[:, None] - points[None], axis=-1).mean()
    assert record["attention_distance"] == pytest.approx([even, even], abs=1e-4)
    assert record["head_kinds"]["global"] == [2, 2]
    assert "knn_top1" not in record  # without labels


def test_a_folder_of_classes_is_labelled(vit: VisionTransformer, tmp_path: Path) -> None:
    folder = make_photos(tmp_path / "photos", count=40)
    record = vitscope.watch(vit, folder, out=tmp_path / "out", limit=24).measure(0)
    assert len(record["knn_top1"]["cls"]) == 2


def test_writers_are_told_the_same_numbers(
    vit: VisionTransformer, images: tuple[Tensor, Tensor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TensorBoard itself reads its files; W&B has a stand-in with its signature, for it would ask for an account."""
    told: list[tuple[str, float, int]] = []

    def log(values: dict[str, float]) -> None:
        step = int(values.pop("vitscope/step"))
        told.extend((name, value, step) for name, value in values.items())

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(run=object(), log=log))
    record = vitscope.watch(vit, *images, out=tmp_path).measure(30)
    events = EventAccumulator(str(tmp_path)).Reload()
    for name, value, step in told:
        (event,) = events.Scalars(name)
        assert (event.value, event.step) == (pytest.approx(value), step)
    assert {name for name, _, _ in told} == set(events.Tags()["scalars"])
    assert ("vitscope/attention_distance/layer-02", record["attention_distance"][1], 30) in told
    assert ("vitscope/knn_top1/cls/layer-01", record["knn_top1"]["cls"][0], 30) in told


def test_bad_input_is_told_before_training_starts(vit: VisionTransformer, images: tuple[Tensor, Tensor]) -> None:
    pixels, labels = images
    for arguments, said in (
        ((vit, pixels.float()), "uint8"),
        ((vit, pixels, labels[:3]), "as many labels"),
        ((vit, "photos", labels), "class folders"),
        ((vit, pixels, labels, 0), "every"),
        ((nn.Linear(2, 2), pixels), "watched"),
    ):
        with pytest.raises(VitscopeError, match=said):
            vitscope.watch(*arguments)
