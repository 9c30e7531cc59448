"""The zoo's driver on a tiny zoo: slices, locks, status, shipping."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.teaching.tiny import ROTARY as OPTIONS
from vitscope.models import load_model
from vitscope.teaching.loop import CHECKPOINT
from zoo import courses, driver, shipping, world


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(courses, "OPTIONS", OPTIONS)
    monkeypatch.setattr(courses, "SIZE", 16)
    monkeypatch.setattr(courses, "IMAGES", 64)
    taught = {"fs": courses.Course(batch=8, images=80), "mae": courses.Course(batch=16, images=96)}
    monkeypatch.setattr(courses, "COURSES", taught)
    monkeypatch.setattr(
        courses,
        "monitor",
        lambda folder, train, size: world.monitor(folder, train, size, bank=32, queries=16),
    )
    return tmp_path


def test_training_ends_when_every_course_is_done_and_ships_cards(
    tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    driver.status(tiny)
    assert capsys.readouterr().out == "fs    not begun\nmae   not begun\n"
    driver.train(tiny, minutes=0.002)
    steps = {key: torch.load(tiny / key / CHECKPOINT, weights_only=True)["step"] for key in ("fs", "mae")}
    assert steps == {"fs": 10, "mae": 6}
    driver.status(tiny)
    assert "fs           80 images" in capsys.readouterr().out
    driver.status(tiny, look=True)
    said = capsys.readouterr().out
    assert said.count("UNC cls") == said.count("nearest head") == 2
    shipping.ship(tiny, tiny / "shelf", share=0.5)
    after = {key: torch.load(tiny / key / CHECKPOINT, weights_only=True)["step"] for key in ("fs", "mae")}
    assert after == steps  # the trunk is left as it was
    names = ("fs", "mae", "none")
    cards = {key: load_model(tiny / "shelf" / f"{key}.toml") for key in names}
    assert [cards[key].teaching for key in names] == ["fs", "mae", "none"]
    assert len({cards[key].weights_digest for key in names}) == 3


def test_the_least_taught_is_chosen_and_a_taught_one_is_left_alone(tiny: Path) -> None:
    driver.train(tiny, minutes=10, only=("mae",))
    with (
        courses.locked(tiny / "fs" / "lock", wait=False) as mine,
        courses.locked(tiny / "fs" / "lock", wait=False) as other,
    ):
        assert mine
        assert not other
    assert driver.advanced(tiny, "mae") == 1.0 > driver.advanced(tiny, "fs") == 0.0
    driver.train(tiny, minutes=10)
    assert driver.steps_made(tiny / "fs") == 10


def test_a_network_is_kept_at_the_moments_of_its_course(tiny: Path) -> None:
    """80 images by 8: after the first step, and after 1, 2, 5 and 10; a card each, that loads."""
    driver.train(tiny, minutes=0.0005, only=("fs",))
    folder = tiny / "fs" / "moments"
    assert sorted(int(path.stem) for path in folder.glob("*.toml")) == [1, 2, 5, 10]
    first, last = load_model(folder / "1.toml"), load_model(folder / "10.toml")
    assert first.teaching == "fs"
    assert first.provenance["images_seen"] == 8
    assert first.weights_digest != last.weights_digest


def test_rendered_images_are_found_again_and_test_sets_differ(tiny: Path) -> None:
    first = world.rendered(tiny, "train", 20, 16)
    written = (tiny / next(tiny.glob("train-*.npy")).name).stat().st_mtime_ns
    again = world.rendered(tiny, "train", 20, 16)
    assert next(tiny.glob("train-*.npy")).stat().st_mtime_ns == written
    assert first.digest == again.digest
    assert torch.equal(first.take(range(20)), again.take(range(20)))
    assert world.rendered(tiny, "unc", 20, 16, correlation=0.0).digest != first.digest
    assert first.labels is not None
    assert first.captions is not None
    assert first.labels.tolist() == [i % len(first.classes) for i in range(20)]
    assert all(said[0] for said in first.captions)
