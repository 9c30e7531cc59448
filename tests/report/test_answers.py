"""Neighbours, matches and masks on the page and among the figures: drawn from what was stored, no network is run."""

from __future__ import annotations

import base64
import io
import re
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
from vitscope.report.tasks_pictures import QUESTIONS, Question, Reply, neighbour_questions, telling

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


def test_all_models_answer_the_same_questions_side_by_side(
    answered: StudyResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(Backbone, "trace")  # whoever ran a network now would be an error
    found = gather(answered.outcome()).data["answers"]
    kinds = [answer["kind"] for answer in found]
    assert kinds == ["nearest neighbours"] * QUESTIONS + ["retrieval"] * QUESTIONS + ["video"]
    for answer in found:
        head, _, data = answer["image"].partition(",")
        assert head == "data:image/webp;base64"
        assert Image.open(io.BytesIO(base64.b64decode(data))).width > 300


def test_questions_that_all_answer_stand_beside_those_that_nobody_does() -> None:
    def question(share: float) -> Question:
        return Question("", None, [Reply("model", 0, None, [i < 10 * share for i in range(10)])])

    asked = [question(share) for share in (0.5, 0.1, 1.0, 0.3, 0.9, 0.0, 0.7, 0.2)]
    assert [one.share for one in telling(asked, 6)] == [1.0, 0.0, 0.9, 0.1, 0.7, 0.2]
    assert len(telling(asked[:3], 6)) == 3


def test_what_is_called_right_is_of_the_same_class(answered: StudyResults) -> None:
    """Counted here from what was stored, by the names of folders."""
    dataset, best = answered.datasets[0], {"First": 3, "Second": 5}
    questions = neighbour_questions(dataset, best, lambda title, name: answered.maps.get(f"{title}/{name}"))
    assert len(questions) == len(answered.maps["First/knn.queries"])
    for query, asked in zip(answered.maps["First/knn.queries"].tolist(), questions, strict=True):
        for reply in asked.replies:
            row = answered.maps[f"{reply.model}/knn.queries"].tolist().index(query)
            near = answered.maps[f"{reply.model}/knn.neighbours"][row, best[reply.model], : len(reply.right)].tolist()
            folders = [dataset.train[place].path.parent.name for place in near]
            assert list(reply.right) == [folder == dataset.test[query].path.parent.name for folder in folders]


def test_the_same_answers_are_among_the_figures(answered: StudyResults, tmp_path: Path) -> None:
    names = {path.name for path in answered.write_figures(tmp_path)}
    assert {"neighbours-1.png", "neighbours-6.png", "found-1.png", "found-6.png", "video-video.png"} <= names


def test_results_without_their_data_have_no_answers(answered: StudyResults, tmp_path: Path) -> None:
    answered.save(tmp_path)
    assert gather(vitscope.load_results(tmp_path).outcome()).data["answers"] == []


def test_answers_are_picked_by_task_and_question(answered: StudyResults, open_page: Opener) -> None:
    page = open_page(answered.outcome())
    figure = page.locator("#chart-answers")
    image = figure.locator("img")
    image.scroll_into_view_if_needed()
    expect(image).to_have_attribute("alt", re.compile("^nearest neighbours of labelled: 1: "))
    assert image.evaluate("img => img.complete && img.naturalWidth") > 300
    first = image.get_attribute("src")
    figure.get_by_role("radio", name=re.compile("^2: ")).check()
    expect(image).to_have_attribute("alt", re.compile("^nearest neighbours of labelled: 2: "))
    assert image.get_attribute("src") != first
    figure.get_by_role("radio", name="video").first.check()
    expect(image).to_have_attribute("alt", "video of video: video")
    figure.get_by_role("radio", name="retrieval").check()
    expect(image).to_have_attribute("alt", re.compile("^retrieval of individuals: 1: query "))
