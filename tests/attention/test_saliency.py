"""Saliency: masks worked out by hand, both protocols, best heads, pictures without objects, merging."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from sklearn.metrics import average_precision_score
from torch import Tensor

from tests.conftest import make_batch, random_attention, stream
from tests.support.signals import reduced
from vitscope.attention.saliency import (
    Saliency,
    SaliencyScores,
    SaliencyStatistic,
    average_precision,
    best_heads,
    grid_mask,
    iou,
    saliency_tables,
    top_mass_mask,
)
from vitscope.data.batches import Batch, BatchAnnotations
from vitscope.models.layout import TokenLayout

SOURCES = ("cls", "spatial", "centre")


def test_the_crossing_token_is_kept() -> None:
    maps = torch.tensor([[0.5, 0.3, 0.2], [0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])
    assert top_mass_mask(maps).tolist() == [[True, True, False], [True, False, False], [False, False, True]]


def test_the_mask_does_not_depend_on_the_scale_of_the_map() -> None:
    maps = torch.rand(5, 30)
    assert torch.equal(top_mass_mask(maps), top_mass_mask(7 * maps))


def test_an_empty_map_predicts_nothing() -> None:
    assert not top_mass_mask(torch.zeros(4)).any()


def test_uniform_attention_needs_sixty_percent_of_the_tokens() -> None:
    assert top_mass_mask(torch.full((10,), 0.1, dtype=torch.float64)).sum().item() == 6


def test_iou_by_hand() -> None:
    predicted = torch.tensor([[True, True, False, False], [False] * 4])
    truth = torch.tensor([[True, False, True, False], [False] * 4])
    assert iou(predicted, truth).tolist() == pytest.approx([1 / 3, 0])


def test_average_precision_is_scikit_learns() -> None:
    generator = torch.Generator().manual_seed(0)
    maps = torch.rand(6, 5, 49, generator=generator)
    maps[1] = (maps[1] * 4).floor()  # many ties
    maps[2] = 1 / 49  # nothing but ties
    truth = torch.rand(6, 1, 49, generator=generator) < torch.linspace(0.05, 0.9, 6).view(6, 1, 1)
    truth[:, 0, 3] = True
    expected = [
        [average_precision_score(true[0].numpy(), one.numpy()) for one in image]
        for true, image in zip(truth, maps, strict=True)
    ]
    wanted = torch.tensor(expected, dtype=torch.float32)  # scikit-learn 1.4 gives float64, today's what it was given
    torch.testing.assert_close(average_precision(maps, truth), wanted, rtol=1e-5, atol=1e-6)
    even = truth[2].float().mean()  # a map that knows nothing scores the objects' share
    torch.testing.assert_close(average_precision(maps[2], truth[2]), even.expand(5), rtol=1e-5, atol=1e-6)


def test_average_precision_at_its_ends() -> None:
    maps = torch.tensor([0.4, 0.3, 0.2, 0.1])
    assert average_precision(maps, torch.tensor([True, True, False, False])).item() == 1
    # the only true token is last of four
    assert average_precision(maps, torch.tensor([False, False, False, True])).item() == pytest.approx(1 / 4)
    assert average_precision(maps, torch.zeros(4, dtype=torch.bool)).item() == 0


def object_at(top: int, left: int, bottom: int, right: int, size: int = 16) -> Tensor:
    coverage = torch.zeros(1, size, size)
    coverage[0, top:bottom, left:right] = 1
    return coverage


def cells(mask: Tensor) -> list[int]:
    return mask.nonzero().flatten().tolist()


def test_half_a_cell_is_foreground_only_if_it_is_half_covered() -> None:
    # cells of 4 x 4 pixels; the object covers one cell, half of the next, a quarter of another
    coverage = object_at(0, 0, 4, 6) + object_at(8, 8, 10, 10)
    assert cells(grid_mask(coverage, (4, 4))) == [0, 1]


def test_an_object_smaller_than_a_cell_does_not_vanish() -> None:
    assert cells(grid_mask(object_at(9, 9, 11, 10), (4, 4))) == [10]


def test_a_small_object_does_not_vanish_beside_a_large_one() -> None:
    large, small = object_at(0, 0, 8, 8), object_at(13, 14, 14, 15)
    assert cells(grid_mask(torch.cat([large, small]), (4, 4))) == [0, 1, 4, 5, 15]
    across = object_at(11, 11, 13, 14)  # 6 pixels: one of cell 10, two of 11, one of 14, two of 15
    assert cells(grid_mask(torch.cat([large, small, across]), (4, 4))) == [0, 1, 4, 5, 11, 15]


def test_objects_that_fill_a_cell_together_are_foreground_there() -> None:
    left, right = object_at(0, 0, 4, 1), object_at(0, 2, 4, 3)  # a quarter of cell 0 each
    assert cells(grid_mask(torch.cat([left, right]), (4, 4))) == [0]


def test_no_object_is_no_foreground() -> None:
    assert not grid_mask(torch.zeros(1, 16, 16), (4, 4)).any()
    assert grid_mask(torch.zeros(0, 16, 16), (4, 4)).tolist() == [False] * 16


def annotated_batch(indices: Sequence[int]) -> Batch:
    """Images of 8 x 8 whose object is the top left quarter; the last of three has none."""
    batch = make_batch(indices, size=8)
    full = torch.zeros(1, 8, 8, dtype=torch.uint8)
    full[0, :4, :4] = 255
    nothing = torch.zeros(0, 8, 8, dtype=torch.uint8)
    batch.annotations = [
        BatchAnnotations(torch.zeros(len(c), dtype=torch.int64), c, reduced(c, (2, 2)))
        for c in (nothing if i % 3 == 2 else full for i in indices)
    ]
    return batch


def test_a_head_that_finds_the_object_and_one_that_does_not() -> None:
    layout = TokenLayout((2, 2), prefix=1)
    attention = torch.full((1, 1, 2, 5, 5), 0.2)
    attention[0, 0, 0, 0] = torch.tensor([0.2, 0.8, 0, 0, 0])  # head 1: CLS looks at the object
    attention[0, 0, 1, 0] = torch.tensor([0.2, 0, 0, 0, 0.8])  # head 2: at the opposite corner
    statistic = SaliencyStatistic(layout, 1)
    stream(statistic, attention, [0], annotated_batch)
    result = statistic.result()
    assert result.heads["cls", "corrected"].tolist() == [[[1.0, 0.0]]]
    # heads merged: two equal peaks of 0.4 each; 60 % needs both; one of two is right
    assert result.merged["cls", "corrected"].tolist() == [[0.5]]
    # the object is one cell of four: first in head 1, last but for ties (of 0) in head 2
    assert result.precision_heads["cls"].tolist() == [[[1.0, 0.25]]]
    assert result.precision_merged["cls"].tolist() == [[0.5]]
    assert result.precision_heads["spatial"].tolist() == [[[0.25, 0.25]]]  # even: the object's share
    assert result.share.tolist() == [0.25]
    # uniform spatial attention: three of four cells, one of them right
    assert result.heads["spatial", "corrected"].tolist() == [[[pytest.approx(1 / 3)] * 2]]


def test_pictures_without_objects_are_left_out_and_counted() -> None:
    layout = TokenLayout((2, 2), prefix=1)
    statistic = SaliencyStatistic(layout, 2)
    stream(statistic, random_attention(6, 2, 3, 5), range(6), annotated_batch)
    result = statistic.result()
    assert result.n == {"corrected": 4, "paper": 4}
    assert result.without_object == {"corrected": 2, "paper": 2}
    assert result.heads["centre", "paper"].shape == (4, 2, 3)


def test_a_model_without_cls_has_no_cls_rows() -> None:
    statistic = SaliencyStatistic(TokenLayout((2, 2), prefix=0, has_cls=False), 1)
    stream(statistic, random_attention(2, 1, 3, 4), range(2), annotated_batch)
    assert {source for source, _ in statistic.result().heads} == {"spatial", "centre"}


def seen_by(attention: Tensor, grid: tuple[int, int], cell: int) -> SaliencyScores:
    """Scores of one layer's attention (H, T, T) on an image whose object is one cell, under both protocols."""
    mask = torch.zeros(1, *grid, dtype=torch.uint8)
    mask.view(-1)[cell] = 255
    batch = make_batch([0], size=8)
    coverage = mask.repeat_interleave(4, 1).repeat_interleave(4, 2)
    batch.annotations = [BatchAnnotations(torch.zeros(1, dtype=torch.int64), coverage, mask)]
    statistic = SaliencyStatistic(TokenLayout(grid, prefix=1), 1)
    stream(statistic, attention[None, None], [0], lambda _: batch)
    return statistic.result()


def test_spatial_sources_are_summed_raw_under_paper() -> None:
    """Three sources give CLS nearly all and what is left to cell 0; one gives everything to cell 3."""
    rows = [[0.9, 0.1, 0, 0, 0]] * 3 + [[0, 0, 0, 0, 1]]
    attention = torch.tensor([[[0.2] * 5, *rows]])
    found = seen_by(attention, (2, 2), cell=3)
    assert found.heads["spatial", "corrected"].item() == 0  # three of four look at cell 0
    assert found.heads["spatial", "paper"].item() == 1  # raw, cell 0 has 0.3 and cell 3 has 1
    assert found.merged["spatial", "paper"].item() == 1


@pytest.mark.parametrize(
    ("grid", "corrected", "paper"),
    [((2, 2), 3, 0), ((4, 4), 10, 5), ((14, 14), 7 * 14 + 7, 6 * 14 + 6), ((3, 3), 4, 4), ((2, 3), 4, 1)],
)
def test_the_centre_of_an_even_grid(grid: tuple[int, int], corrected: int, paper: int) -> None:
    """Every token attends to itself alone: the cell that is seen is the source."""
    n = grid[0] * grid[1]
    attention = torch.eye(n + 1)[None]
    for cell, expected in ((corrected, (1, corrected == paper)), (paper, (corrected == paper, 1))):
        found = seen_by(attention, grid, cell)
        assert (found.heads["centre", "corrected"].item(), found.heads["centre", "paper"].item()) == expected


def test_heads_are_renormalised_before_they_are_merged_under_paper() -> None:
    """One head gives the image a tenth of itself, all to cell 0; the other nine tenths, half each to cells 1 and 2."""
    attention = torch.zeros(2, 5, 5)
    attention[0] = torch.tensor([0.9, 0.1, 0, 0, 0])
    attention[1] = torch.tensor([0.1, 0, 0.45, 0.45, 0])
    found = seen_by(attention, (2, 2), cell=0)
    # raw: .1, .45, .45, and cells 1 and 2 hold 60 %; renormalised: 1, .5, .5, and it takes cell 0 and one of the others
    for source in ("cls", "centre"):
        assert found.merged[source, "corrected"].item() == 0
        assert found.merged[source, "paper"].item() == pytest.approx(0.5)


def test_an_object_that_vanishes_under_paper_is_counted_there() -> None:
    """One pixel in a cell of 112 x 112: its share of 255 rounds to nothing in 8 bits, and `corrected` keeps it."""
    coverage = torch.zeros(1, 224, 224, dtype=torch.uint8)
    coverage[0, 50, 50] = 255
    batch = make_batch([0], size=224)
    batch.annotations = [BatchAnnotations(torch.zeros(1, dtype=torch.int64), coverage, reduced(coverage, (2, 2)))]
    statistic = SaliencyStatistic(TokenLayout((2, 2), prefix=1), 1)
    stream(statistic, torch.full((1, 1, 1, 5, 5), 0.2), [0], lambda _: batch)
    found = statistic.result()
    assert (found.n, found.without_object) == ({"corrected": 1, "paper": 0}, {"corrected": 0, "paper": 1})
    rows = [row for t in saliency_tables(found) for row in t.rows(named=True)]
    assert {(row["protocol"], row["variant"]) for row in rows if row["variant"]} == {
        ("corrected", source) for source in SOURCES
    }


def test_best_head_by_protocol() -> None:
    heads = torch.tensor([[[0.9, 0.5]], [[0.1, 0.6]], [[0.2, 0.4]]])  # (3 pictures, 1 layer, 2 heads)
    score, which = best_heads(heads, "corrected")
    assert which.tolist() == [1]  # means 0.4 and 0.5
    assert score.mean(0).tolist() == pytest.approx([0.5])
    score, _ = best_heads(heads, "paper")  # an oracle: the best of each picture
    assert score.mean(0).tolist() == pytest.approx([(0.9 + 0.6 + 0.4) / 3])


def test_another_mass_predicts_another_mask_and_says_so() -> None:
    attention = torch.zeros(1, 1, 1, 5, 5)
    attention[..., 1:] = torch.tensor([0.5, 0.3, 0.2, 0.0])  # whoever looks
    scores = {}
    for mass in (0.4, 0.6, 0.9):
        statistic = SaliencyStatistic(TokenLayout((2, 2), prefix=1), 1, mass)
        stream(statistic, attention, [0], annotated_batch)  # the object is the first cell
        scores[mass] = statistic.result()
    assert [scores[mass].heads["cls", "corrected"].item() for mass in scores] == pytest.approx([1, 1 / 2, 1 / 3])
    variants = {
        mass: {
            row["variant"]
            for t in saliency_tables(found, mass)
            for row in t.rows(named=True)
            if "iou" in row["measure"]
        }
        for mass, found in scores.items()
    }
    assert variants[0.6] == set(SOURCES)
    assert variants[0.9] == {f"{source}, mass 0.9" for source in SOURCES}
    assert Saliency().digest != Saliency(mass=0.9).digest


def test_the_best_centred_disc_stands_beside_the_heads() -> None:
    """An object of the four middle cells of 4 x 4 is exactly the smallest disc; one in a corner is met by all cells."""
    coverage = torch.zeros(2, 1, 32, 32, dtype=torch.uint8)
    coverage[0, 0, 8:24, 8:24] = 255
    coverage[1, 0, :8, :8] = 255
    for number, expected in ((0, 1.0), (1, 1 / 16)):
        batch = make_batch([0], size=32)
        one = coverage[number]
        batch.annotations = [BatchAnnotations(torch.zeros(1, dtype=torch.int64), one, reduced(one, (4, 4)))]
        statistic = SaliencyStatistic(TokenLayout((4, 4), prefix=1), 1)
        stream(statistic, torch.full((1, 1, 1, 17, 17), 1 / 17), [0], lambda _, batch=batch: batch)
        rows = [row for table in saliency_tables(statistic.result()) for row in table.rows(named=True)]
        (disc,) = (row for row in rows if row["measure"] == "saliency_disc")
        assert disc["value"] == pytest.approx(expected)
