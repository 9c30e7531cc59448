"""What a study will cost, told before it runs: held to what it then costs."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import make_photos
from tests.pipeline.studies import NAMES, describe, masked_photos
from tests.tasks.conftest import make_roxford
from vitscope.attention.analysis import Attention
from vitscope.cli import main
from vitscope.data import openers
from vitscope.data.dataset import LabelledSet
from vitscope.data.samples import ListedFiles, SampleList
from vitscope.models.spec import resolve
from vitscope.pipeline.engines import Local
from vitscope.pipeline.estimate import estimate
from vitscope.pipeline.evaluate import run
from vitscope.pipeline.plan import make_plan
from vitscope.pipeline.store import Store
from vitscope.tasks.knn import Knn


def test_dry_run_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.chdir(tmp_path)
    make_photos(tmp_path / "photos", count=72, classes=3)
    (tmp_path / "s.toml").write_text(
        f'title = "t"\nout = "out"\n[[models]]\nname = "{NAMES["A"]}"\nsize = 32\n[data.images]\npath = "photos"\n'
    )
    main(["run", "s.toml", "--dry-run"])
    text = capsys.readouterr().out
    assert "8 jobs to do" in text  # two shards and six analyses
    assert "72" in text
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["images", "labelled", "masks", "retrieval"])
def test_disk_is_what_is_then_written(tmp_path: Path, kind: str) -> None:
    photos = make_photos(tmp_path / "photos", count=200, classes=4) if kind in ("images", "labelled") else tmp_path
    data = {"images": photos, "labelled": photos}
    if kind == "masks":
        data["masks"] = masked_photos(tmp_path / "masked", count=80)
    if kind == "retrieval":
        data["retrieval"] = make_roxford(tmp_path / "roxford5k")
    study = describe(tmp_path / "out", {kind: data[kind]}, ("A",))
    plan = make_plan(study.specs(), study.datasets(), study.chosen())
    told = sum(cost.disk for cost in estimate(plan, None).rows)
    store = Store(study.out)
    run(plan, store, Local())
    real = sum(file.stat().st_size for file in (study.out / "states").rglob("*") if file.is_file())
    assert 2 / 3 < told / real < 3 / 2
    done = estimate(plan, store)
    assert (done.jobs, done.seconds, sum(cost.disk for cost in done.rows)) == (0, 0, 0)


def _listed(count: int, classes: int = 1000) -> SampleList:
    """So many images, of which only the names are there."""
    names = [f"{i % classes:04}/{i:07}.jpg" for i in range(count)]
    labels = np.arange(count) % classes
    return SampleList(
        ListedFiles(Path("/nowhere"), names, ["1@2"] * count, labels.tolist()),
        classes=[f"n{i:08}" for i in range(classes)],
    )


def test_disk_at_the_size_of_imagenet() -> None:
    """k-NN: CLS and mean of 12 layers, 768 numbers of two bytes each, for 1.33 million images. Once told as 10 MB."""
    imagenet = LabelledSet("ImageNet", _listed(1_281_167), _listed(50_000))
    spec = resolve("random:vit_base_patch16_224")
    (cost,) = estimate(make_plan([spec], [imagenet], [Knn(dtype="float16")]), None).rows
    assert cost.disk == pytest.approx(1_331_167 * 2 * 12 * 768 * 2, rel=0.05)
    assert cost.images == 1_331_167
    assert cost.jobs == 501 + 20 + 1  # of 2,560 images each, and one that reads them all


@pytest.mark.slow
def test_time_is_told_within_a_factor_of_three(tmp_path: Path) -> None:
    """A network of the usual input size; tracing is what takes the time."""
    photos = openers.images(make_photos(tmp_path / "photos", count=192, size=(300, 240)))
    plan = make_plan([resolve("random:vit_tiny_patch16_224")], [photos], [Attention()])
    told = estimate(plan, None).seconds
    began = time.monotonic()
    run(plan, Store(tmp_path / "out"), Local())
    real = time.monotonic() - began
    assert 1 / 3 < told / real < 3
