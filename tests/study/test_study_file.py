"""Study files: what is valid, and one sentence for everything that is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vitscope.cli import main
from vitscope.commands.init import TEMPLATE
from vitscope.errors import VitscopeError
from vitscope.models.catalogue import CATALOGUE
from vitscope.study.file import NEEDS, ROLES, StudyFile, parse_study, read_study

MODELS = [{"name": "random:vit_tiny_patch16_224"}]


def parse(tmp_path, **values):
    (tmp_path / "photos").mkdir(exist_ok=True)
    whole = {"title": "t", "models": MODELS, "data": {"images": {"path": "photos"}}} | values
    return parse_study(whole, tmp_path)


def test_the_smallest_study(tmp_path):
    study = parse(tmp_path)
    assert study.chosen == ("attention", "features")
    assert study.roles == ("images",)
    assert study.data.images.path == tmp_path / "photos"
    assert study.out == tmp_path / "runs" / "study"


def test_every_analysis_belongs_to_a_role():
    assert set(NEEDS.values()) == set(ROLES)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"modells": MODELS}, "did you mean 'models'"),
        ({"data": {"image": {"path": "photos"}}}, "no setting 'data.image'; did you mean 'images'"),
        ({"data": {"images": {"path": "photos", "limt": 3}}}, "did you mean 'limit'"),
        ({"data": {"images": {"path": "photos", "limit": 0}}}, "data.images.limit"),
        ({"data": {"images": {"path": "nowhere"}}}, "there is no .*nowhere"),
        ({"data": {}}, "nothing to do"),
        ({"models": []}, "models"),
        ({"models": MODELS * 2}, "two models are called"),
        ({"models": [{"name": "x", "weights": "x.pth"}]}, "needs its architecture"),
        ({"analyses": ["video"]}, "needs data.video"),
        ({"analyses": ["telepathy"]}, "analyses"),
        ({"protocols": ["improved"]}, "protocols"),
        ({"title": ""}, "title"),
    ],
)
def test_what_is_wrong_is_told(tmp_path, change, match):
    with pytest.raises(VitscopeError, match=match):
        parse(tmp_path, **change)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(VitscopeError, match="vitscope init"):
        read_study(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("title = ")
    with pytest.raises(VitscopeError, match="not valid TOML"):
        read_study(tmp_path / "bad.toml")


def test_init_writes_a_valid_file_and_never_overwrites(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["init"])
    (tmp_path / "photos").mkdir()
    study = read_study(tmp_path / "study.toml")
    assert [model.name for model in study.models] == ["zoo/dino", "random:zoo/dino"]
    with pytest.raises(SystemExit) as stop:
        main(["init"])
    assert stop.value.code == 2
    assert "nothing was overwritten" in " ".join(capsys.readouterr().err.split())


def test_every_commented_role_of_the_template_is_valid(tmp_path):
    """Uncommented, the template describes every role."""
    for name in ("photos", "imagenet", "roxford5k", "DAVIS", "SPair-71k", "coco/annotations", "coco/val2017"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "coco/annotations/instances_val2017.json").write_text("{}")
    lines = [
        line.removeprefix("# ") if line.startswith(("# [data", "# path", "# images")) else line
        for line in TEMPLATE.splitlines()
    ]
    (tmp_path / "study.toml").write_text("\n".join(lines))
    assert read_study(tmp_path / "study.toml").roles == ROLES


ROOT = Path(__file__).parents[2]


def test_the_published_schema_is_today_s():
    assert json.loads((ROOT / "docs" / "study.schema.json").read_text()) == StudyFile.model_json_schema()


def test_the_papers_study_is_complete(tmp_path):
    """Everything but the weights and datasets is there: with empty folders in their place, the file is valid."""
    text = (ROOT / "studies" / "teaching-matters.toml").read_text()
    for name in ("imagenet-50", "PartImageNet", "imagenet", "roxford5k", "DAVIS", "SPair-71k"):
        (tmp_path / "datasets" / name).mkdir(parents=True)
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "s.toml").write_text(text)
    study = read_study(tmp_path / "studies" / "s.toml")
    named = {model.name for model in study.models}
    assert named >= {name for name, entry in CATALOGUE.items() if entry.group == "study"}
    assert study.roles == ROLES
    assert set(study.protocols) == {"corrected", "paper"}


def test_cards_and_their_untrained_twins_are_found_beside_the_file(tmp_path):
    values = {
        "title": "t",
        "models": [{"name": "mine.toml"}, {"name": "random:mine.toml"}, {"name": "zoo/dino"}],
        "data": {"images": {"path": "."}},
    }
    names = [model.name for model in parse_study(values, tmp_path).models]
    assert names == [f"{tmp_path}/mine.toml", f"random:{tmp_path}/mine.toml", "zoo/dino"]
