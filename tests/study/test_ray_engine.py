"""The same study on a Ray cluster of this machine."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tests.conftest import make_photos
from tests.study.test_engines import KEYS, describe
from vitscope.errors import VitscopeError
from vitscope.study.folder import StudyFolder
from vitscope.study.run import run_study


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ray_gives_what_this_process_gives_and_resumes(tmp_path):
    photos = make_photos(tmp_path / "photos", count=48, classes=3)
    here = run_study(describe(photos, tmp_path / "here")).results.table.sort(KEYS)
    there = run_study(describe(photos, tmp_path / "ray", engine="ray", processes=2)).results.table.sort(KEYS)
    assert here.select(KEYS).equals(there.select(KEYS))
    for column in ("value", "ci_low", "ci_high"):
        assert np.allclose(here[column], there[column], rtol=1e-5, atol=1e-7, equal_nan=True)
    run_study(describe(photos, tmp_path / "ray"))  # the engine is no part of a job: nothing is left to do
    events = [event["event"] for event in StudyFolder(tmp_path / "ray", "pool").events()]
    assert events.count("traced") == events.count("already done") == 4


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_an_error_on_the_cluster_is_told_in_its_own_words(tmp_path):
    broken = make_photos(tmp_path / "broken", count=12, classes=3)
    (broken / "class0" / "000.png").write_text("not a picture")
    with pytest.raises(VitscopeError, match="more than 0 images are unusable"):
        run_study(describe(broken, tmp_path / "out", engine="ray", skip_limit=0))


def test_without_ray_the_remedy_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    photos = make_photos(tmp_path / "photos", count=12, classes=3)
    with pytest.raises(VitscopeError, match=r"vitscope\[ray\]"):
        run_study(describe(photos, tmp_path / "out", engine="ray"))
