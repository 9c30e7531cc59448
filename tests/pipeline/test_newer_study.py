"""What the field learned since the paper, on weights in their official formats and data in their official layouts: from
a study file to the page."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tests.support.datasets import write_coco, write_imagenet
from tests.support.weights import write_weights
from tests.tasks.conftest import photo
from tests.tasks.test_segmentation import ade, voc
from vitscope.cli import main
from vitscope.core.results import Results
from vitscope.models.catalogue import CATALOGUE
from vitscope.pipeline.registry import ANALYSES

MODELS = ("dino-s16", "fs-s32")  # a pickled state dict, and Google's .npz
SETTINGS = {
    "attention": "",  # with sinks and the dependence on the query
    "writes": "",
    "importance": "images = 2",
    "calibration": "permutations = 40",
    "tokens": "",
    "pictures": "",
    "discovery": "",
    "segmentation": "",
    "robustness": "",
    "shape_or_texture": "",
}
CHAPTERS = (
    "What draws attention, whoever looks",
    "Which heads write, and which matter",
    "Tokens that grow out of proportion",
    "Do tokens stay apart?",
    "The spectrum of features",
    "What patches have in common",
)


def write_geirhos(root: Path) -> Path:
    """Class folders of conflicts, named by the class whose shape and the class whose texture an image has."""
    kinds = ("bear", "cat", "dog")
    for number, shape in enumerate(kinds):
        for i in range(3):
            photo(root / "train" / shape / f"{i}.png", (64, 64), seed=10 * number + i)
        for texture in (kind for kind in kinds if kind != shape):
            photo(root / "cue-conflict" / shape / f"{shape}1-{texture}2.png", (64, 64), seed=50 + number)
    return root


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_official_weights_on_official_layouts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, name in enumerate(MODELS):
        write_weights(tmp_path / "weights", CATALOGUE[name], seed=number)
    monkeypatch.setenv("VITSCOPE_DATA", str(tmp_path))
    data = {
        "images": [write_coco(tmp_path / "coco", images=12) / "val2017"],
        "masks": [tmp_path / "coco"],
        "segmentation": [voc(tmp_path / "VOC2012"), ade(tmp_path / "ADE20K")],
        "labelled": [write_imagenet(tmp_path / "imagenet", train=4, val=4)],
        "conflict": [write_geirhos(tmp_path / "geirhos")],
    }
    study, out = tmp_path / "study.toml", tmp_path / "out"
    study.write_text(
        f'title = "since"\nout = "{out}"\nbaselines = false\n'
        + "".join(f'[[models]]\nname = "{name}"\n' for name in MODELS)
        + "".join(f'[[data.{kind}]]\npath = "{path}"\n' for kind, paths in data.items() for path in paths)
        + "".join(f"[analyses.{name}]\n{more}\n" for name, more in SETTINGS.items())
    )
    main(["run", str(study)])

    results = Results.load(out)
    assert not results.failures
    asked = {(p["title"], p["measure"]) for p in results.provenance}
    titles = set(results.table["model"])
    assert asked == {(title, name) for title in titles for name in SETTINGS}
    assert len(titles) == len(MODELS)
    found = set(results.table["measure"])
    for name in SETTINGS.keys() - {"pictures"}:  # which are arrays
        assert {measure.name for measure in ANALYSES[name].measures} & found, name
    segmented = results.table.filter(pl.col("measure") == "segmentation_miou")
    assert set(segmented["dataset"]) == {"VOC2012", "ADE20K"}
    assert segmented["value"].is_between(0, 1).all()
    page = (out / "report.html").read_text()
    assert all(chapter in page for chapter in CHAPTERS)
