"""The zoo's driver on a tiny zoo: slices, locks, status, shipping."""

from __future__ import annotations

import pytest
import torch

from tests.teaching.tiny import OPTIONS
from vitscope.models import load
from vitscope.teaching.loop import CHECKPOINT
from vitscope.teaching.zoo import courses, driver, shipping, world


@pytest.fixture
def tiny(monkeypatch, tmp_path):
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


def test_training_ends_when_every_course_is_done_and_ships_cards(tiny, capsys):
    driver.status(tiny)
    assert capsys.readouterr().out == "fs    not begun\nmae   not begun\n"
    driver.train(tiny, minutes=0.002)
    steps = {key: torch.load(tiny / key / CHECKPOINT, weights_only=True)["step"] for key in ("fs", "mae")}
    assert steps == {"fs": 10, "mae": 6}
    driver.status(tiny)
    assert "fs           80 images" in capsys.readouterr().out
    driver.status(tiny, look=True)
    assert capsys.readouterr().out.count("UNC cls") == 2
    shipping.ship(tiny, tiny / "shelf", share=0.5)
    after = {key: torch.load(tiny / key / CHECKPOINT, weights_only=True)["step"] for key in ("fs", "mae")}
    assert after == steps  # the trunk is left as it was
    names = ("fs", "mae", "none")
    cards = {key: load(str(tiny / "shelf" / f"{key}.toml")) for key in names}
    assert [cards[key].teaching for key in names] == ["fs", "mae", "none"]
    assert len({cards[key].weights_digest for key in names}) == 3


def test_the_least_taught_is_chosen_and_a_taught_one_is_left_alone(tiny):
    driver.train(tiny, minutes=10, only=("mae",))
    with (
        courses.locked(tiny / "fs" / "lock", wait=False) as mine,
        courses.locked(tiny / "fs" / "lock", wait=False) as other,
    ):
        assert mine
        assert not other
    assert driver.time_spent(tiny / "mae") > driver.time_spent(tiny / "fs") == 0.0


def test_rendered_images_are_found_again_and_test_sets_differ(tiny):
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
