"""The `paper` protocol against a plain re-statement of the published measures, from files to numbers.

On generated photos always; on real photos with COCO's masks where VITSCOPE_DATA has them; by trained networks, which
are slow, where VITSCOPE_REAL has them too.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw
from torch import Tensor

from tests.features.made import inside, tiny
from tests.oracles import published
from tests.support.real import DATA, REAL, needs_coco, needs_davis, needs_network
from tests.tasks.conftest import make_davis
from vitscope.attention.saliency import SaliencyStatistic
from vitscope.data.batches import SkippedImages
from vitscope.data.davis import VideoSequence, VideoSet, open_videos
from vitscope.data.keypoints import KeypointPair, KeypointSet
from vitscope.data.masks import open_masks
from vitscope.data.preprocessing import Placement, Preprocessing
from vitscope.data.samples import Sample, SampleList
from vitscope.features.dense import dense_features
from vitscope.features.dense_regions import dense_regions
from vitscope.features.regions import RegionStatistic
from vitscope.models.backbone import Backbone
from vitscope.models.observe import Onlooker, observe
from vitscope.models.spec import resolve
from vitscope.tasks import keypoints, knn
from vitscope.tasks.keypoints import Keypoints
from vitscope.tasks.video_segmentation import Video

CLOSE = {"rtol": 1e-5, "atol": 1e-5}


class Seen(Onlooker):
    """Keeps what a network shows of one image."""

    wants = frozenset({"attention", "tokens"})

    def __init__(self) -> None:
        self.probs: list[Tensor] = []
        self.layers: list[Tensor] = []

    def attention(self, layer: int, probs: Tensor) -> None:
        self.probs.append(probs.clone())

    def tokens(self, layer: int, x: Tensor) -> None:
        self.layers.append(x.clone())


def shown(backbone: Backbone, pixels: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Attention (L, H, T, T) and patch tokens (L, h, w, D) of one image, in float64."""
    seen = Seen()
    backbone.trace(pixels[None], [seen])
    tokens = torch.cat(seen.layers)[:, 1:].unflatten(1, backbone.layout.grid)
    return torch.cat(seen.probs).double().numpy(), tokens.double().numpy()


def network() -> Backbone:
    """14 x 14 tokens, as the published networks have."""
    module = inside(tiny(img_size=56, patch_size=4, depth=3))
    return Backbone("tiny", module, Preprocessing(size=(56, 56)), "none")


def generated(folder: Path, count: int = 12) -> SampleList:
    """Photos of all shapes with several objects: large ones, thin ones, specks, and some at the border."""
    dice = random.Random(5)
    for name in ("images", "masks"):
        (folder / name).mkdir()
    for i in range(count):
        width, height = dice.randint(60, 260), dice.randint(60, 260)
        coarse = np.random.default_rng(i).integers(0, 256, (7, 9, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC).save(folder / f"images/{i}.png")
        mask = Image.new("L", (width, height))
        draw = ImageDraw.Draw(mask)
        for category in range(1, dice.randint(1, 5)):
            x, y = dice.randint(0, width - 1), dice.randint(0, height - 1)
            far = (x + dice.choice((0, 3, 40, 120)), y + dice.choice((0, 2, 50, 90)))
            draw.ellipse((x, y, *far), fill=category)
        mask.save(folder / f"masks/{i}.png")
    return open_masks(folder)


Study = tuple[SampleList, Backbone]


def _made(folder: Path) -> Study:
    return generated(folder), network()


def _photos(_folder: Path) -> Study:
    return open_masks(DATA / "coco").limit(24), network()


def _trained(name: str) -> Any:
    def study(_folder: Path) -> Study:
        return open_masks(DATA / "coco").limit(12), resolve(str(REAL / f"{name}.toml")).load()

    return pytest.param(study, id=name, marks=[pytest.mark.slow, needs_coco, needs_network(name)])


@pytest.fixture(
    params=[
        pytest.param(_made, id="generated"),
        pytest.param(_photos, id="photos", marks=needs_coco),
        _trained("fs-b16-int8"),
        _trained("dinov2-s14"),
    ]
)
def study(request: pytest.FixtureRequest, tmp_path: Path) -> Study:
    """Annotated photos and a network to see them."""
    found: Study = request.param(tmp_path)
    return found


def masks_of(sample: Sample) -> list[np.ndarray]:
    return [annotation.decode() for annotation in sample.annotations]


def test_saliency(study: Study) -> None:
    """Where rounding does not decide: if every token looks at itself alone, the map of spatial sources is even to the
    last bits. Scores that change when attention is shaken by a millionth are left out, one in fifty at most."""
    samples, backbone = study
    size = backbone.preprocessing.size[0]
    statistic = SaliencyStatistic(backbone.layout, backbone.depth)
    observe(backbone, samples, [statistic])
    found = statistic.result()
    dice = np.random.default_rng(0)
    expected: list[published.Saliency] = []
    shaken: list[list[published.Saliency]] = []
    for sample in samples:
        attention, _ = shown(backbone, published.pixels(sample.load(), size))
        moved = [attention * (1 + 1e-6 * dice.standard_normal(attention.shape)) for _ in range(4)]
        if scores := published.saliency(attention, masks_of(sample)):
            expected.append(scores)
            shaken.append([published.saliency(other, masks_of(sample)) or {} for other in moved])
    assert found.n["paper"] == len(expected) > 8
    for source in ("cls", "spatial", "centre"):
        for merged, ours in ((False, found.heads), (True, found.merged)):
            exact = np.stack([scores[source, merged] for scores in expected])
            others = np.stack([[scores[source, merged] for scores in times] for times in shaken], axis=1)
            decided = np.isclose(exact, others, **CLOSE).all(0)
            assert decided.mean() > 0.98
            seen = ours[source, "paper"].numpy().reshape(exact.shape)
            np.testing.assert_allclose(seen[decided], exact[decided], **CLOSE)


def test_regions_of_the_centre_crop(study: Study) -> None:
    samples, backbone = study
    size = backbone.preprocessing.size[0]
    statistic = RegionStatistic(backbone.layout, "paper")
    observe(backbone, samples, [statistic])
    expected = []
    for sample in samples:
        _, tokens = shown(backbone, published.pixels(sample.load(), size))
        expected.append(published.regions(tokens, masks_of(sample), square=True))
    features = np.concatenate(expected)
    found = statistic.result()
    assert len(features) + found.outside == sum(len(sample.annotations) for sample in samples)
    scale = np.abs(features).max()
    np.testing.assert_allclose(found.features.numpy() / scale, features / scale, **CLOSE)


def test_regions_of_tiles(study: Study) -> None:
    samples, backbone = study[0].limit(6), study[1]
    statistic = RegionStatistic(backbone.layout, "paper")
    statistic.load_state(dense_regions(backbone, samples, range(len(samples)), SkippedImages(), "paper"))
    expected = []
    for sample in samples:
        tokens = dense_features(backbone, sample.load(), protocol="paper").double().numpy()
        expected.append(published.regions(tokens, masks_of(sample), square=False))
    features = np.concatenate(expected)
    scale = np.abs(features).max()
    np.testing.assert_allclose(statistic.result().features.numpy() / scale, features / scale, **CLOSE)


def test_keypoints(study: Study) -> None:
    """Points all over the images, whole numbers and others, in images of all shapes.

    Not in their last rows: there y is rounded out of the image, which the published measure does not survive.
    """
    (samples, backbone), dice = study, random.Random(6)
    size = backbone.preprocessing.size[0]
    sizes = [sample.load().size for sample in samples]  # (width, height)
    pairs = []
    for number in range(len(samples) - 1):
        (w, h), (u, v) = sizes[number], sizes[number + 1]
        here = tuple((float(dice.randrange(w)), dice.uniform(0, 0.98 * h)) for _ in range(12))
        there = tuple((dice.uniform(0, u), float(dice.randrange(v))) for _ in range(12))
        box = (0.1 * u, 0.2 * v, 0.9 * u, 0.9 * v)
        pairs.append(KeypointPair(str(number), "all", number, number + 1, here, there, box))
    data = KeypointSet("set", samples, tuple((h, w) for w, h in sizes), tuple(pairs))
    state = Keypoints(protocol="paper").drive(backbone, data, range(len(pairs)), SkippedImages())
    predicted = dict(zip(state["pairs"].tolist(), state["predicted"].split(state["points"].tolist(), 1), strict=True))
    scores = keypoints.score(data, predicted)
    tokens = [torch.from_numpy(shown(backbone, published.padded(s.load(), size))[1]) for s in samples]
    for number, pair in enumerate(pairs):
        points = (torch.tensor(pair.source_points), torch.tensor(pair.target_points))
        for layer in range(backbone.depth):
            ends = (tokens[pair.source][layer], tokens[pair.target][layer])
            expected = published.right_points(*ends, (sizes[number], sizes[number + 1]), points, pair.target_box, size)
            assert scores.right[number, :, layer].tolist() == expected, (number, layer)
    assert 0 < scores.right[:, 0].sum() < scores.points.sum() * backbone.depth


def test_points_that_come_to_lie_on_whole_pixels() -> None:
    """Where point * scale is a whole number on paper, float32 decides on which side of it x is truncated."""
    dice = random.Random(7)
    for _ in range(200):
        width, height = dice.randint(100, 700), dice.randint(100, 700)
        points = torch.tensor([(float(x), 0.0) for x in range(width)])
        expected, _ = published.placed(points, width, height, 224)
        place = Placement.of((height, width), (224, 224))
        assert torch.equal(place.to_input_paper(points), expected)


def _made_video(folder: Path) -> VideoSequence:
    return open_videos(make_davis(folder / "DAVIS")).sequences[0]


def _real_video(_folder: Path) -> VideoSequence:
    whole = open_videos(DATA / "davis").sequences[0]
    return replace(whole, frames=whole.frames[:10], masks=whole.masks[:10])  # the last one no longer asks the second


@pytest.mark.parametrize("video", [_made_video, pytest.param(_real_video, marks=needs_davis)])
def test_video(video: Callable[[Path], VideoSequence], tmp_path: Path) -> None:
    """Region similarity of every object, frame and layer, though features are kept in half precision."""
    sequence, backbone = video(tmp_path), network()
    data, numbers = VideoSet("set", (sequence,)), range(1, len(sequence) - 1)
    state = Video(protocol="paper").drive(backbone, data, range(1), SkippedImages())
    frames = [dense_features(backbone, sequence.frame(i), protocol="paper").double() for i in range(len(sequence))]
    truth = [sequence.labels(i) for i in range(len(sequence))]
    assert truth[0] is not None
    for layer in range(backbone.depth):
        masks = [truth[0], *published.followed([frame[layer] for frame in frames], truth[0], backbone.patch[0])]
        for label in range(1, truth[0].max() + 1):
            pairs = [(truth[i] == label, masks[i] == label) for i in numbers]
            expected = [(true & mask).sum() / (true | mask).sum() for true, mask in pairs]
            np.testing.assert_allclose(state["region"][layer, label - 1].numpy(), expected, **CLOSE)


@pytest.mark.parametrize("k", [3, 10, 50])
def test_knn(k: int) -> None:
    """Many classes and few neighbours: often fewer than five classes have votes."""
    generator = torch.Generator().manual_seed(k)
    labels = torch.arange(400) % 20
    centres = torch.randn(20, 12, generator=generator)
    train = centres[labels] + 0.8 * torch.randn(400, 12, generator=generator)
    asked, truth = train[:100] + 1.5 * torch.randn(100, 12, generator=generator), labels[:100]
    paper = knn.evaluate([train], labels, [asked], truth, config=knn.KnnConfig((k,), "paper"))
    corrected = knn.evaluate([train], labels, [asked], truth, config=knn.KnnConfig((k,)))
    first, five = published.knn(train, labels, asked, truth, k, 20)
    assert torch.equal(paper.top1[:, 0, 0], first)
    assert torch.equal(paper.top5[:, 0, 0], five)
    assert torch.equal(corrected.top1, paper.top1)
    assert (corrected.top5 <= paper.top5).all()
