"""The same study on a Ray cluster of this machine."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.conftest import make_photos
from tests.pipeline.studies import describe, logged, written
from vitscope.api import run_study
from vitscope.core.errors import VitscopeError
from vitscope.pipeline.study import Study


def study(photos: Path, out: Path, **settings: object) -> Study:
    data = {"images": photos, "labelled": photos}
    return describe(out, data, ("A", "C"), title="pool", analyses=["attention", "knn"], **settings)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ray_gives_what_this_process_gives_and_resumes(tmp_path: Path) -> None:
    photos = make_photos(tmp_path / "photos", count=48, classes=3)
    run_study(study(photos, tmp_path / "here"))
    run_study(study(photos, tmp_path / "ray", engine="ray", processes=2))
    assert written(tmp_path / "ray") == written(tmp_path / "here")
    before = logged(tmp_path / "ray", "traced")
    assert before == logged(tmp_path / "here", "traced")
    run_study(study(photos, tmp_path / "ray"))  # the engine is no part of a job: nothing is left to do
    assert logged(tmp_path / "ray", "traced") == before


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_an_error_on_the_cluster_is_told_in_its_own_words(tmp_path: Path) -> None:
    broken = make_photos(tmp_path / "broken", count=12, classes=3)
    (broken / "class0" / "000.png").write_text("not an image")
    with pytest.raises(VitscopeError, match="more than 0 images are unusable"):
        run_study(study(broken, tmp_path / "out", engine="ray", skip_limit=0))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_cluster_that_ended_without_a_word_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray notes where the last cluster of a machine was, and asks there for minutes if nobody says that it is gone."""
    photos = make_photos(tmp_path / "photos", count=12, classes=3)
    with tempfile.TemporaryDirectory(dir="/tmp") as home:  # sockets have short names
        (Path(home) / "ray").mkdir()
        (Path(home) / "ray" / "ray_current_cluster").write_text("127.0.0.1:6399")
        monkeypatch.setenv("RAY_TMPDIR", home)
        monkeypatch.delenv("RAY_ADDRESS", raising=False)
        begun = time.monotonic()
        run_study(study(photos, tmp_path / "out", engine="ray"))
        assert time.monotonic() - begun < 120


def test_without_ray_the_remedy_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    photos = make_photos(tmp_path / "photos", count=12, classes=3)
    with pytest.raises(VitscopeError, match=r"vitscope\[ray\]"):
        run_study(study(photos, tmp_path / "out", engine="ray"))
