"""The taxonomy on constructed attention with a known answer: noise, borders, grids of many sizes, and stability."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.attention.constructed import (
    along_column,
    along_row,
    gaussian,
    noisy,
    places,
    shifted,
    uniform,
    with_prefix,
)
from tests.conftest import make_batch
from vitscope.attention.aligned import align, group_of, sources_per_offset
from vitscope.attention.analysis import AllAttention, group_sums
from vitscope.attention.head_kinds import direction, head_kinds
from vitscope.attention.kinds import KINDS, LATE_KINDS, LocalShape, late_kind, local_kind, local_shape
from vitscope.attention.patterns import Patterns
from vitscope.models import Grid, ModelShape, resolve
from vitscope.models.layout import TokenLayout

GRIDS = [(7, 7), (8, 8), (14, 14), (28, 28), (8, 12), (16, 9)]


def kind_of(attention: Tensor, grid: Grid, prefix_mass: float = 0.0) -> tuple[str, LocalShape]:
    corrected = align(attention.double(), grid) / sources_per_offset(grid)
    return KINDS[int(local_kind(corrected, torch.tensor(prefix_mass), grid))], local_shape(corrected, grid)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize(
    ("down", "across"), [(0, -1), (0, 1), (-1, 0), (1, 0), (-1, -1), (-1, 1), (1, -1), (1, 1), (0, 3), (-2, 1)]
)
def test_offset_heads_and_their_direction(grid: Grid, noise: float, down: int, across: int) -> None:
    kind, shape = kind_of(noisy(shifted(grid, down, across), noise), grid)
    assert kind == "offset local"
    assert shape.offset.tolist() == [down, across]


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_other_kinds(grid: Grid, noise: float) -> None:
    edge = max(grid)
    known = {
        "strict local": gaussian(grid, 0.4),
        "soft local": gaussian(grid, edge / 14 + 0.5),
        "global": uniform(grid),
    }
    for expected, attention in known.items():
        assert kind_of(noisy(attention, noise), grid)[0] == expected
    for attention, heavier in ((along_row(grid), "row"), (along_column(grid), "column")):
        kind, shape = kind_of(noisy(attention, noise), grid)
        assert kind == "axial local"
        assert (shape.row > shape.column) == (heavier == "row")


@pytest.mark.parametrize("grid", GRIDS)
def test_pure_noise_is_global(grid: Grid) -> None:
    assert kind_of(noisy(uniform(grid), 1.0), grid)[0] == "global"


@pytest.mark.parametrize("grid", GRIDS)
def test_borders_do_not_make_an_offset_head(grid: Grid) -> None:
    """A head whose every token looks at the image's centre peaks at no fixed offset."""
    n = grid[0] * grid[1]
    attention = torch.zeros(n, n)
    attention[:, (grid[0] // 2) * grid[1] + grid[1] // 2] = 1
    assert kind_of(attention, grid)[0] not in ("offset local", "strict local")


def test_a_head_bound_to_cls_is_that_first() -> None:
    assert kind_of(shifted((8, 8), 0, 1), (8, 8), prefix_mass=0.7)[0] == "cls-bound"


def test_an_offset_needs_a_clear_margin_over_the_token_itself() -> None:
    for share, expected in ((0.45, "strict local"), (0.55, "soft local"), (0.7, "offset local")):
        attention = share * shifted((14, 14), 0, 1) + (1 - share) * shifted((14, 14), 0, 0)
        # on the token itself 0.55, then 0.45: the neighbour has 1.2 times as much, below the margin of 1.5; then 2.3
        assert kind_of(attention, (14, 14))[0] == expected


def test_one_dark_cell_on_an_even_ground_is_strict_and_a_neighbourhood_is_not() -> None:
    grid = (14, 14)
    alone = 0.35 * shifted(grid, 0, 0) + 0.65 * uniform(grid)  # within one step 0.35 + 9 * 0.65 / 196 = 0.38
    assert kind_of(alone, grid)[0] == "strict local"
    shared = 0.3 * shifted(grid, 0, 0) + 0.3 * shifted(grid, 0, 1) + 0.4 * uniform(grid)  # half of what is near
    assert kind_of(shared, grid)[0] == "soft local"
    faint = 0.2 * shifted(grid, 0, 0) + 0.8 * uniform(grid)  # a fifth alone is not where a head looks
    assert kind_of(faint, grid)[0] == "global"


def test_a_faint_offset_head_is_one_if_it_leaves_the_token_out() -> None:
    grid = (14, 14)
    faint = 0.12 * shifted(grid, -1, 0) + 0.88 * uniform(grid)
    assert kind_of(faint, grid)[0] == "offset local"
    assert kind_of(0.08 * shifted(grid, -1, 0) + 0.92 * uniform(grid), grid)[0] == "global"


@pytest.mark.parametrize("grid", [(14, 14), (16, 16), (28, 28)])
def test_a_wide_blob_is_soft_local_and_a_wider_one_is_global(grid: Grid) -> None:
    """Within r of a round Gaussian lie 1 - exp(-r^2 / 2 sigma^2): a half at r = 1.18 sigma, away from borders."""
    edge = grid[0]
    assert kind_of(gaussian(grid, 0.3 * edge / 1.18 * 0.9), grid)[0] == "soft local"
    assert kind_of(gaussian(grid, 0.5 * edge), grid)[0] == "global"


def stretched(grid: Grid, down: float, across: float) -> Tensor:
    """A Gaussian around the token, wider one way than the other."""
    where = places(grid).double()
    steps = (where[:, None] - where[None, :]) / torch.tensor([down, across])
    return (-steps.square().sum(-1) / 2).softmax(-1).float()


def test_a_band_is_axial_and_an_ellipse_is_not() -> None:
    grid = (14, 14)
    rows = places(grid)[:, 0]
    weight = torch.tensor([0.38, 0.31])[(rows[:, None] - rows[None, :]).abs().clamp_max(1)]
    band = weight * ((rows[:, None] - rows[None, :]).abs() <= 1)  # three rows, 0.38 of the weight in the token's own
    assert kind_of(band / band.sum(-1, keepdim=True), grid)[0] == "axial local"
    assert kind_of(stretched(grid, 1.0, 1.7), grid)[0] == "soft local"
    assert kind_of(stretched(grid, 0.5, 3.0), grid)[0] == "axial local"


def test_anisotropy_of_a_row_head_is_larger_than_of_a_round_one() -> None:
    grid = (14, 14)
    assert kind_of(noisy(along_row(grid), 0.2), grid)[1].anisotropy > 3
    assert kind_of(gaussian(grid, 2.0), grid)[1].anisotropy == pytest.approx(1, abs=0.05)


def test_directions_have_names() -> None:
    assert direction(-1, 0) == "up"
    assert direction(1, 1) == "down-right"
    assert direction(0, 4) == "4 right"
    assert direction(-2, 1) == "2 up, 1 right"


def test_late_kinds() -> None:
    looks = {
        "gini": torch.tensor([0.9, 0.3, 0.3, 0.9, 0.7]),
        "repetition": torch.tensor([0.8, 0.3, 0.1, 0.05, 0.5]),
        "centre_lift": torch.tensor([1.0, 1.8, 1.0, 1.0, 1.8]),
        "compactness": torch.tensor([0.1, 0.8, 0.4, 0.3, 0.45]),  # the last: heads that all see one small object
    }
    names = [LATE_KINDS[i] for i in late_kind(looks)]
    assert names == ["sparse-repeating", "object-centred", "diverse", "diverse", "object-centred"]
    assert late_kind({k: torch.full((1,), torch.nan) for k in looks}).tolist() == [-1]


@pytest.fixture(scope="module")
def shape() -> ModelShape:
    return resolve("random:vit_tiny_patch16_224", size=128).shape  # a grid of 8 x 8, 12 layers of 3 heads


def test_the_analysis_names_planted_heads_and_is_sure_of_them(shape: ModelShape) -> None:
    grid, layout = (8, 8), TokenLayout((8, 8), prefix=1)
    assert shape.layout == layout
    seen = AllAttention.of(shape)
    for start in range(0, 40, 4):
        seen.begin(make_batch(range(start, start + 4)))
        for layer in range(12):
            images = [
                torch.stack(
                    [
                        with_prefix(noisy(shifted(grid, 0, -1), 0.2, seed=100 * start + p), 1, 0.1),
                        with_prefix(noisy(along_row(grid), 0.2, seed=100 * start + p), 1, 0.1),
                        with_prefix(uniform(grid), 1, 0.8),
                    ]
                )
                for p in range(4)
            ]
            seen.attention(layer, torch.stack(images))
        seen.end()
    kinds = seen.kinds()
    assert [kinds.describe(0, head) for head in range(3)] == ["offset local: left", "axial local: row", "cls-bound"]
    assert kinds.stability.min() == 1.0
    assert kinds.late[0, 0] == -1
    assert kinds.late_name(11, 0) == "diverse"  # CLS looks everywhere alike
    assert kinds.late_name(0, 0) is None


def test_stability_tells_a_head_that_half_of_the_images_support(shape: ModelShape) -> None:
    grid = (8, 8)
    seen = AllAttention.of(shape)
    for start in range(0, 64, 4):
        seen.begin(make_batch(range(start, start + 4)))
        left = (start // 4) % 2 == 0  # every second group of images looks elsewhere
        head = with_prefix(shifted(grid, 0, -1) if left else uniform(grid), 1, 0.48 if left else 0.53)
        for layer in range(12):
            seen.attention(layer, head.expand(4, 3, 65, 65))
        seen.end()
    kinds = seen.kinds()
    assert 0.4 < kinds.stability[0, 0] < 0.95


def test_too_few_images_have_no_stability(shape: ModelShape) -> None:
    seen = AllAttention.of(shape)
    seen.begin(make_batch([0]))
    for layer in range(12):
        seen.attention(layer, torch.full((1, 3, 65, 65), 1 / 65))
    seen.end()
    assert seen.kinds().stability.isnan().all()


def test_means_of_groups_name_heads_as_the_images_themselves_do() -> None:
    """Of very many images only the means of the groups they were dealt into are kept."""
    generator = torch.Generator().manual_seed(0)
    study = AllAttention(TokenLayout(grid=(4, 4)), depth=4, patch=(16, 16))
    for start in range(0, 64, 16):
        study.begin(make_batch(range(start, start + 16)))
        for layer in range(4):
            study.attention(layer, (3 * torch.randn(16, 2, 17, 17, generator=generator)).softmax(-1))
        study.end()
    whole = study.kinds()
    groups = group_of(study.indices)
    sizes = groups.bincount()
    patterns = study.patterns.result()
    means = {name: group_sums([getattr(patterns, name)], groups) / sizes.view(-1, 1, 1) for name in vars(patterns)}
    mass = group_sums(study.dispersion.result().prefix_mass.split(7), groups) / sizes.view(-1, 1, 1)
    known = torch.arange(len(sizes))
    grouped = head_kinds(study.aligned.result(), mass, Patterns(**means), known, sizes=sizes)
    assert torch.equal(grouped.kind, whole.kind)
    assert torch.equal(grouped.late, whole.late)
    torch.testing.assert_close(grouped.stability, whole.stability, equal_nan=True)  # groups are resampled either way
