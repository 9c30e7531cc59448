"""What a study needs is told completely, whether it is here or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import make_photos
from tests.support.datasets import write_davis
from vitscope.api import run_study
from vitscope.cli import main
from vitscope.core.errors import VitscopeError
from vitscope.models.catalogue import CATALOGUE
from vitscope.pipeline.estimate import operations
from vitscope.pipeline.needs import needs_of
from vitscope.pipeline.plan import make_plan
from vitscope.pipeline.study import parse_study, read_study

STUDY = Path(__file__).parents[2] / "studies" / "teaching-matters.toml"


@pytest.fixture(autouse=True)
def _nothing_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITSCOPE_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


def test_the_paper_s_study_is_complete() -> None:
    study = read_study(STUDY)
    names = [model.name for model in study.models]
    assert {name for name in names if name in CATALOGUE} == {e.name for e in CATALOGUE.values() if e.group == "study"}
    assert len(names) == 20 + 2
    data = [(kind, entry.name) for kind, entry in study.data.entries()]
    assert len(data) == 10
    assert {name for _, name in data} == {
        "imagenet",
        "imagenet-50",
        "coco-val2017",
        "partimagenet",
        "roxford5k",
        "rparis6k",
        "davis-2017",
        "spair-71k",
    }
    assert study.protocols == ["corrected", "paper"]
    (objects,) = {analysis.dense for analysis in study.chosen() if analysis.name == "objects"}  # type: ignore[attr-defined]
    assert objects


def test_everything_that_is_missing_is_listed_and_counted_at_its_published_size() -> None:
    study = read_study(STUDY)
    needs = needs_of(study)
    assert [need.here for need in needs.rows] == [False] * 16 + [True] * 2 + [False] * 14
    assert len(needs.specs) == 22
    assert all("into" in need.words or "--download" in need.words for need in needs.missing)
    counts = {dataset.title: dataset.count for dataset in needs.datasets}
    assert counts["ImageNet"] == 1_331_167
    assert counts["PartImageNet"] == 5500
    assert counts["PartImageNet, 100 per super-category"] == 1100
    assert counts["COCO val2017, 1,000 images"] == 1000
    with pytest.raises(VitscopeError, match=r"30 things are missing: imagenet-50, .*--dry-run"):
        run_study(study)


def test_each_dataset_goes_to_the_analyses_it_is_for() -> None:
    study = read_study(STUDY)
    needs = needs_of(study.model_copy(update={"models": study.models[6:7]}))
    data = [dataset for dataset in needs.datasets if dataset.kind == "masks"]
    plan = make_plan(needs.specs, data, study.chosen())
    asked = [(plan.datasets[task.dataset].title, task.analysis.name) for task in plan.tasks]
    assert asked == [
        ("COCO val2017", "saliency"),
        ("PartImageNet", "saliency"),
        ("COCO val2017, 1,000 images", "objects"),
        ("COCO val2017, 1,000 images", "objects"),
        ("PartImageNet, 100 per super-category", "objects"),
        ("PartImageNet, 100 per super-category", "objects"),
    ]
    watched = {watch.statistic.name for one in plan.passes for watch in one.watch.values() if watch is not None}
    assert watched == {"saliency"}  # nobody pools or clusters whole images for nobody


def test_the_root_of_a_study_holds_its_datasets(tmp_path: Path) -> None:
    write_davis(tmp_path / "mine" / "DAVIS")
    values = {
        "title": "t",
        "root": "mine",
        "models": [{"name": "random:vit_tiny_patch16_224"}, {"name": "moco-b16"}],
        "data": {"video": {"name": "davis-2017"}, "images": {"path": "nowhere"}},
    }
    needs = needs_of(parse_study(values, tmp_path))
    assert [(need.kind, need.here) for need in needs.rows] == [
        ("images", False),
        ("video", True),
        ("weights", True),
        ("weights", False),
    ]
    assert str(tmp_path / "mine" / "weights") in needs.missing[1].words
    assert "there is no" in needs.missing[0].words
    assert [dataset.kind for dataset in needs.datasets] == ["video"]


def test_dry_run_lists_all_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    make_photos(tmp_path / "photos", count=8)
    (tmp_path / "s.toml").write_text(
        'title = "t"\n[[models]]\nname = "random:vit_tiny_patch16_224"\n[[models]]\nname = "moco-s16"\n'
        '[[data.images]]\npath = "photos"\n[[data.video]]\nname = "davis-2017"\n[[data.images]]\npath = "nowhere"\n'
    )
    main(["run", "s.toml", "--dry-run"])
    text = " ".join(capsys.readouterr().out.split())
    for words in ("nowhere", "vit-s-300ep.pth.tar", "davischallenge.org", "missing: 3 of 5", "1,999", "DAVIS-2017 val"):
        assert words in text
    assert not (tmp_path / "runs").exists()


def test_operations_of_a_known_network() -> None:
    """ViT-B/16 at 224 pixels: 17.6 billion multiply-adds, as is published of it."""
    (spec,) = needs_of(
        parse_study(
            {"title": "t", "models": [{"name": "random:vit_base_patch16_224"}], "data": {"images": {"path": "x"}}},
            Path(),
        )
    ).specs
    assert operations(spec) == pytest.approx(17.6e9, rel=0.05)
