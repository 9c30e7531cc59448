"""The paper's own study from end to end: every model at its real size and in its official format, with random weights,
and a handful of images of every dataset in its official layout.

Some models at a time, so that memory, disk and time stay within what a desk has; together they are all of the study.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import polars as pl
import pytest

from tests.support.datasets import CLASSES, write_study_datasets
from tests.support.weights import write_weights
from vitscope.cli import main
from vitscope.core.results import Results
from vitscope.data import imagenet50
from vitscope.models.catalogue import CATALOGUE
from vitscope.pipeline.registry import ANALYSES
from vitscope.pipeline.study import read_study

STUDY = Path(__file__).parents[2] / "studies" / "teaching-matters.toml"
BASELINES = ("random:vit_base_patch16_224", "noise-paper:vit_base_patch16_224")
GROUPS = {  # models, and some of the paper's best k-NN accuracies, which must stand beside ours
    "every family": (
        ("fs-s32", "clip-b32", "dino-s16", "moco-s16", "mae-b16", "beit-b16", *BASELINES),
        ("45.19", "26.84"),
    ),
    "fs": (("fs-s16", "fs-b32", "fs-b16", "fs-b8", "fs-l16"), ("83.79",)),
    "clip": (("clip-b16", "clip-l14"), ("75.75",)),
    "dino": (("dino-s8", "dino-b16", "dino-b8"), ("76.06",)),
    "moco": (("moco-b16",), ("71.59",)),
    "mae": (("mae-l16", "mae-h14"), ()),
    "beit": (("beit-l16",), ()),
}
TITLES = {  # so that the paper's scores stand beside ours, which they only do beside the whole of a dataset
    "imagenet": "ImageNet",
    "roxford5k": "ROxford5k",
    "davis-2017": "DAVIS-2017 val",
    "spair-71k": "SPair-71k test",
}
TWICE = (
    "purity",
    "skip_over_branch",
    "residual_cka",
    "saliency_iou",
    "knn_top5",
    "retrieval_map",
    "video_j&f",
    "pck@0.1",
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The datasets, and weights that are made when they are asked for.

    VITSCOPE_STUDY_ROOT names a folder in which both stay: eleven gigabytes.
    """
    given = os.environ.get("VITSCOPE_STUDY_ROOT")
    place = Path(given) if given else tmp_path_factory.mktemp("study")
    return place if (place / "SPair-71k").is_dir() else write_study_datasets(place)


def test_the_groups_are_the_study() -> None:
    together = [name for models, _ in GROUPS.values() for name in models]
    assert sorted(together) == sorted(model.name for model in read_study(STUDY).models)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("group", GROUPS)
def test_the_study_of_the_paper(
    group: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    models, published = GROUPS[group]
    for number, name in enumerate(CATALOGUE):
        if name in models and not (root / "weights" / CATALOGUE[name].files[0]).exists():
            write_weights(root / "weights", CATALOGUE[name], seed=number)
    monkeypatch.setenv("VITSCOPE_DATA", str(root))
    monkeypatch.setattr(imagenet50, "imagenet50_classes", lambda: dict.fromkeys(CLASSES, "bird"))
    study, out = tmp_path / "study.toml", tmp_path / "out"
    study.write_text(_with_models(models))

    main(["run", str(study), "--dry-run", "--out", str(out)])
    assert "MISSING" not in capsys.readouterr().out
    main(["run", str(study), "--out", str(out)])
    results = Results.load(out)
    assert not results.failures
    table = results.table
    assert len(set(table["model"])) == len(models)
    asked = re.findall(r"^\[analyses\.(\w+)\]", study.read_text(), re.MULTILINE)
    done = {(p["title"], p["measure"], p["settings"].get("protocol", "")) for p in results.provenance}
    for model in set(table["model"]):
        for name in asked:
            for protocol in ("corrected", "paper") if ANALYSES[name].has_protocols() else ("",):
                assert (model, name, protocol) in done
    for measure in (*TWICE, *(["cka"] if len(models) > 1 else [])):
        assert set(table.filter(pl.col("measure") == measure)["protocol"]) == {"corrected", "paper"}, measure
    datasets = set(table["dataset"])
    assert datasets == {dataset.title for dataset in read_study(study).datasets()}
    page = (out / "report.html").read_text()
    assert all(score in page for score in published)
    main(["run", str(study), "--dry-run", "--out", str(out)])
    assert "0 jobs to do" in capsys.readouterr().out


def _with_models(models: tuple[str, ...]) -> str:
    """The shipped study file with some of its models, and the titles of whole datasets."""
    text = STUDY.read_text().partition("# The main study")[0]
    for name, title in TITLES.items():
        assert text.count(f'name = "{name}"\n') == 1
        text = text.replace(f'name = "{name}"\n', f'name = "{name}"\ntitle = "{title}"\n')
    titles = {entry.name: entry.title or CATALOGUE[entry.name].title for entry in read_study(STUDY).models}
    return text + "".join(f'[[models]]\nname = "{name}"\ntitle = "{titles[name]}"\n' for name in models)
