"""Keypoints: points placed by hand, padding, every image once, averages per category, image and point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image

from tests.tasks.conftest import photo
from vitscope.core.errors import BadData
from vitscope.core.results import Label
from vitscope.data.batches import SkippedImages
from vitscope.data.keypoints import KeypointPair, KeypointSet
from vitscope.data.preprocessing import HALF, IMAGENET, Placement, Preprocessing, in_geometry
from vitscope.data.samples import Sample, SampleList
from vitscope.data.spair import open_keypoints
from vitscope.models.backbone import Backbone
from vitscope.models.observe import observe
from vitscope.tasks import keypoints
from vitscope.tasks.keypoints import CORRECTED, PAPER, Keypoints, KeypointScores, correct_points
from vitscope.tasks.pairs import PairMatcher

LABEL = Label("m", "none", "d", "p")


Points = Sequence[tuple[float, float]]


def pair(
    source_points: Points,
    target_points: Points,
    *,
    category: str = "cat",
    source: int = 0,
    target: int = 1,
    box: tuple[float, float, float, float] = (0, 0, 100, 60),
) -> KeypointPair:
    return KeypointPair(f"{source}-{target}", category, source, target, tuple(source_points), tuple(target_points), box)


def keypoint_set(pairs: Sequence[KeypointPair], sizes: Sequence[tuple[int, int]]) -> KeypointSet:
    images = SampleList(Sample(f"{i}.jpg", Path(f"{i}.jpg")) for i in range(len(sizes)))
    return KeypointSet("set", images, tuple(sizes), tuple(pairs))


def run(backbone: Backbone, data: KeypointSet, protocol: Literal["corrected", "paper"] = "corrected") -> KeypointScores:
    """What the analysis finds, all pairs as one shard."""
    state = Keypoints(protocol=protocol).drive(backbone, data, range(len(data.pairs)), SkippedImages())
    numbers, points = state["pairs"].tolist(), state["points"].tolist()
    found = dict(zip(numbers, state["predicted"].split(points, 1), strict=True)) if numbers else {}
    return keypoints.score(data, found)


def test_near_enough_is_strictly_nearer_than_a_share_of_the_longer_side() -> None:
    predicted = torch.tensor([[[50.0, 30.0], [59.9, 30.0], [60.0, 30.0], [50.9, 30.0]]])  # one layer, four points
    right = correct_points(predicted, torch.tensor([[50.0, 30.0]] * 4), (10, 20, 110, 80))  # sides 100 and 60
    assert right[:, 0].tolist() == [
        [True, True, False, True],  # nearer than 10
        [True, False, False, True],  # nearer than 5
        [True, False, False, True],  # nearer than 1
    ]


def test_placement_and_the_way_back() -> None:
    place = Placement.of((300, 400), (224, 224))
    assert place.inside == (28, 196, 0, 224)
    corners = torch.tensor([[-0.5, -0.5], [399.5, 299.5]], dtype=torch.float64)  # the outer edges of the outer pixels
    expected = torch.tensor([[-0.5, 27.5], [223.5, 195.5]], dtype=torch.float64)
    torch.testing.assert_close(place.to_input(corners), expected)
    points = torch.tensor([[3.0, 7.0], [391.25, 11.5]], dtype=torch.float64)
    torch.testing.assert_close(place.to_image(place.to_input(points)), points)
    assert Placement.of((1000, 30), (224, 224)).resized == (224, 7)


def test_padding_is_the_mean_colour_or_black() -> None:
    picture = Image.new("RGB", (80, 40), "white")
    own = Preprocessing((32, 32), *IMAGENET)
    for geometry, colour in (("padded", (124, 116, 104)), ("padded black", (0, 0, 0))):
        padded = in_geometry(own, geometry)
        image = padded.geometry(picture)
        assert image.size == (32, 32)
        assert image.getpixel((5, 2)) == colour
        assert image.getpixel((0, 8)) == image.getpixel((31, 23)) == (255, 255, 255)
        assert image.getpixel((16, 24)) == colour
        assert padded.digest != own.digest


def places(grid: tuple[int, int], layers: int = 2) -> torch.Tensor:
    """Features that tell places apart: (L, h, w, h * w)."""
    return torch.eye(grid[0] * grid[1]).view(1, *grid, -1).expand(layers, -1, -1, -1).contiguous()


@pytest.mark.parametrize("protocol", [CORRECTED, PAPER])
def test_the_same_picture_gives_every_point_back(protocol: keypoints.Protocol) -> None:
    """Square pictures of 64 pixels at 32: cells of eight pixels of the input; points at the centres of cells."""
    points = [(2 * x + 0.5, 2 * y + 0.5) for x, y in ((11.5, 11.5), (11.5, 19.5), (19.5, 11.5))]
    data = keypoint_set([pair(points, points)], [(64, 64), (64, 64)])
    maps = {0: places((4, 4)), 1: places((4, 4))}
    scores = keypoints.evaluate(maps, data, (32, 32), protocol=protocol)
    distance = (scores.predicted[0] - torch.tensor(points)).norm(dim=-1)
    assert distance.max() <= 2.0 * 2**0.5  # a pixel of the input, which is two of the picture, each way
    assert scores.right[0, 0].tolist() == [3, 3]


def test_a_point_is_found_between_tokens() -> None:
    """The target's features are the source's, moved by one pixel of the input: the answer moves by one pixel."""
    source = torch.randn(1, 4, 4, 6, generator=torch.Generator().manual_seed(0))
    data = keypoint_set([pair([(13.0, 10.0), (21.0, 18.5)], [(0.0, 0.0)] * 2)], [(32, 32), (32, 32)])
    scores = keypoints.evaluate({0: source, 1: source.clone()}, data, (32, 32))
    found = scores.predicted[0][0]
    assert found[0].tolist() == [13, 10]  # exactly itself
    assert (found[1] - torch.tensor([21.0, 18.5])).abs().max() <= 0.5


def test_matches_do_not_land_in_the_padding() -> None:
    """The best place of all is in the padding of a wide target: `paper` takes it, `corrected` the best inside."""
    source = torch.zeros(1, 4, 4, 2)
    source[..., 0] = 1
    target = torch.zeros(1, 4, 4, 2)
    target[..., 1] = 1
    target[0, 0, 1] = torch.tensor([1.0, 0.0])  # row 0: padding, since a 16 x 32 picture covers rows 8..23 of 32
    target[0, 2, 2] = torch.tensor([0.8, 0.6])
    data = keypoint_set([pair([(16.0, 16.0)], [(20.0, 12.0)])], [(32, 32), (16, 32)])
    inside = keypoints.evaluate({0: source, 1: target}, data, (32, 32), protocol=CORRECTED).predicted[0][0, 0]
    outside = keypoints.evaluate({0: source, 1: target}, data, (32, 32), protocol=PAPER).predicted[0][0, 0]
    assert 15 <= inside[0] <= 24
    assert 7 <= inside[1] <= 15  # row 16..23 of the input is 8..15 of the picture
    assert outside[1] < 0


def test_whole_pixels_as_published() -> None:
    """x is cut off, y is rounded."""
    source = torch.randn(1, 4, 4, 5, generator=torch.Generator().manual_seed(1))
    sizes = [(32, 32), (32, 32)]
    for point, taken in (((10.9, 7.4), (10, 7)), ((10.9, 7.6), (10, 8))):
        published = keypoints.evaluate(
            {0: source, 1: source}, keypoint_set([pair([point], [(0.0, 0.0)])], sizes), (32, 32), protocol=PAPER
        )
        exact = keypoints.evaluate(
            {0: source, 1: source},
            keypoint_set([pair([taken], [(0.0, 0.0)])], sizes),
            (32, 32),
            protocol=keypoints.Protocol("x", renormalise=False, match_padding=True),
        )
        assert torch.equal(published.predicted[0], exact.predicted[0])


def test_averages_by_category_image_and_point() -> None:
    data = keypoint_set(
        [
            pair([(1.0, 1.0)] * 4, [(0.0, 0.0)] * 4, category="cat"),
            pair([(1.0, 1.0)] * 1, [(0.0, 0.0)] * 1, category="cat"),
            pair([(1.0, 1.0)] * 5, [(0.0, 0.0)] * 5, category="dog"),
        ],
        [(50, 50), (50, 50)],
    )
    hit, miss = [0.0, 0.0], [90.0, 90.0]
    predicted = {
        0: torch.tensor([[hit, hit, hit, miss]]),
        1: torch.tensor([[miss]]),
        2: torch.tensor([[hit, hit, miss, miss, miss]]),
    }
    scores = keypoints.score(data, predicted)
    rows = {
        (row["measure"], row["variant"]): row for t in scores.rows(LABEL, "corrected") for row in t.rows(named=True)
    }
    assert rows["pck@0.1", "cat"]["value"] == pytest.approx(3 / 5)
    assert rows["pck@0.1", "dog"]["value"] == pytest.approx(2 / 5)
    assert rows["pck@0.1", ""]["value"] == pytest.approx((3 / 5 + 2 / 5) / 2)
    assert rows["pck@0.1", "per_point"]["value"] == pytest.approx(5 / 10)
    assert rows["pck@0.1", "per_image"]["value"] == pytest.approx((3 / 4 + 0 + 2 / 5) / 3)
    assert np.isnan(rows["pck@0.1", "dog"]["ci_low"])  # a single pair
    assert rows["pck@0.1", ""]["ci_low"] == pytest.approx((0 + 2 / 5) / 2)  # both cats drawn are the one that missed
    assert rows["pck@0.01", ""]["n"] == 3


def test_every_image_goes_through_the_network_once(backbone: Backbone, spair: Path) -> None:
    data = open_keypoints(spair)
    seen: list[int] = []
    matcher = keypoints.matcher_of(data, (32, 32), CORRECTED)
    add = matcher.add

    def watched(image: int, maps: torch.Tensor) -> None:
        seen.append(image)
        add(image, maps)

    matcher.add = watched  # type: ignore[method-assign]
    statistic = keypoints.KeypointStatistic(backbone, matcher)
    before = backbone.images_traced
    observe(backbone, data.images, [statistic])
    assert backbone.images_traced - before == 4
    assert sorted(seen) == [0, 1, 2, 3]  # the sheep is in no pair
    assert matcher.maps == {}  # nothing is kept that no pair needs
    assert matcher.asked == {}
    assert len(statistic.result().pairs) == 3


@pytest.mark.parametrize("batch_size", [1, 2, 4])
def test_the_order_of_images_does_not_matter(backbone: Backbone, spair: Path, batch_size: int) -> None:
    data = open_keypoints(spair)
    expected = run(backbone, data)
    tokens: dict[int, torch.Tensor] = {}

    class Keep(PairMatcher):
        def add(self, image: int, maps: torch.Tensor) -> None:
            tokens[image] = maps

    statistic = keypoints.KeypointStatistic(backbone, Keep(data, (32, 32)))
    for start in range(0, len(data.images), batch_size):
        stretch = range(start, min(start + batch_size, len(data.images)))
        observe(backbone, data.images, [statistic], stretch=stretch, geometry="padded")
    backwards = keypoints.evaluate(dict(sorted(tokens.items(), reverse=True)), data, (32, 32))
    for number in range(3):
        torch.testing.assert_close(backwards.predicted[number], expected.predicted[number])


def test_official_layout_in_both_protocols(backbone: Backbone, spair: Path) -> None:
    data = open_keypoints(spair)
    protocols: tuple[Literal["corrected", "paper"], ...] = ("corrected", "paper")
    for protocol in protocols:
        scores = run(backbone, data, protocol)
        assert scores.right.shape == (3, 3, 3)  # pairs, alphas, layers
        assert scores.points.tolist() == [3, 3, 3]
        assert scores.categories == ("cat", "dog")
    assert any("no pairs of sheep" in note for note in data.notes)


def test_a_pair_whose_image_breaks_is_left_out(backbone: Backbone, spair: Path) -> None:
    data = open_keypoints(spair)
    (spair / "JPEGImages/dog/b.jpg").write_bytes(b"broken")
    scores = run(backbone, data)
    assert scores.pairs == (0, 1)
    for path in spair.glob("JPEGImages/cat/a.jpg"):
        path.write_bytes(b"broken")
    with pytest.raises(BadData, match="no pair could be matched"):
        run(backbone, data)


def test_a_plain_json_of_pairs(backbone: Backbone, tmp_path: Path) -> None:
    photo(tmp_path / "a.png")
    photo(tmp_path / "b.png", seed=1)
    record = {"source": "a.png", "target": "b.png", "source_points": [[5, 5]], "target_points": [[9, 9]]}
    (tmp_path / "pairs.json").write_text(json.dumps([record]))
    scores = run(backbone, open_keypoints(tmp_path / "pairs.json"))
    assert scores.categories == ("all",)
    rows = scores.rows(LABEL, "corrected")
    assert {row["variant"] for t in rows for row in t.rows(named=True)} == {"", "per_point", "per_image"}


def test_normalisation_is_not_lost_with_the_padding() -> None:
    padded = in_geometry(Preprocessing((32, 32), *HALF), "padded")
    assert (padded.mean, padded.std, padded.interpolation) == (HALF[0], HALF[1], "bicubic")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_hundred_thousand_pairs_fit_in_memory(tmp_path: Path) -> None:
    """Each with three points; the images are few, as in SPair-71k, and every one is seen once."""
    generator = np.random.default_rng(0)
    for number in range(24):
        Image.fromarray(generator.integers(0, 256, (48, 64, 3), dtype=np.uint8)).save(tmp_path / f"{number}.png")
    ends = generator.integers(0, 24, (100_000, 2)).tolist()
    points = generator.integers(2, 44, (100_000, 2, 3, 2)).tolist()
    pairs = [
        {"source": f"{a}.png", "target": f"{b}.png", "source_points": p, "target_points": q}
        for (a, b), (p, q) in zip(ends, points, strict=True)
    ]
    (tmp_path / "pairs.json").write_text(json.dumps(pairs))
    program = str(Path(sys.executable).with_name("vitscope"))
    options = ["--spair", str(tmp_path / "pairs.json"), "--out", str(tmp_path / "out")]
    command = subprocess.Popen([program, "tasks", "zoo/mae", *options])
    _, status, usage = os.wait4(command.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert usage.ru_maxrss < 4 << 20  # in KiB: 4 GB
    rows = pl.read_parquet(tmp_path / "out" / "results.parquet").filter(pl.col("measure").str.starts_with("pck"))
    assert rows["n"].max() == 100_000
