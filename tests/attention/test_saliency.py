"""Saliency: masks worked out by hand, both protocols, best heads, pictures without objects, merging."""

from __future__ import annotations

import pytest
import torch

from tests.conftest import check_merging, make_batch, random_attention, stream
from vitscope.attention.saliency import SaliencyStatistic, best_heads, grid_mask, grid_mask_paper, iou, top_mass_mask
from vitscope.data.batches import BatchAnnotations
from vitscope.models.layout import TokenLayout


def test_the_crossing_token_is_kept():
    maps = torch.tensor([[0.5, 0.3, 0.2], [0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])
    assert top_mass_mask(maps).tolist() == [[True, True, False], [True, False, False], [False, False, True]]


def test_the_mask_does_not_depend_on_the_scale_of_the_map():
    maps = torch.rand(5, 30)
    assert torch.equal(top_mass_mask(maps), top_mass_mask(7 * maps))


def test_an_empty_map_predicts_nothing():
    assert not top_mass_mask(torch.zeros(4)).any()


def test_uniform_attention_needs_sixty_percent_of_the_tokens():
    assert top_mass_mask(torch.full((10,), 0.1, dtype=torch.float64)).sum().item() == 6


def test_iou_by_hand():
    predicted = torch.tensor([[True, True, False, False], [False] * 4])
    truth = torch.tensor([[True, False, True, False], [False] * 4])
    assert iou(predicted, truth).tolist() == pytest.approx([1 / 3, 0])


def object_at(top, left, bottom, right, size=16):
    coverage = torch.zeros(1, size, size)
    coverage[0, top:bottom, left:right] = 1
    return coverage


def test_half_a_cell_is_foreground_only_if_it_is_half_covered():
    # cells of 4 x 4 pixels; the object covers one cell, half of the next, a quarter of another
    coverage = object_at(0, 0, 4, 6) + object_at(8, 8, 10, 10)
    assert grid_mask(coverage, (4, 4)).nonzero().tolist() == [[0, 0], [0, 1]]
    assert {0, 1, 10} <= {cell for _, cell in grid_mask_paper(coverage, (4, 4)).nonzero().tolist()}


def test_an_object_smaller_than_a_cell_does_not_vanish():
    coverage = object_at(9, 9, 11, 10)
    assert grid_mask(coverage, (4, 4)).nonzero().tolist() == [[0, 10]]


def test_no_object_is_no_foreground():
    assert not grid_mask(torch.zeros(1, 16, 16), (4, 4)).any()
    assert not grid_mask_paper(torch.zeros(1, 16, 16), (4, 4)).any()


def annotated_batch(indices):
    """Pictures of 8 x 8 whose object is the top left quarter; the last of three has none."""
    batch = make_batch(indices, size=8)
    full = torch.zeros(1, 8, 8, dtype=torch.uint8)
    full[0, :4, :4] = 255
    nothing = torch.zeros(0, 8, 8, dtype=torch.uint8)
    batch.annotations = [
        BatchAnnotations(torch.zeros(len(c), dtype=torch.int64), c)
        for c in (nothing if i % 3 == 2 else full for i in indices)
    ]
    return batch


def test_a_head_that_finds_the_object_and_one_that_does_not():
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
    # uniform spatial attention: three of four cells, one of them right
    assert result.heads["spatial", "corrected"].tolist() == [[[pytest.approx(1 / 3)] * 2]]


def test_pictures_without_objects_are_left_out_and_counted():
    layout = TokenLayout((2, 2), prefix=1)
    statistic = SaliencyStatistic(layout, 2)
    stream(statistic, random_attention(6, 2, 3, 5), range(6), annotated_batch)
    result = statistic.result()
    assert (result.n, result.without_object) == (4, 2)
    assert result.heads["centre", "paper"].shape == (4, 2, 3)


def test_a_model_without_cls_has_no_cls_rows():
    statistic = SaliencyStatistic(TokenLayout((2, 2), prefix=0, has_cls=False), 1)
    stream(statistic, random_attention(2, 1, 3, 4), range(2), annotated_batch)
    assert {source for source, _ in statistic.result().heads} == {"spatial", "centre"}


def test_best_head_by_protocol():
    heads = torch.tensor([[[0.9, 0.5]], [[0.1, 0.6]], [[0.2, 0.4]]])  # (3 pictures, 1 layer, 2 heads)
    score, which = best_heads(heads, "corrected")
    assert which.tolist() == [1]  # means 0.4 and 0.5
    assert score.mean(0).tolist() == pytest.approx([0.5])
    score, _ = best_heads(heads, "paper")  # an oracle: the best of each picture
    assert score.mean(0).tolist() == pytest.approx([(0.9 + 0.6 + 0.4) / 3])


def test_merging():
    layout = TokenLayout((2, 2), prefix=1)
    check_merging(
        lambda: SaliencyStatistic(layout, 2),
        random_attention(6, 2, 3, 5),
        lambda r: {str(key): value for key, value in (r.heads | r.merged).items()},
        batch=annotated_batch,
    )
