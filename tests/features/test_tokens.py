"""Tokens that were made to have a known norm, likeness, share of position, frequency and spectrum."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from vitscope.data.batches import Batch
from vitscope.features.outliers import norm_histogram, outlier_cut
from vitscope.features.spectrum import eigenvalues, rankme, spectrum, spectrum_slope
from vitscope.features.token_analysis import beyond, norm_summaries
from vitscope.features.tokens import (
    TokenRows,
    TokenStatistic,
    high_over_low,
    likeness_without_position,
    position_share,
    sampled_places,
)
from vitscope.models.layout import TokenLayout

LAYOUT = TokenLayout((8, 8))


def seen(x: Tensor, layout: TokenLayout = LAYOUT) -> TokenRows:
    """One layer of tokens (B, T, D), all images in one block."""
    statistic = TokenStatistic(layout, 1, block=len(x))
    statistic.begin(Batch(torch.empty(len(x), 0), torch.arange(len(x)), [str(i) for i in range(len(x))], None, None))
    statistic.tokens(0, x)
    statistic.end()
    return statistic.result()


def noise(*size: int, seed: int = 0) -> Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed))


def share_of(x: Tensor) -> tuple[float, float, float]:
    rows = seen(x)
    value, low, high = position_share(rows.power, rows.shared, rows.shared_mean)
    return value.item(), low.item(), high.item()


def test_a_token_of_ten_times_the_norm_is_the_only_outlier() -> None:
    x = torch.nn.functional.normalize(noise(40, 65, 16), dim=-1) * (1 + 0.1 * noise(40, 65, 1, seed=1).abs())
    x[:, 1 + 9] *= 10
    norm = seen(x).norm  # (n, 1, T)
    cut = outlier_cut(norm_histogram(norm[..., 1:]))
    assert 1.6 < cut < 10
    outliers = beyond(norm[..., 1:], torch.tensor([cut]))
    assert outliers.sum((0, 1)).nonzero().flatten().tolist() == [9]
    assert outliers.double().mean().item() == pytest.approx(1 / 64)
    assert (norm_summaries(norm, LAYOUT)["largest"] > 8).all()


@pytest.mark.parametrize("seed", range(5))
def test_one_hill_has_no_outliers_however_long_its_tail(seed: int) -> None:
    generator = np.random.default_rng(seed)
    for norms in (generator.lognormal(1, 0.5, 12000), generator.normal(50, 5, 12000), generator.pareto(3, 12000) + 1):
        assert math.isnan(outlier_cut(norm_histogram(torch.from_numpy(norms))))


def test_constant_and_empty_norms_have_no_outliers() -> None:
    assert math.isnan(outlier_cut(norm_histogram(torch.full((100,), 3.0))))
    assert math.isnan(outlier_cut(norm_histogram(torch.zeros(100))))


def test_pure_position_is_all_of_the_variance() -> None:
    value, low, _ = share_of(noise(1, 65, 16).expand(12, 65, 16))
    assert value == pytest.approx(1, abs=1e-4)
    assert low == pytest.approx(1, abs=1e-3)


def test_half_position_half_content() -> None:
    field = noise(1, 65, 64)
    _, low, high = share_of(field + noise(64, 65, 64, seed=1))
    position = field[0, 1:].var(0, correction=0).sum().item()
    expected = position / (position + 64)  # content has a variance of 1 in each of 64 channels
    assert expected == pytest.approx(0.5, abs=0.02)
    assert low < expected < high
    assert high - low < 0.03


def test_content_alone_has_no_position_though_images_are_few() -> None:
    values = [share_of(noise(8, 65, 64, seed=seed))[0] for seed in range(8)]
    assert np.mean(values) < 0.005  # the square of a mean over 8 images would say 1/8


def test_an_offset_of_all_tokens_is_no_position() -> None:
    value, _, _ = share_of(5 + noise(16, 65, 16))
    assert value < 0.02


def without_position(x: Tensor) -> tuple[float, float, float]:
    rows = seen(x)
    value, low, high = likeness_without_position(
        rows.power, rows.shared, rows.mean_power, rows.shared_mean, LAYOUT.spatial
    )
    return value.item(), low.item(), high.item()


def test_what_patches_have_in_common_beside_position() -> None:
    """A field of position, a vector for each image and one for each patch, of variances 9, 1 and 3: 1 / (1 + 3)."""
    field, image, patch = 3 * noise(1, 65, 64), noise(200, 1, 64, seed=1), 3**0.5 * noise(200, 65, 64, seed=2)
    value, low, high = without_position(field + image + patch)
    assert low < 0.25 < high
    assert value == pytest.approx(0.25, abs=0.02)
    assert high - low < 0.05
    assert without_position(field + image)[0] == pytest.approx(1, abs=0.01)
    assert without_position(field + patch)[0] == pytest.approx(0, abs=0.01)
    assert math.isnan(without_position(field.expand(12, 65, 64))[0])  # position is all there is


def test_taking_position_away_is_what_loops_over_pairs_do() -> None:
    x = (noise(1, 65, 8) + noise(5, 1, 8, seed=1) + noise(5, 65, 8, seed=2)).double()
    patches = x[:, 1:]
    n, count = len(patches), LAYOUT.spatial
    every = torch.einsum("ipd,jqd->ipjq", patches, patches)
    other_image = ~torch.eye(n, dtype=torch.bool)[:, None, :, None].expand_as(every)
    other_place = ~torch.eye(count, dtype=torch.bool)[None, :, None, :].expand_as(every)
    alike = every[~other_image & other_place].mean() - every[other_image & other_place].mean()
    expected = alike / (every[~other_image & ~other_place].mean() - every[other_image & ~other_place].mean())
    assert without_position(x.float())[0] == pytest.approx(expected.item(), abs=1e-4)


def test_cosines_of_known_tokens() -> None:
    x = torch.zeros(1, 65, 2)
    x[:, 0, 0] = 3  # CLS points right
    x[:, 1:33, 0] = 2  # so does a half of the patches; the others point up
    x[:, 33:, 1] = 5
    rows = seen(x)
    assert rows.cls_patch is not None
    assert rows.cls_patch.item() == pytest.approx(0.5)
    assert rows.patch_patch.item() == pytest.approx(2 * 32 * 31 / (64 * 63))


def test_frequency_of_noise_waves_and_a_constant() -> None:
    assert abs(high_over_low(noise(400, 64, 32), (8, 8)).mean().item()) < 0.02
    i, j = torch.arange(8).view(8, 1), torch.arange(8)
    board = (1 - 2 * ((i + j) % 2)).float().reshape(1, 64, 1)  # the highest frequency, of amplitude 1
    assert high_over_low(3 * board + 1.0, (8, 8)).item() == pytest.approx(math.log(3), abs=0.01)
    flat = high_over_low(torch.ones(1, 64, 4), (8, 8)).item()
    assert flat == pytest.approx(math.log(1e-3 / (8 + 1e-3)))  # nothing but what zero counts


def test_frequency_agrees_with_numpy_on_an_odd_grid() -> None:
    x = noise(3, 35, 8).double()
    fourier = np.abs(np.fft.fft2(x.numpy().reshape(3, 5, 7, 8), axes=(1, 2)))
    expected = (np.log(fourier[:, 2, 3]) - np.log(fourier[:, 0, 0])).mean(-1)
    np.testing.assert_allclose(high_over_low(x, (5, 7)).numpy(), expected, atol=0.02)


def test_rankme_and_slope_of_known_spectra() -> None:
    n, d = 400, 60
    basis, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(n, d + 1)) @ np.eye(d + 1))
    basis = np.linalg.qr(basis - basis.mean(0))[0][:, :d]  # orthonormal columns of mean 0
    powers = np.arange(1, d + 1) ** -1.2
    values = eigenvalues(torch.from_numpy(basis * np.sqrt(powers)))
    np.testing.assert_allclose(values.numpy(), powers, rtol=1e-9)
    assert spectrum_slope(values) == pytest.approx(1.2)
    assert rankme(eigenvalues(torch.from_numpy(basis))) == pytest.approx(d)


def test_the_interval_of_a_spectrum_covers_other_draws() -> None:
    scale = torch.arange(1, 33).float() ** -0.5
    draws = [spectrum(noise(256, 32, seed=seed) * scale) for seed in range(30)]
    centre = torch.stack([value for value, _ in draws]).mean(0)
    covered = torch.stack([(value - centre).abs() < reach for value, reach in draws]).double().mean(0)
    assert (covered > 0.75).all()


def test_sampled_places_are_distinct_and_spread() -> None:
    places = sampled_places(torch.arange(196), 196, 4)
    assert all(len(set(row)) == 4 for row in places.tolist())
    assert len(set(places[:, 0].tolist())) == 196
