"""TokenCut on planted objects."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from vitscope.tasks.discovery import discovery_scores, token_cut

GRID = (14, 14)


def planted(top: int, left: int, high: int, wide: int, noise: float = 0.3, seed: int = 0) -> tuple[Tensor, np.ndarray]:
    """Patch tokens of a box in front of a background, each around a direction of its own."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.zeros(GRID, dtype=torch.bool)
    mask[top : top + high, left : left + wide] = True
    directions = torch.eye(16)[:2]
    tokens = directions[mask.flatten().long()] + noise * torch.randn(196, 16, generator=generator) / 4
    return tokens, mask.numpy()


@pytest.mark.parametrize("place", [(2, 3, 5, 6), (0, 0, 4, 4), (8, 9, 6, 5), (6, 6, 2, 3)])
def test_a_planted_box_is_found_exactly(place: tuple[int, int, int, int]) -> None:
    tokens, mask = planted(*place)
    assert (token_cut(tokens, GRID) == mask).all()
    assert discovery_scores(token_cut(tokens, GRID), mask.repeat(16, 0).repeat(16, 1)[None]) == (1.0, 1.0)


def test_of_two_apart_only_the_one_around_the_strongest_is_taken() -> None:
    tokens, first = planted(1, 1, 4, 4)
    tokens[[13 * 14 + 13, 13 * 14 + 12]] = tokens[first.flatten()][:2]  # two patches of it far away
    found = token_cut(tokens, GRID)
    assert (found == first).all() or found.sum() == 2


def test_scale_does_not_matter() -> None:
    tokens, _ = planted(2, 3, 5, 6, noise=1.0)
    assert (token_cut(tokens, GRID) == token_cut(1000 * tokens, GRID)).all()


def test_a_box_beside_the_object_has_not_found_it() -> None:
    found = np.zeros(GRID, bool)
    found[:3, :3] = True
    truth = np.zeros((1, 224, 224), bool)
    truth[0, 100:, 100:] = True
    assert discovery_scores(found, truth) == (0.0, 0.0)


def test_the_best_of_several_objects_counts() -> None:
    found = np.zeros(GRID, bool)
    found[:3, :4] = True
    truth = np.zeros((2, 224, 224), bool)
    truth[0, 200:, 200:] = True
    truth[1, : 3 * 16, : 3 * 16] = True
    assert discovery_scores(found, truth) == (1.0, 0.75)
