"""Study files: what is valid, and one sentence for everything that is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import make_photos
from tests.support.releases import since
from vitscope.cli import main
from vitscope.commands.init import TEMPLATE
from vitscope.core.errors import VitscopeError
from vitscope.data.openers import OPENERS
from vitscope.models.card import read_card
from vitscope.models.catalogue import CATALOGUE
from vitscope.models.spec import resolve
from vitscope.pipeline.registry import ANALYSES
from vitscope.pipeline.study import KINDS, Study, parse_study, read_study

MODELS = [{"name": "random:vit_tiny_patch16_224"}]
ROOT = Path(__file__).parents[2]
ALL_BY_THEMSELVES = {name for name, kind in ANALYSES.items() if not kind.asked_for}


def parse(tmp_path: Path, **values: Any) -> Study:
    (tmp_path / "photos").mkdir(exist_ok=True)
    whole = {"title": "t", "models": MODELS, "data": {"images": {"path": "photos"}}} | values
    return parse_study(whole, tmp_path)


def chosen(study: Study) -> list[str]:
    return [analysis.name for analysis in study.chosen()]


def test_the_smallest_study(tmp_path: Path) -> None:
    study = parse(tmp_path)
    assert chosen(study) == ["attention", "writes", "features", "calibration", "tokens", "pictures"]
    assert [kind for kind, _ in study.data.entries()] == ["images"]
    assert study.data.images[0].path == tmp_path / "photos"
    assert study.out == tmp_path / "runs" / "study"


def test_every_kind_of_data_has_an_analysis_an_opener_and_a_place_in_the_file() -> None:
    assert {analysis.kind for analysis in ANALYSES.values()} == set(KINDS) == set(OPENERS)
    assert set(Study.model_fields["data"].annotation.model_fields) == set(KINDS)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"modells": MODELS}, "did you mean 'models'"),
        ({"data": {"image": {"path": "photos"}}}, "no setting 'data.image'; did you mean 'images'"),
        ({"data": {"images": {"path": "photos", "limt": 3}}}, "no setting 'data.images.limt'; did you mean 'limit'"),
        ({"data": {"images": {"path": "photos", "limit": 0}}}, r"data\.images\.limit: "),
        ({"data": {"images": [{"path": "photos"}, {"path": "photos", "limit": 0}]}}, r"data\.images\.1\.limit: "),
        ({"data": {"images": {"limit": 3}}}, r"data\.images: say where it is"),
        ({"data": {"masks": {"name": "koko"}}}, "no dataset is called 'koko'"),
        ({"data": {"masks": {"name": "davis-2017"}}}, r"data\.masks: davis-2017 belongs under data\.video"),
        ({"data": {"images": {"path": "photos", "analyses": ["knn"]}}}, r"no analysis 'knn' takes it: .*attention"),
        ({"data": {"images": "photos"}}, r"data\.images: .*list"),
        ({"data": {}}, "nothing to do"),
        ({"models": []}, "models"),
        ({"models": MODELS * 2}, "two models are called"),
        ({"analyses": ["video"]}, "needs data.video"),
        ({"analyses": ["atention"]}, "there is no analysis 'atention': did you mean 'attention'"),
        ({"analyses": ["telepathy"]}, "there is no analysis 'telepathy'"),
        ({"analyses": {"features": {"seeds": 3}}}, r"analyses\.features: there is no setting 'seeds'"),
        ({"analyses": {"features": {"cluster_seeds": 0}}}, r"analyses\.features: cluster_seeds"),
        ({"analyses": {"knn": {"ks": [20]}}}, "analysis 'knn' needs data.labelled"),
        ({"protocols": ["improved"]}, "protocols"),
        ({"protocols": ["paper", "paper"]}, "protocols"),
        ({"title": ""}, "title"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, change: dict[str, Any], match: str) -> None:
    with pytest.raises(VitscopeError, match=match):
        parse(tmp_path, **change)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(VitscopeError, match="vitscope init"):
        read_study(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("title = ")
    with pytest.raises(VitscopeError, match="not valid TOML"):
        read_study(tmp_path / "bad.toml")


def test_init_writes_a_valid_file_and_never_overwrites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["init"])
    (tmp_path / "world/imagefolder/val").mkdir(parents=True)
    study = read_study(tmp_path / "study.toml")
    assert [spec.title for spec in study.specs()] == ["zoo/dino", "Untrained zoo/dino"]
    with pytest.raises(SystemExit) as stop:
        main(["init"])
    assert stop.value.code == 2
    assert "nothing was overwritten" in " ".join(capsys.readouterr().err.split())


def test_every_commented_kind_of_the_template_is_valid(tmp_path: Path) -> None:
    """Uncommented, the template describes every kind of data."""
    folders = ("world/imagefolder/val", "imagenet", "roxford5k", "DAVIS", "SPair-71k", "VOC2012")
    for name in (*folders, "coco/annotations", "coco/val2017"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "coco/annotations/instances_val2017.json").write_text("{}")
    lines = [
        line.removeprefix("# ") if line.startswith(("# [data", "# path", "# images")) else line
        for line in TEMPLATE.splitlines()
    ]
    (tmp_path / "study.toml").write_text("\n".join(lines))
    study = read_study(tmp_path / "study.toml")
    assert tuple(kind for kind, _ in study.data.entries()) == KINDS
    assert set(chosen(study)) == ALL_BY_THEMSELVES


@since("pydantic", 2, 11)  # whose schemas have other words for the same
def test_the_published_schema_is_today_s() -> None:
    assert json.loads((ROOT / "docs" / "study.schema.json").read_text()) == Study.model_json_schema()


def test_the_papers_study_is_complete(tmp_path: Path) -> None:
    """Everything but the weights and datasets is there: with empty folders in their place, the file is valid."""
    text = (ROOT / "studies" / "teaching-matters.toml").read_text()
    for name in ("imagenet-50", "PartImageNet", "coco", "imagenet", "roxford5k", "rparis6k", "DAVIS", "SPair-71k"):
        (tmp_path / "datasets" / name).mkdir(parents=True)
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "s.toml").write_text(text)
    study = read_study(tmp_path / "studies" / "s.toml")
    named = {model.name for model in study.models}
    assert named >= {name for name, entry in CATALOGUE.items() if entry.group == "study"}
    assert {kind for kind, _ in study.data.entries()} == set(KINDS) - {"segmentation", "conflict"}
    assert set(study.protocols) == {"corrected", "paper"}


def test_cards_and_their_untrained_twins_are_found_beside_the_file(tmp_path: Path) -> None:
    values = {
        "title": "t",
        "models": [{"name": "mine.toml"}, {"name": "random:mine.toml"}, {"name": "zoo/dino"}],
        "data": {"images": {"path": "."}},
    }
    names = [model.name for model in parse_study(values, tmp_path).models]
    assert names == [f"{tmp_path}/mine.toml", f"random:{tmp_path}/mine.toml", "zoo/dino"]


def test_several_datasets_of_a_kind(tmp_path: Path) -> None:
    """A list of tables, as [[data.retrieval]] twice; each with a title and limit of its own."""
    for name in ("a", "b"):
        make_photos(tmp_path / name, count=8)
    (tmp_path / "s.toml").write_text(
        'title = "t"\n[[models]]\nname = "random:vit_tiny_patch16_224"\n'
        '[[data.retrieval]]\npath = "a"\n[[data.retrieval]]\npath = "b"\ntitle = "Others"\nlimit = 2\n'
    )
    first, second = read_study(tmp_path / "s.toml").datasets()
    assert (first.title, second.title) == ("a", "Others")
    assert (len(first.queries), len(second.queries)) == (8, 2)  # type: ignore[attr-defined]


def test_settings_of_an_analysis(tmp_path: Path) -> None:
    make_photos(tmp_path / "photos", count=12)
    (tmp_path / "s.toml").write_text(
        'title = "t"\nprotocols = ["corrected", "paper"]\n[[models]]\nname = "random:vit_tiny_patch16_224"\n'
        '[data.images]\npath = "photos"\n[data.labelled]\npath = "photos"\n'
        "[analyses.knn]\nks = [20]\n[analyses.features]\ncluster_seeds = 7\n[analyses.attention]\n"
    )
    found = read_study(tmp_path / "s.toml").chosen()
    settings = {(a.name, getattr(a, "protocol", "")): a.model_dump() for a in found}
    twice = {(name, protocol) for name in ("knn", "features") for protocol in ("corrected", "paper")}
    assert set(settings) == twice | {("attention", "")}
    assert settings["knn", "paper"]["ks"] == (20,)
    assert settings["features", "paper"]["cluster_seeds"] == 7


def test_both_protocols_of_every_analysis_that_has_two(tmp_path: Path) -> None:
    everything = {kind: {"path": "photos"} for kind in KINDS}
    found = parse(tmp_path, data=everything, protocols=["corrected", "paper"]).chosen()
    twice = {"features", "objects", "knn", "retrieval", "video", "keypoints"}
    assert twice == {name for name, kind in ANALYSES.items() if kind.has_protocols()}
    for name in ALL_BY_THEMSELVES:
        protocols = [getattr(a, "protocol", "") for a in found if a.name == name]
        assert protocols == (["corrected", "paper"] if name in twice else [""])


def test_a_study_file_of_the_first_edition_still_works(tmp_path: Path) -> None:
    """Every key it had: one dataset of each kind as a table, analyses as a list of names."""
    for name in ("photos", "coco/val2017", "imagenet", "individuals", "davis", "spair"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "coco/instances.json").write_text("{}")
    (tmp_path / "old.toml").write_text(
        """
        title = "First edition"
        analyses = ["attention", "features", "knn", "probe", "saliency", "objects", "retrieval", "video", "keypoints"]
        protocols = ["corrected", "paper"]
        seed = 3
        skip_limit = 5
        device = "cpu"
        engine = "local"
        processes = 2
        out = "runs/old"
        [[models]]
        name = "mine"
        title = "Mine"
        weights = "mine.pth"
        arch = "vit_small_patch16_224"
        teaching = "dino"
        size = [224, 224]
        [data.images]
        path = "photos"
        limit = 100
        [data.masks]
        path = "coco/instances.json"
        images = "coco/val2017"
        [data.labelled]
        path = "imagenet"
        limit = 50
        [data.retrieval]
        path = "individuals"
        [data.video]
        path = "davis"
        limit = 2
        [data.keypoints]
        path = "spair"
        limit = 20
        """
    )
    study = read_study(tmp_path / "old.toml")
    assert tuple(kind for kind, _ in study.data.entries()) == KINDS[:6]
    assert {kind: entry.limit for kind, entry in study.data.entries() if entry.limit} == {
        "images": 100, "labelled": 50, "video": 2, "keypoints": 20,
    }  # fmt: skip
    newer = {"writes", "calibration", "tokens", "pictures", "segmentation", "discovery", "shape_or_texture"}
    assert set(chosen(study)) == ALL_BY_THEMSELVES - newer
    assert (study.seed, study.skip_limit, study.processes, study.engine) == (3, 5, 2, "local")
    assert study.models[0].weights == tmp_path / "mine.pth"


def test_every_shape_gets_its_untrained_network_once(tmp_path: Path) -> None:
    models = [{"name": "zoo/dino"}, {"name": "zoo/mae"}]

    def untrained(**values: Any) -> list[str]:
        return [
            spec.title for spec in parse(tmp_path, **{"models": models} | values).specs() if spec.teaching == "none"
        ]

    twin = f"Untrained {resolve('zoo/dino').architecture}"
    assert untrained() == [twin]
    assert untrained(baselines=False) == []
    assert untrained(models=[*models, {"name": "zoo/none"}]) == ["zoo/none"]
    assert untrained(models=[*models, {"name": "random:zoo/dino", "title": "mine"}]) == ["mine"]
    larger = {"name": "random:vit_tiny_patch16_224", "title": "larger"}
    assert untrained(models=[*models, larger]) == ["larger", twin]


def test_arch_and_architecture_are_one_word(tmp_path: Path) -> None:
    (tmp_path / "x.pth").touch()
    entry = {"name": "x", "weights": "x.pth", "architecture": "vit_tiny_patch16_224"}
    assert parse(tmp_path, models=[entry]).models[0].arch == "vit_tiny_patch16_224"
    (tmp_path / "x.toml").write_text('name = "x"\narch = "vit_tiny_patch16_224"\nweights = "x.pth"\n')
    assert read_card(tmp_path / "x.toml").architecture == "vit_tiny_patch16_224"


@pytest.mark.parametrize("name", ["resnet50", "swin_tiny_patch4_window7_224"])
def test_what_is_no_vit_is_told_before_a_download_is_suggested(name: str) -> None:
    with pytest.raises(VitscopeError) as told:
        resolve(name)
    assert "--download" not in str(told.value)
    assert name in str(told.value)
