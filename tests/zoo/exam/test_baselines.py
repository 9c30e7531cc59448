"""What needs no learning, against closed forms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from vitscope.data.davis import VideoSet
from vitscope.data.keypoints import KeypointPair, KeypointSet
from vitscope.data.samples import PixelSample, SampleList
from vitscope.menagerie import World, film, pair, play, render
from zoo.exam.baselines import (
    centred_discs,
    colour_histogram,
    copied_masks,
    copied_positions,
    grey_template,
    mask_iou,
)
from zoo.exam.measures import jf, pck, species_right
from zoo.exam.rendered import RenderedRegion, keypoints_of, samples_of, video_of


def masked(*regions: np.ndarray) -> SampleList:
    blank = np.zeros((8, 8, 3), np.uint8)
    return SampleList(
        PixelSample(str(i), Path(str(i)), 0, (RenderedRegion(0, region=region),), pixels=blank)
        for i, region in enumerate(regions)
    )


def test_discs_on_a_grid_of_four_grow_from_the_centre() -> None:
    discs, names = centred_discs((4, 4))
    # cells lie at sqrt(.5), sqrt(2.5) and sqrt(4.5) from the centre: 4, 8 and 4 of them
    assert discs.sum(1).tolist() == [4, 12, 16]
    assert names == ("radius 0.7 cells", "radius 1.6 cells", "radius 2.1 cells")
    assert discs[0].reshape(4, 4).nonzero().tolist() == [[1, 1], [1, 2], [2, 1], [2, 2]]


def test_iou_of_discs_with_a_constructed_mask() -> None:
    left = np.zeros((8, 8), bool)
    left[:, :4] = True  # the left half: 8 of the 16 cells
    centre = np.zeros((8, 8), bool)
    centre[2:6, 2:6] = True  # exactly the smallest disc
    discs, _ = centred_discs((4, 4))
    # left: 2 / (4 + 8 - 2), 6 / (12 + 8 - 6), 8 / 16; centre: 4 / 4, 4 / 12, 4 / 16
    expected = [(0.2 + 1) / 2, (6 / 14 + 1 / 3) / 2, (0.5 + 0.25) / 2]
    assert mask_iou(discs, masked(left, centre), (4, 4)).tolist() == pytest.approx(expected)
    everything = torch.ones(1, 16, dtype=torch.bool)
    assert mask_iou(everything, masked(left), (4, 4)).tolist() == pytest.approx([0.5])  # the mask's share


def test_a_colour_histogram_counts_colours_wherever_they_are() -> None:
    image = np.zeros((1, 4, 4, 3), np.uint8)
    image[0, 0] = (255, 0, 70)  # a quarter: red 3, green 0, blue 1
    found = colour_histogram(torch.from_numpy(image))[0]
    assert found[3 * 16 + 1] == pytest.approx(0.5)  # root of 1/4
    assert found[0] == pytest.approx(0.75**0.5)
    assert float(found.square().sum()) == pytest.approx(1.0)
    assert torch.equal(colour_histogram(torch.from_numpy(image[:, ::-1].copy()))[0], found)


def test_colours_tell_red_from_blue_and_templates_left_from_right() -> None:
    random = np.random.default_rng(0)
    red_or_blue = torch.arange(60) % 2
    left_or_right = torch.arange(60) // 2 % 2
    images = random.integers(0, 60, (60, 16, 16, 3), dtype=np.uint8)
    for image, colour, side in zip(images, red_or_blue.tolist(), left_or_right.tolist(), strict=True):
        image[:, 8 * side : 8 * side + 8, 2 * colour] = 255
    pixels = torch.from_numpy(images)
    views = {"colours": colour_histogram(pixels), "pixels": grey_template(pixels)}
    right = {
        (name, labels): float(species_right([view[:40]], truth[:40], [view[40:]], truth[40:]))
        for name, view in views.items()
        for labels, truth in (("colour", red_or_blue), ("side", left_or_right))
    }
    assert right["colours", "colour"] == 1.0
    assert right["pixels", "side"] == 1.0
    assert right["colours", "side"] < 0.8
    assert right["pixels", "colour"] < 0.8


def test_a_template_is_what_is_left_of_grey_without_its_mean() -> None:
    image = np.zeros((1, 32, 32, 3), np.uint8)
    image[:, :16] = (30, 60, 90)  # the upper half has grey 60
    found = grey_template(torch.from_numpy(image))[0]
    assert found[:128].tolist() == [30.0] * 128
    assert found[128:].tolist() == [-30.0] * 128


def test_copied_positions_are_right_where_the_point_did_not_move_far() -> None:
    blank = render(World().scene("toy", 0))
    # the box is 40 wide: 0.1 of it is 4 pixels
    pairs = tuple(
        KeypointPair(str(i), "cat", 0, 1, ((10.0, 10.0), (20.0, 20.0)), target, (0.0, 0.0, 40.0, 20.0))
        for i, target in enumerate([((13.0, 10.0), (20.0, 29.0)), ((10.0, 10.0), (20.0, 23.9))])
    )
    dataset = KeypointSet("toy", samples_of([blank, blank]), ((64, 64), (64, 64)), pairs)
    assert pck(copied_positions(dataset)).tolist() == pytest.approx([3 / 4])


def test_points_of_rendered_pairs_lie_on_the_pixel_they_name() -> None:
    both = pair(World(), "toy", 3)
    dataset = keypoints_of([both])
    (only,) = dataset.pairs
    for point, (match, _) in zip(only.source_points, both.matches, strict=True):
        assert [round(c) for c in point] == [int(match.x), int(match.y)]
        assert both.source.owners[round(point[1]), round(point[0])] == 1
    rows, columns = np.nonzero(both.target.mask)
    assert only.target_box == (columns.min(), rows.min(), columns.max(), rows.max())


def test_a_copied_mask_is_perfect_while_nothing_moves_and_loses_what_moves() -> None:
    scenes = film(World(), "toy", 0, frames=6)
    still = video_of("still", play((scenes[0],) * 4, 32))
    assert jf(copied_masks(VideoSet("toy", (still,)))).tolist() == [1.0]
    moving = video_of("moving", play(scenes, 32))
    scores = copied_masks(VideoSet("toy", (moving,)))
    first, second = (picture.owners == 1 for picture in moving.pictures[:2])
    overlap = (first & second).sum() / (first | second).sum()
    assert scores.sequences[0].region[0, 0, 0] == pytest.approx(overlap)
    assert float(jf(scores)) < 0.7
