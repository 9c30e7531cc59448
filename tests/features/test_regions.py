"""Features of masked regions, from the centre crop and from tiles."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from PIL import Image

from tests.features.made import check_order_free, inside, tiny
from tests.support.signals import reduced
from vitscope.core.statistic import Statistic
from vitscope.data.batches import Batch, BatchAnnotations, SkippedImages
from vitscope.data.mask_folder import open_mask_folder
from vitscope.data.samples import SampleList
from vitscope.features.dense import dense_features, dense_size, tile_starts
from vitscope.features.dense_regions import dense_regions
from vitscope.features.objects import Objects
from vitscope.features.regions import Regions, RegionStatistic, region_weights
from vitscope.models.backbone import Backbone
from vitscope.models.layout import TokenLayout

LAYOUT = TokenLayout(grid=(2, 2))


def annotated(indices: range, categories: dict[int, list[int]]) -> Batch:
    """Images of 4 x 4 pixels; category c covers cell c of the 2 x 2 grid; -1 covers nothing."""
    annotations = []
    for index in indices:
        names = categories.get(index, [])
        coverage = torch.zeros(len(names), 4, 4, dtype=torch.uint8)
        for row, cell in zip(coverage, names, strict=True):
            if cell >= 0:
                row[2 * (cell // 2) : 2 * (cell // 2) + 2, 2 * (cell % 2) : 2 * (cell % 2) + 2] = 255
        numbers = torch.tensor(names, dtype=torch.int64).abs()
        annotations.append(BatchAnnotations(numbers, coverage, reduced(coverage, (2, 2))))
    images = torch.zeros(len(indices), 3, 4, 4, dtype=torch.uint8)
    return Batch(images, torch.tensor(list(indices)), [str(i) for i in indices], None, annotations)


def show(statistic: Statistic, tokens: torch.Tensor, indices: range, categories: dict[int, list[int]]) -> None:
    """tokens: (n, L, T, D) of all images."""
    statistic.begin(annotated(indices, categories))
    for layer in range(tokens.shape[1]):
        statistic.tokens(layer, tokens[list(indices), layer])
    statistic.end()


CATEGORIES = {0: [3], 1: [], 2: [0, 1, -1], 4: [2]}
TOKENS = torch.randn(5, 2, LAYOUT.tokens, 3, generator=torch.Generator().manual_seed(0))


def test_weights_are_the_share_of_each_cell() -> None:
    coverage = torch.zeros(2, 4, 4, dtype=torch.uint8)
    coverage[0, 0, :] = 255  # the upper half of the two upper cells
    coverage[0, 2:, 2:] = 255  # the whole lower right cell
    weights = region_weights(coverage, (2, 2))
    assert weights[0].tolist() == pytest.approx([0.25, 0.25, 0, 0.5])
    assert weights[1].tolist() == [0, 0, 0, 0]


def test_regions_take_the_tokens_of_their_cells() -> None:
    statistic = RegionStatistic(LAYOUT)
    show(statistic, TOKENS, range(5), CATEGORIES)
    found = statistic.result()
    assert found.category.tolist() == [3, 0, 1, 2]
    assert found.image.tolist() == [0, 2, 2, 4]
    assert found.outside == 1
    for row, (image, cell) in enumerate([(0, 3), (2, 0), (2, 1), (4, 2)]):
        torch.testing.assert_close(found.features[row], TOKENS[image, :, 1 + cell])


def test_merging_is_order_free() -> None:
    check_order_free(
        lambda: RegionStatistic(LAYOUT),
        lambda statistic, indices: show(statistic, TOKENS, indices, CATEGORIES),
        flat,
        cuts=[0, 1, 2, 5],
    )


def flat(found: Regions) -> dict[str, torch.Tensor]:
    return {"f": found.features, "c": found.category, "p": found.image, "o": torch.tensor(found.outside)}


def test_images_without_regions_have_none() -> None:
    statistic = RegionStatistic(LAYOUT)
    show(statistic, TOKENS, range(2), {})
    assert statistic.result().features.shape == (0, 2, 3)


@pytest.mark.parametrize(
    ("size", "expected"), [((480, 854), (448, 784)), ((854, 480), (784, 448)), ((100, 100), (448, 448))]
)
def test_dense_size_as_published(size: tuple[int, int], expected: tuple[int, int]) -> None:
    assert dense_size(size, (224, 224), (16, 16)) == expected


def test_tiles_cover_and_the_last_is_shifted_back() -> None:
    assert tile_starts(448, 224) == [0, 224]
    assert tile_starts(464, 224) == [0, 224, 240]
    assert len(tile_starts(448, 224)) * len(tile_starts(784, 224)) == 8  # DAVIS: eight tiles


def noisy(height: int, width: int) -> Image.Image:
    noise = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(noise)


def test_dense_tokens_are_those_of_the_tiles_and_the_first_wins() -> None:
    backbone = tiny(depth=2)  # 32 pixels, patches of 8
    image = noisy(64, 88)  # at twice the input already: tiles start at 0, 32 and, shifted back, 56
    found = dense_features(backbone, image, protocol="paper")
    assert found.shape == (2, 8, 11, 24)
    pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1)

    def tile(top: int, left: int) -> torch.Tensor:
        x = backbone.preprocessing.normalise(pixels[None, :, top : top + 32, left : left + 32])
        return (
            inside(backbone).forward_intermediates(x, intermediates_only=True, output_fmt="NLC")[1][0].reshape(4, 4, 24)
        )

    torch.testing.assert_close(found[1, 4:, :4], tile(32, 0), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found[1, :4, 4:8], tile(0, 32), rtol=1e-4, atol=1e-5)  # not overwritten by the third
    torch.testing.assert_close(found[1, :4, 8:], tile(0, 56)[:, 1:], rtol=1e-4, atol=1e-5)


def test_dense_regions_see_what_the_centre_crop_does_not(tmp_path: Path) -> None:
    for name in ("images", "masks"):
        (tmp_path / name).mkdir()
    mask = np.zeros((32, 96), np.uint8)
    mask[:16, :8] = 1  # far left, outside a centre crop
    mask[16:, 88:] = 2  # far right
    noisy(32, 96).save(tmp_path / "images" / "a.png")
    Image.fromarray(mask).save(tmp_path / "masks" / "a.png")
    samples = open_mask_folder(tmp_path / "images", tmp_path / "masks")
    backbone = tiny(depth=2)
    found = densely(backbone, samples, range(1)).result()
    assert (found.category.tolist(), found.outside) == ([0, 1], 0)
    tokens = dense_features(backbone, samples[0].load(), protocol="paper")  # 64 x 192 pixels: 8 x 24 tokens
    torch.testing.assert_close(found.features[0], tokens[:, :4, :2].flatten(1, 2).mean(1), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.features[1], tokens[:, 4:, 22:].flatten(1, 2).mean(1), rtol=1e-4, atol=1e-5)


def densely(backbone: Backbone, samples: SampleList, *shards: range) -> RegionStatistic:
    """The regions of some shards, merged in this order."""
    seen = RegionStatistic(backbone.layout)
    for units in shards:
        part = RegionStatistic(backbone.layout)
        part.load_state(dense_regions(backbone, samples, units, SkippedImages()))
        seen.merge(part)
    return seen


def test_merging_dense_regions_is_order_free(tmp_path: Path) -> None:
    for name in ("images", "masks"):
        (tmp_path / name).mkdir()
    for i in range(5):
        mask = np.zeros((40, 60), np.uint8)
        mask[: 10 * i, :20] = 1 + i % 2  # the first has no region
        noisy(40, 60).rotate(90 * i).save(tmp_path / "images" / f"{i}.png")
        Image.fromarray(mask).save(tmp_path / "masks" / f"{i}.png")
    backbone, samples = tiny(depth=2), open_mask_folder(tmp_path / "images", tmp_path / "masks")
    Path(samples[3].path).write_bytes(b"no longer an image")
    n = len(samples)
    whole = flat(densely(backbone, samples, range(n)).result())
    assert len(whole["c"]) == 3  # of four images with a region one is broken
    cuts = [range(1), range(1, 3), range(3, 4), range(4, n)]  # the broken image is a shard of its own
    for order in (cuts, cuts[::-1]):
        found = flat(densely(backbone, samples, *order).result())
        for name, value in whole.items():
            assert torch.equal(found[name], value), name
    with pytest.raises(ValueError, match="both states"):
        densely(backbone, samples, range(2), range(1, 3))


def test_regions_go_by_the_place_of_their_image_in_the_list_meant() -> None:
    """Seeded choices, such as first centres of k-means, must not depend on the order in which a stream went."""
    listed, streamed = RegionStatistic(LAYOUT), RegionStatistic(LAYOUT)
    show(listed, TOKENS, range(5), CATEGORIES)
    order = torch.tensor([4, 2, 0, 1, 3])  # image 0 of the stream is image 4 of the list
    mixed = {i: CATEGORIES[at] for i, at in enumerate(order.tolist()) if at in CATEGORIES}
    show(streamed, TOKENS[order], range(5), mixed)
    expected, found = flat(listed.result()), flat(streamed.result(order))
    for name, value in expected.items():
        assert torch.equal(found[name], value), name


def pairs_of_points(count: int) -> Regions:
    """Twice as many regions: two by two at one place, of one category; neighbours are of the other."""
    places = torch.randn(count, 6, generator=torch.Generator().manual_seed(3)).repeat_interleave(2, 0)
    category = torch.arange(2 * count) // 2 % 2
    return Regions(lambda _layer: places, category, torch.arange(2 * count), outside=0, depth=1)


def test_paper_always_makes_eighty_clusters() -> None:
    """Of eighty places: each becomes a cluster, and all are pure. As many clusters as categories are half right."""

    def purity(protocol: Literal["corrected", "paper"]) -> float:
        tables = Objects(protocol=protocol)._clusters(pairs_of_points(80)).tables
        return next(table["value"].item() for table in tables if table["measure"][0] == "purity")

    assert purity("paper") == 1
    assert purity("corrected") < 0.7


def test_too_few_regions_for_eighty_clusters_are_told() -> None:
    outcome = Objects(protocol="paper")._clusters(pairs_of_points(39))
    assert outcome.tables == []
    assert outcome.notes == ["regions are not clustered under paper: 78 are too few for its 80 clusters"]
    assert Objects()._clusters(pairs_of_points(39)).tables
