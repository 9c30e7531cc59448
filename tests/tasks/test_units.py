"""Scores of single units: their mean is the task's score, their spread that of its bootstrap, and few are kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from vitscope.core.bootstrap import resampling_counts
from vitscope.data.keypoints import KeypointPair, KeypointSet
from vitscope.data.samples import Sample, SampleList
from vitscope.tasks.confidence import grouped_ratio
from vitscope.tasks.keypoints import same_place
from vitscope.tasks.retrieval import average_precision, chance_precision
from vitscope.tasks.segmentation import SegmentationScores
from vitscope.tasks.units import MOST, in_groups, kept_units, linearised


def test_units_of_a_mean_of_ratios_have_its_mean_and_its_spread() -> None:
    generator = torch.Generator().manual_seed(0)
    n, layers = 400, 3
    points = torch.randint(3, 12, (n,), generator=generator)
    right = (torch.rand(n, layers, generator=generator) * (points.unsqueeze(1) + 1)).floor()
    groups = torch.randint(0, 4, (n,), generator=generator)
    units = linearised(in_groups(right, groups), in_groups(points, groups).unsqueeze(1))
    score = grouped_ratio(right, points, groups)
    assert torch.allclose(units.mean(0), score, atol=1e-12)
    counts = resampling_counts(n, 2000)
    drawn = torch.stack(
        [grouped_ratio(right[rows], points[rows], groups[rows]) for rows in (c.long() for c in _rows(counts))]
    )
    assert torch.allclose(units.std(0) / n**0.5, drawn.std(0), rtol=0.08)


def _rows(counts: torch.Tensor) -> list[torch.Tensor]:
    return [torch.arange(counts.shape[1]).repeat_interleave(row.long()) for row in counts]


def test_units_of_segmentation_have_the_mean_iou_as_their_mean() -> None:
    generator = torch.Generator().manual_seed(0)
    true = torch.randint(0, 9, (20, 5), generator=generator).double()
    true[:, 4] = 0  # a class that nobody shows
    right = true.unsqueeze(1) * torch.rand(20, 2, 5, generator=generator)
    told = right + torch.rand(20, 2, 5, generator=generator)
    scores = SegmentationScores(right, told, true)
    assert torch.allclose(scores.units().mean(0), scores.miou()[0], atol=1e-12)
    common = scores.of_commonest()
    share = float(true.sum(0).max() / true.sum())
    assert common.units().mean().item() == pytest.approx(share / 4)  # one class of four has any


def test_chance_of_retrieval_is_the_mean_over_random_orders() -> None:
    generator = np.random.default_rng(0)
    drawn = [average_precision(np.sort(generator.permutation(30)[:4]), 4) for _ in range(20_000)]
    error = np.std(drawn) / np.sqrt(len(drawn))
    assert chance_precision(4, 30) == pytest.approx(np.mean(drawn), abs=4 * error)
    assert chance_precision(5, 5) == 1


def test_the_same_place_of_another_frame() -> None:
    images = SampleList([Sample("a", Path("a")), Sample("b", Path("b"))], origin="made")
    pair = KeypointPair("p", "cat", 0, 1, ((10.0, 20.0),), ((20.0, 20.0),), (0.0, 0.0, 50.0, 50.0))
    data = KeypointSet("pairs", images, ((100, 50), (50, 100)), (pair,))
    assert same_place(data)[0].tolist() == [[[20.0, 10.0]]]


def test_all_models_keep_the_same_of_many_units() -> None:
    total = 3 * MOST
    first = kept_units("knn", torch.ones(total, 2, dtype=torch.bool), torch.tensor(0.1), torch.arange(total), total)
    some = torch.arange(1, total)  # one image could not be read
    second = kept_units("knn", torch.zeros(total - 1, 2), torch.tensor(0.1), some, total)
    assert first["units.knn"].dtype == torch.uint8
    assert first["units.knn"].shape == (MOST, 2)
    assert set(first["units.knn.ids"].tolist()) - set(second["units.knn.ids"].tolist()) <= {0}
    assert len(second["units.knn.floor"]) == len(second["units.knn.ids"]) == len(second["units.knn"])
