"""Video segmentation: scores of whole sequences, all layers from one extraction, official layouts and results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from PIL import Image

from tests.tasks.conftest import examined, square_at, tiny_backbone
from vitscope.core.results import Label
from vitscope.data.batches import SkippedImages
from vitscope.data.davis import VideoSet, open_videos
from vitscope.features.dense import dense_features, whole_features
from vitscope.models.backbone import Backbone
from vitscope.tasks import video_segmentation as video
from vitscope.tasks.video_segmentation import (
    COPIED,
    CORRECTED,
    PAPER,
    SequenceScores,
    Video,
    VideoScores,
    davis_palette,
    write_masks,
)

LABEL = Label("m", "none", "d", "p")


def shown(mask: np.ndarray, patch: int = 8) -> torch.Tensor:
    """Features of a network that sees nothing but the labels: (1, h, w, C)."""
    cells = torch.from_numpy(mask[patch // 2 :: patch, patch // 2 :: patch].astype(np.int64))
    return torch.nn.functional.one_hot(cells, 4).float()[None]


@pytest.mark.parametrize("protocol", [CORRECTED, PAPER])
def test_a_network_that_sees_the_objects_follows_them(protocol: video.Protocol) -> None:
    masks = [square_at(8 * number, 16, side=16) for number in range(5)]  # moves a token per frame
    scores = video.evaluate([shown(mask) for mask in masks], masks, (8, 8), protocol=protocol)
    assert scores is not None
    assert scores.region.shape == (1, 1, 3)  # the first and the last frame do not count
    assert scores.region.min() > 0.6  # a square comes back with round corners: 8-pixel tokens, upsampled
    # copied, half of the square is left where it was after a frame, which is a third of both together; then nothing
    assert scores.copied_region.tolist() == [[pytest.approx([1 / 3, 0, 0])]]
    assert scores.copied_boundary.shape == (1, 1, 3)


def test_labels_with_gaps_keep_their_numbers() -> None:
    masks = [square_at(8, 8, label=3), square_at(16, 8, label=3), square_at(24, 8, label=3)]
    found = list(video.follow([shown(mask) for mask in masks], masks[0], (8, 8)))
    assert [sorted(np.unique(frame).tolist()) for frame in found] == [[0, 3]] * 3
    assert np.array_equal(found[0][0], masks[0])  # the given mask, not what the grid makes of it


def test_objects_absent_from_the_first_frame_are_not_counted() -> None:
    masks = [square_at(8, 8) for _ in range(4)]
    masks[2][40:48, 40:48] = 2
    scores = video.evaluate([shown(mask) for mask in masks], masks, (8, 8))
    assert scores is not None
    assert scores.region.shape == (1, 1, 2)


def test_a_video_without_masks_between_first_and_last_is_followed_but_not_scored() -> None:
    masks = [square_at(8, 8) for _ in range(4)]
    seen: list[int] = []
    truth = [masks[0], None, None, masks[3]]
    scores = video.evaluate([shown(mask) for mask in masks], truth, (8, 8), watch=lambda number, _: seen.append(number))
    assert scores is None
    assert seen == [0, 1, 2, 3]


def test_a_datasets_score_is_the_mean_over_objects() -> None:
    one = SequenceScores("one", *(np.full((layers, 1, 4), x) for layers, x in ((2, 0.8), (2, 0.6), (1, 0.5), (1, 0.3))))
    three = SequenceScores(
        "three", *(np.full((layers, 3, 4), x) for layers, x in ((2, 0.4), (2, 0.2), (1, 0.9), (1, 0.7)))
    )
    rows = {(r["measure"], r["variant"], r["layer"]): r for t in VideoScores((one, three)).rows(LABEL, "corrected")
            for r in t.rows(named=True)}  # fmt: skip
    assert rows["video_j_mean", "", 1]["value"] == pytest.approx((0.8 + 3 * 0.4) / 4)
    assert rows["video_j&f", "", 2]["value"] == pytest.approx((0.7 + 3 * 0.3) / 4)
    assert rows["video_j&f", "three 2", 1]["value"] == pytest.approx(0.3)
    assert rows["video_j_recall", "", 1]["value"] == pytest.approx(0.25)
    assert rows["video_j&f", "", 1]["ci_low"] == pytest.approx(0.3)  # both draws are the sequence of three
    assert rows["video_j&f", "", 1]["ci_high"] == pytest.approx(0.7)
    assert rows["video_j&f", "", 1]["n"] == 2
    assert rows["video_j_mean", COPIED, None]["value"] == pytest.approx((0.5 + 3 * 0.9) / 4)
    assert rows["video_j&f", COPIED, None]["value"] == pytest.approx((0.4 + 3 * 0.8) / 4)


def still(root: Path, frames: int = 5) -> VideoSet:
    """A video in which nothing moves: copying the first mask is perfect."""
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 96, 3), dtype=np.uint8))
    mask = np.zeros((64, 96), np.uint8)
    mask[21:30, 37:44] = 1
    for folder in ("JPEGImages/480p/clip", "Annotations/480p/clip", "ImageSets/2017"):
        (root / folder).mkdir(parents=True)
    for number in range(frames):
        image.save(root / f"JPEGImages/480p/clip/{number:05}.jpg")
        Image.fromarray(mask).save(root / f"Annotations/480p/clip/{number:05}.png")
    (root / "ImageSets/2017/val.txt").write_text("clip\n")
    return open_videos(root)


def test_a_network_below_copying_the_first_mask_is_told(backbone: Backbone, tmp_path: Path) -> None:
    _, outcome = examined(backbone, still(tmp_path / "davis"), Video(), tmp_path / "store")
    rows = {(r["measure"], r["variant"]): r["value"] for t in outcome.tables for r in t.rows(named=True)}
    assert {rows[measure, COPIED] for measure in ("video_j_mean", "video_f_mean", "video_j&f")} == {1}
    (note,) = outcome.notes
    assert "is below that of copying the first mask, 1.000 (corrected): a larger short_side" in note


def test_a_larger_short_side_gives_more_tokens(backbone: Backbone, tmp_path: Path) -> None:
    """Objects that come back from a finer grid come back better."""
    assert dense_features(backbone, Image.new("RGB", (96, 64)), short_side=128).shape[1:3] == (16, 24)
    data = still(tmp_path / "davis")
    coarse, fine = (states(backbone, data, Video(short_side=side))[0]["region"].mean() for side in (None, 256))
    assert fine > coarse


def test_without_tiles_a_frame_is_squeezed_into_one_input(backbone: Backbone, tmp_path: Path) -> None:
    """Features are those that timm itself gives for the squeezed frame."""
    frame = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 96, 3), dtype=np.uint8))
    height, width = backbone.preprocessing.size
    squeezed = torch.from_numpy(np.array(frame.resize((width, height), Image.Resampling.BICUBIC)))
    images = backbone.preprocessing.normalise(squeezed.permute(2, 0, 1)[None])
    with torch.no_grad():
        layers = backbone.module.get_intermediate_layers(images, n=backbone.depth, norm=False)  # type: ignore[operator]
    expected = torch.stack([layer[0].unflatten(0, backbone.layout.grid) for layer in layers])
    torch.testing.assert_close(whole_features(backbone, frame), expected, rtol=1e-4, atol=1e-5)
    _, outcome = examined(backbone, still(tmp_path / "davis"), Video(dense=False), tmp_path / "store")
    assert any("video_j&f" in table["measure"].to_list() for table in outcome.tables)
    assert "tiles (dense) let objects cover more tokens" in outcome.notes[0]
    with pytest.raises(ValueError, match="short_side is of frames that are cut into tiles"):
        Video(dense=False, short_side=128)


def states(backbone: Backbone, data: VideoSet, analysis: Video) -> list[Mapping[str, torch.Tensor]]:
    """Of each sequence."""
    return [analysis.drive(backbone, data, range(i, i + 1), SkippedImages()) for i in range(len(data))]


def test_layer_l_of_one_extraction_is_a_run_that_extracts_only_layer_l(davis: Path) -> None:
    data = open_videos(davis)
    every = states(tiny_backbone(depth=3), data, Video())
    for layer in range(3):
        cut = tiny_backbone(depth=3)
        cut.module.blocks = cut.module.blocks[: layer + 1]  # type: ignore[index]  # the network, stopped after this layer
        last = states(replace(cut, module=cut.module), data, Video())
        for a, b in zip(every, last, strict=True):
            assert torch.equal(a["region"][layer], b["region"][-1])
            assert torch.equal(a["boundary"][layer], b["boundary"][-1])


def test_official_layout_with_void_late_objects_and_grey_frames(
    backbone: Backbone, davis: Path, tmp_path: Path
) -> None:
    data = open_videos(davis)
    found, outcome = examined(backbone, data, Video(masks=True), tmp_path / "store")
    shapes = {data.sequences[units.start].name: state["region"].shape for units, state in found.states()}
    assert shapes == {"pair": (3, 2, 4), "late": (3, 1, 4)}  # layers, objects of the first frame, frames that count
    out = tmp_path / "results"
    assert write_masks(out, data, found.states()) == 3 * 2 * 6
    files = sorted(path.relative_to(out).as_posix() for path in out.rglob("*.png"))
    assert len(files) == 3 * 2 * 6
    assert files[0] == "layer-01/late/00000.png"
    first = Image.open(out / "layer-02/pair/00000.png")
    assert first.mode == "P"
    given = data.sequences[0].labels(0)
    np.testing.assert_array_equal(np.asarray(first), given)  # void is background by now
    assert (first.getpalette() or [])[:9] == [0, 0, 0, 128, 0, 0, 0, 128, 0]
    assert outcome.notes == []


def test_both_protocols_run_and_name_their_rows(backbone: Backbone, davis: Path, tmp_path: Path) -> None:
    data = open_videos(davis)
    protocols: tuple[Literal["corrected", "paper"], ...] = ("paper", "corrected")
    for protocol in protocols:
        _, outcome = examined(backbone, data, Video(protocol=protocol), tmp_path / "store")
        rows = outcome.tables
        assert {value for table in rows for value in table["protocol"].to_list()} == {protocol}
        assert all(0 <= v <= 1 for t in rows for m, v in zip(t["measure"], t["value"], strict=True) if "decay" not in m)


def test_a_folder_of_frames_with_a_first_mask(backbone: Backbone, tmp_path: Path) -> None:
    folder = tmp_path / "walk"
    folder.mkdir()
    for number in range(3):
        Image.new("RGB", (50, 40), (number * 40, 80, 90)).save(folder / f"frame{number}.png")
    Image.fromarray(square_at(10, 10, size=(50, 40)) * np.uint8(255)).save(folder / "mask.png")
    data = open_videos(folder)
    found, outcome = examined(backbone, data, Video(masks=True), tmp_path / "store")
    assert outcome.tables == []
    assert any("could not be scored" in note for note in outcome.notes)
    assert write_masks(tmp_path / "masks", data, found.states()) == 3 * 3
    sizes = {Image.open(path).size for path in (tmp_path / "masks").rglob("*.png")}
    assert sizes == {(50, 40)}


def test_half_precision_storage_hardly_changes_features(backbone: Backbone, davis: Path) -> None:
    frame = open_videos(davis).sequences[0].frame(0)
    full, half = (dense_features(backbone, frame, dtype=dtype) for dtype in (torch.float32, torch.float16))
    torch.testing.assert_close(half.float(), full, rtol=1e-3, atol=1e-4)


def test_the_palette_is_pascals() -> None:
    palette = np.frombuffer(davis_palette(), np.uint8).reshape(256, 3)
    assert palette[3].tolist() == [128, 128, 0]
    assert palette[8].tolist() == [64, 0, 0]
    assert palette[255].tolist() == [224, 224, 192]
    assert len(np.unique(palette, axis=0)) == 256
