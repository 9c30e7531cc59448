"""Neighbours, matches and masks on the page and among the figures: drawn from what was stored, no network is run."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

import vitscope
from tests.conftest import make_photos
from tests.report.conftest import Opener
from vitscope.api import StudyResults
from vitscope.models.backbone import Backbone
from vitscope.report.page.payload import gather

MODELS = {"First": "dino", "Second": "mae"}


def make_video(folder: Path, frames: int = 4) -> Path:
    """A square that moves to the right, and where it was in the first frame."""
    folder.mkdir()
    for number in range(frames):
        pixels = np.full((48, 64, 3), 40, np.uint8)
        pixels[16:32, 8 + 6 * number : 24 + 6 * number] = (220, 120, 30)
        Image.fromarray(pixels).save(folder / f"{number:02}.png")
    mask = np.zeros((48, 64), np.uint8)
    mask[16:32, 8:24] = 1
    Image.fromarray(mask).save(folder / "mask.png")
    return folder


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> StudyResults:
    """Two untrained networks, asked about classes, individuals and a video."""
    root = tmp_path_factory.mktemp("answers")
    specs = [
        vitscope.resolve("random:vit_tiny_patch16_224", size=32, seed=seed, title=title, teaching=teaching)
        for seed, (title, teaching) in enumerate(MODELS.items())
    ]
    for split in ("train", "val"):
        make_photos(root / "labelled" / split, count=12)
    data = [
        vitscope.labelled(root / "labelled"),
        vitscope.retrieval(make_photos(root / "individuals", count=12)),
        vitscope.video(make_video(root / "video")),
    ]
    return vitscope.evaluate(specs, data, store=root / "store")


def test_every_model_has_its_answers_and_all_share_a_video(
    answered: StudyResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(Backbone, "trace")  # whoever ran a network now would be an error
    found = gather(answered.outcome()).data["answers"]
    assert [(answer["kind"], answer["which"], answer["model"]) for answer in found] == [
        ("nearest neighbours", "First", 0),
        ("nearest neighbours", "Second", 1),
        ("retrieval", "First", 0),
        ("retrieval", "Second", 1),
        ("video", "video", None),
    ]
    for answer in found:
        head, _, data = answer["image"].partition(",")
        assert head == "data:image/webp;base64"
        assert Image.open(io.BytesIO(base64.b64decode(data))).width > 300


def test_the_same_answers_are_among_the_figures(answered: StudyResults, tmp_path: Path) -> None:
    names = {path.name for path in answered.write_figures(tmp_path)}
    assert {
        "neighbours-first.png", "neighbours-second.png", "found-first.png", "found-second.png", "video-video.png",
    } <= names  # fmt: skip


def test_results_without_their_data_have_no_answers(answered: StudyResults, tmp_path: Path) -> None:
    answered.save(tmp_path)
    assert gather(vitscope.load_results(tmp_path).outcome()).data["answers"] == []


def test_answers_are_picked_by_task_and_model_and_follow_isolation(answered: StudyResults, open_page: Opener) -> None:
    page = open_page(answered.outcome())
    figure = page.locator("#chart-answers")
    image = figure.locator("img")
    image.scroll_into_view_if_needed()
    expect(image).to_have_attribute("alt", "nearest neighbours of labelled: First")
    assert image.evaluate("img => img.complete && img.naturalWidth") > 300
    first = image.get_attribute("src")
    figure.get_by_role("radio", name="Second").check()
    expect(image).to_have_attribute("alt", "nearest neighbours of labelled: Second")
    assert image.get_attribute("src") != first
    expect(figure.get_by_role("radio", name="Second")).to_be_focused()
    figure.get_by_role("radio", name="video").first.check()
    expect(image).to_have_attribute("alt", "video of video: video")
    figure.get_by_role("radio", name="retrieval").check()
    page.locator(".legend").get_by_role("button", name="MAE").click()
    expect(image).to_have_attribute("alt", "retrieval of individuals: Second")
    figure.get_by_role("radio", name="First").check()  # asking for a model brings it back
    expect(image).to_have_attribute("alt", "retrieval of individuals: First")
    expect(page.locator("#show-all")).to_be_hidden()
