"""Shape or texture: planted features, chance, intervals, and rendered images whose cues are in conflict."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import vitscope
from vitscope.menagerie import Amounts, export
from vitscope.tasks.shape_or_texture import answers, shape_share, share_by_chance

CLASSES = 5
LABELS = torch.arange(CLASSES).repeat(30)
PAIRS = torch.tensor([(s, t) for s in range(CLASSES) for t in range(CLASSES) if s != t])


def planted(shape: Tensor, texture: Tensor, weight: float) -> Tensor:
    """Features of two blocks: what the shape is, and what the texture is; with a little noise."""
    cues = [F.one_hot(cue, CLASSES).float() for cue in (shape, texture)]
    noise = 0.05 * torch.randn(len(shape), 2 * CLASSES, generator=torch.Generator().manual_seed(0))
    return torch.cat([weight * cues[0], (1 - weight) * cues[1]], 1) + noise


def share(weight: float) -> float:
    bank, asked = planted(LABELS, LABELS, weight), planted(PAIRS[:, 0], PAIRS[:, 1], weight)
    told = answers([bank], LABELS, [asked])
    value, (low, high) = shape_share(told == PAIRS[:, :1], told == PAIRS[:, 1:])
    assert low <= value <= high
    return float(value)


def test_features_of_pure_shape_and_of_pure_texture() -> None:
    assert share(1.0) == 1.0
    assert share(0.0) == 0.0
    assert share(0.8) == 1.0  # the stronger cue wins
    assert 0.2 < share(0.5) < 0.8


def test_shares_count_only_what_either_cue_decided() -> None:
    by_shape = torch.tensor([[1, 0], [1, 0], [1, 0], [0, 0], [0, 0]], dtype=torch.bool)
    by_texture = torch.tensor([[0, 0], [0, 0], [0, 0], [1, 0], [0, 0]], dtype=torch.bool)
    value, interval = shape_share(by_shape, by_texture)
    assert value[0] == 0.75
    assert value[1].isnan()
    assert interval[:, 1].isnan().all()


def test_the_interval_is_that_of_a_share_of_the_decided() -> None:
    """With all images decided, resampling a share is binomial: its deviation is sqrt(p (1 - p) / n)."""
    n = 400
    by_shape = torch.arange(n)[:, None] < 0.3 * n
    value, (low, high) = shape_share(by_shape, ~by_shape)
    assert value.item() == pytest.approx(0.3)
    assert (high - low).item() == pytest.approx(2 * 1.96 * np.sqrt(0.3 * 0.7 / n), rel=0.1)


def test_chance_follows_how_common_classes_are() -> None:
    shapes, textures = PAIRS.T
    assert share_by_chance(LABELS, shapes, textures).item() == pytest.approx(0.5)
    labels = torch.tensor([0, 0, 0, 1])
    assert share_by_chance(labels, torch.tensor([0]), torch.tensor([1])).item() == 0.75


def test_rendered_conflicts_at_every_layer(tmp_path: Path) -> None:
    nothing = dict.fromkeys(("val", "coco", "parts", "individuals", "pairs", "videos"), 0)
    export(tmp_path / "world", amounts=Amounts(train=96, conflict=64, **nothing))
    world = tmp_path / "world/imagefolder"
    results = vitscope.evaluate("zoo/dino", on=vitscope.conflict(world))
    rows = results["shape_share"].filter(variant="cls")
    assert rows["layer"].to_list() == list(range(1, 13))
    assert set(rows["n"]) == {64}
    assert rows["value"].is_between(0, 1).all()
    assert results["shape_share_chance"]["value"].item() == pytest.approx(0.5)
    for row in rows.iter_rows(named=True):
        here = {"variant": "cls", "layer": row["layer"]}
        shape, texture = (results[f"{cue}_decisions"].filter(**here)["value"].item() for cue in ("shape", "texture"))
        assert row["value"] == pytest.approx(shape / (shape + texture))
    results.write_report(tmp_path / "page.html")
    assert "shape_share" in (tmp_path / "page.html").read_text()
