"""Matching between tokens against feature maps that are really enlarged, in float64."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from vitscope.tasks.matching import best_matches, sample, squared_lengths

SIZE = (24, 36)  # pixels
GRID = (4, 6)  # tokens of six pixels


def maps(seed: int, layers: int = 2, width: int = 5) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(layers, *GRID, width, generator=generator, dtype=torch.float64)


def enlarged(features: torch.Tensor) -> torch.Tensor:
    """(L, h, w, D) -> (L, H, W, D), bilinear, pixel centres."""
    return F.interpolate(features.permute(0, 3, 1, 2), size=SIZE, mode="bilinear", align_corners=False).permute(
        0, 2, 3, 1
    )


def cells(pixels: torch.Tensor) -> torch.Tensor:
    return (pixels.double() + 0.5) / 6 - 0.5


def test_lengths_of_interpolated_features() -> None:
    features = maps(0)
    found = squared_lengths(features, cells(torch.arange(24)), cells(torch.arange(36)))
    torch.testing.assert_close(found, enlarged(features).square().sum(-1))


def test_sampling_is_grid_sample() -> None:
    features, points = maps(1), torch.tensor([[0.0, 0.0], [3.2, 20.9], [35.0, 23.0], [17.5, 11.25]]).double()  # x, y
    found = sample(features, cells(points[:, 1]), cells(points[:, 0]))
    where = (2 * (points + 0.5) / torch.tensor([36, 24]) - 1).expand(2, 1, -1, -1)
    expected = F.grid_sample(features.permute(0, 3, 1, 2), where, align_corners=False, padding_mode="border")
    torch.testing.assert_close(found, expected[:, :, 0].permute(0, 2, 1))


@pytest.mark.parametrize("renormalise", [True, False])
def test_best_match_over_every_pixel(renormalise: bool) -> None:
    source, target = maps(2), maps(3)
    queries = sample(source, cells(torch.tensor([3, 12.5, 20])), cells(torch.tensor([5.0, 30, 17.2])))
    rows, columns = torch.arange(2, 20), torch.arange(36)  # the rest is padding
    found = best_matches(queries, target, cells(rows), cells(columns), renormalise=renormalise)
    unit = F.normalize(enlarged(target), dim=-1)
    dense = unit if renormalise else enlarged(F.normalize(target, dim=-1))
    cosine = torch.einsum("lkd,lhwd->lkhw", queries, dense[:, 2:20])
    best = cosine.flatten(2).argmax(-1)
    assert torch.equal(found, torch.stack([best // 36, best % 36], -1))
