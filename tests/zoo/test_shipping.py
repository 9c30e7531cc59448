"""Shipping can be interrupted: a cool-down that was done is not done again, one that was begun goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.teaching.tiny import ROTARY as OPTIONS
from vitscope.teaching.loop import Run
from vitscope.teaching.teachers.base import Lesson
from zoo import courses, driver, shipping, world


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(courses, "OPTIONS", OPTIONS)
    monkeypatch.setattr(courses, "SIZE", 16)
    monkeypatch.setattr(courses, "IMAGES", 64)
    monkeypatch.setattr(courses, "COURSES", {"fs": courses.Course(batch=8, images=80)})
    monkeypatch.setattr(
        courses, "monitor", lambda folder, train, size: world.monitor(folder, train, size, bank=32, queries=16)
    )
    driver.train(tmp_path)
    return tmp_path


def counted(monkeypatch: pytest.MonkeyPatch, stop_after: int | None = None) -> list[int]:
    """The steps that are made from now on; after some of them the run is stopped, its checkpoint written."""
    steps: list[int] = []
    learn = Run.learn

    def counting(run: Run, lesson: Lesson) -> None:
        if len(steps) == stop_after:
            run.save()
            raise KeyboardInterrupt
        learn(run, lesson)
        steps.append(run.step)

    monkeypatch.setattr(Run, "learn", counting)
    return steps


def test_an_interrupted_cool_down_goes_on_and_gives_the_same_weights(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipping.ship(tiny, tiny / "at once", share=0.5, only=("fs",))
    (folder,) = (tiny / "cooled").iterdir()
    folder.rename(tiny / "elsewhere")
    with monkeypatch.context() as patch:
        made = counted(patch, stop_after=2)
        with pytest.raises(KeyboardInterrupt):
            shipping.ship(tiny, tiny / "in two", share=0.5, only=("fs",))
        assert made == [11, 12]  # the trunk has ten steps, the cool-down five
    with monkeypatch.context() as patch:
        made = counted(patch)
        shipping.ship(tiny, tiny / "in two", share=0.5, only=("fs",))
        assert made == [13, 14, 15]
    assert (tiny / "in two/fs.safetensors").read_bytes() == (tiny / "at once/fs.safetensors").read_bytes()
    with monkeypatch.context() as patch:
        made = counted(patch)
        shipping.ship(tiny, tiny / "again", share=0.5, only=("fs",))
        assert made == []
        shipping.ship(tiny, tiny / "longer", share=0.6, only=("fs",))
        assert made == [11, 12, 13, 14, 15, 16]  # another cool-down begins at the trunk
