"""Principal components as colours: planted objects, scikit-learn's components, signs that stay."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.decomposition import PCA
from torch import Tensor
from torch.nn import functional as F

from vitscope.features.pictures import DARKEST, as_colours, likeness, oriented, pca_colours, principal

GRID = (8, 8)


def planted(seed: int = 0, width: int = 32) -> tuple[Tensor, Tensor]:
    """Three images with an object in the middle, made of an upper and a lower half; the same directions in all."""
    generator = torch.Generator().manual_seed(seed)
    kind = torch.zeros(GRID, dtype=torch.int64)
    kind[2:4, 2:6], kind[4:6, 2:6] = 1, 2
    directions = torch.linalg.qr(torch.randn(width, 3, generator=generator)).Q.T
    directions = directions.clone()
    directions[1:] += 3 * directions[1] + 3 * directions[2]  # halves have much in common that the background lacks
    noise = 0.05 * torch.randn(3, 64, width, generator=generator)
    return directions[kind.flatten()] + noise, kind.flatten()


def test_components_are_scikit_learns() -> None:
    tokens, _ = planted()
    ours = principal(tokens).flatten(0, 1).numpy()
    normed = F.layer_norm(tokens.double(), (32,)).flatten(0, 1).numpy()
    theirs = PCA(4).fit_transform(normed)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-6)


def test_more_channels_than_patches_give_the_same() -> None:
    tokens, _ = planted(width=32)
    wide = F.pad(F.layer_norm(tokens, (32,)), (0, 968))  # 1000 channels, 192 patches
    flat = F.layer_norm(wide.double(), (1000,)).flatten(0, 1)
    theirs = PCA(4, svd_solver="full").fit_transform(flat.numpy())
    np.testing.assert_allclose(principal(wide).flatten(0, 1).abs().numpy(), np.abs(theirs), atol=1e-5)


def test_an_object_has_one_colour_in_all_images_and_the_background_is_black() -> None:
    tokens, kind = planted()
    colours = pca_colours([tokens], GRID)[:, 0].flatten(1, 2).float()  # (3, 64, 3)
    assert (colours[:, kind == 0] == 0).all()
    assert (colours[:, kind > 0] >= DARKEST - 1).all()
    halves = [colours[:, kind == half] for half in (1, 2)]
    between = (halves[0].mean((0, 1)) - halves[1].mean((0, 1))).norm()
    first = [half[..., 0].mean(1) for half in halves]  # its strongest colour, image by image
    assert between > 100
    assert all(values.max() - values.min() < 30 for values in first)


def test_signs_do_not_depend_on_the_run() -> None:
    tokens, _ = planted()
    components = principal(tokens)
    flipped = components * torch.tensor([-1.0, 1.0, -1.0, -1.0])
    assert torch.equal(as_colours(oriented(components, GRID)), as_colours(oriented(flipped, GRID)))
    like = oriented(components, GRID)
    assert torch.allclose(oriented(flipped, GRID, like), like)


def test_position_can_be_taken_away() -> None:
    field = torch.randn(1, 64, 16, generator=torch.Generator().manual_seed(1)).expand(4, 64, 16)
    assert principal(field, without_position=True).abs().max() < 1e-9
    assert principal(field).abs().max() > 1


def test_the_foreground_stays_the_foreground_without_position() -> None:
    """Objects elsewhere in each image: with the mean of each position gone, edges no longer tell the background."""
    generator = torch.Generator().manual_seed(0)
    for seed in range(6):
        object_, ground = torch.linalg.qr(torch.randn(16, 2, generator=generator.manual_seed(seed))).Q.T
        there = torch.zeros(9, *GRID, dtype=torch.bool)
        for image in range(9):
            row, column = 1 + 2 * (image // 3), 1 + 2 * (image % 3)
            there[image, row : row + 2, column : column + 2] = True
        there = there.flatten(1)
        tokens = torch.where(there[..., None], object_, ground) + 0.02 * torch.randn(9, 64, 16, generator=generator)
        lit = pca_colours([tokens], GRID, without_position=True)[:, 0].flatten(1, 2).amax(-1) > 0
        assert lit[there].all()
        assert lit[~there].double().mean() < 0.5


def test_likeness_to_a_patch() -> None:
    tokens = torch.zeros(2, 4, 2)
    tokens[..., 0] = 1
    tokens[1, 3] = torch.tensor([0.0, 5.0])
    tokens[1, 2] = torch.tensor([-2.0, 0.0])
    assert likeness(tokens, 0, 0).tolist() == [[1, 1, 1, 1], [1, 1, -1, 0]]
