"""Figures and summaries can be drawn from whatever a study gives; numbers in them are those of the table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console

from tests.features.made import study, tiny, write_images
from vitscope.core.results import Results
from vitscope.core.teachings import TEACHINGS
from vitscope.models.backbone import Backbone
from vitscope.report.features_curves import CROWD, clustering_figure
from vitscope.report.features_figures import class_colour, draw_features
from vitscope.report.features_heatmaps import depth_figure, last_layer_figure
from vitscope.report.features_summary import summarise_features
from vitscope.report.looks import model_styles
from vitscope.report.style import save_figure, styled

ALWAYS = {"cka-depth-cls", "cka-depth-spatial", "cka-depth-all", "residual", "dimensions", "projections"}
PAIRS = {"cka-models", "similarities"}
CLUSTERS = {"purity", "nmi-ari"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_images(tmp_path_factory.mktemp("figures") / "p", 16, classes=2)


def names(files: list[Path], folder: Path) -> set[str]:
    assert all(file.is_file() and file.stat().st_size > 500 for file in files)
    assert {file.suffix for file in files} == {".png", ".svg", ".pdf"}
    return {file.stem for file in files}


def told(results: Results) -> str:
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    for table in summarise_features(results):
        console.print(table)
    return console.export_text()


def test_two_models_of_different_depth(folder: Path, tmp_path: Path) -> None:
    models = [tiny("A", seed=1, teaching="dino"), tiny("B", seed=2, teaching="mae", depth=2)]
    results = study(models, folder, projections=True)
    assert names(draw_features(results, tmp_path), tmp_path) == ALWAYS | PAIRS | CLUSTERS
    text = told(results)
    value = results.table.filter((results.table["measure"] == "cka") & (results.table["variant"] == "cls"))
    assert f"{value['value'][0]:.3f}" in text
    assert f"{value['ci_low'][0]:.3f}" in text
    label = (tmp_path / "cka-models.svg").read_text()
    assert f"{value['value'][0]:.2f}" in label  # text stays text in the SVG


def test_images_are_counted_not_regions_and_old_figures_go(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "p", 12)
    (tmp_path / "m").mkdir()
    for i in range(12):
        mask = np.zeros((32, 32), np.uint8)
        for quarter in range(4):  # four regions of two categories
            mask[16 * (quarter // 2) :, 16 * (quarter % 2) :] = 1 + quarter
        Image.fromarray(mask).save(tmp_path / "m" / f"{i:04}.png")
    masked = study([tiny("A")], folder, masks=tmp_path / "m")
    assert masked.table["n"].max() == 48
    line = next(line for line in told(masked).splitlines() if line.strip().startswith("A "))
    assert line.split()[1] == "12"
    (tmp_path / "purity.svg").write_text("of an earlier study, which had labels")
    draw_features(study([tiny("A")], folder), tmp_path, formats=["svg"])
    assert not (tmp_path / "purity.svg").exists()
    assert (tmp_path / "residual.svg").exists()


def test_features_that_never_vary_are_drawn_and_said_to_be_so(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "p", 1)
    for i in range(1, 6):
        (folder / f"{i:04}.png").write_bytes((folder / "0000.png").read_bytes())
    results = study([tiny("A"), tiny("B", seed=1)], folder, projections=True)
    draw_features(results, tmp_path, formats=["svg"])
    assert "none: features are the same for all images" in told(results)
    assert "±" not in (tmp_path / "cka-models.svg").read_text()
    assert "CKA" not in (tmp_path / "residual.svg").read_text()  # only norms are left


def test_scores_have_no_negative_zeros(tmp_path: Path) -> None:
    matrix = torch.tensor([[1.0, -0.001], [-0.001, 1.0]]).double()
    maps = {f"models/cka.last.cls{side}": matrix for side in ("", ".low", ".high", ".null")}
    with styled():
        save_figure(last_layer_figure(maps, [("A", "fs"), ("B", "mae")], 9), tmp_path, "f", formats=["svg"])
    assert "-0.00<" not in (tmp_path / "f.svg").read_text().replace("\u2212", "-")


def test_eight_models_of_a_teaching_and_twenty_classes_look_different() -> None:
    styles = model_styles([(str(i), "fs") for i in range(8)]).values()
    assert len({(str(style.line), style.filled) for style in styles}) == 8
    colours = {class_colour(i).lower() for i in range(20)}
    assert len(colours) == 20
    assert not colours & {teaching.colour.lower() for teaching in TEACHINGS.values()}


def test_one_model_without_labels_and_without_cls(tmp_path: Path) -> None:
    flat = write_images(tmp_path / "p", 11)
    results = study([tiny("A", class_token=False, global_pool="avg")], flat, projections=True)
    found = names(draw_features(results, tmp_path / "f"), tmp_path)
    assert found == ALWAYS - {"cka-depth-cls"}
    assert "(no labels, no masks)" in told(results)
    results.provenance.append({"measure": "segmentation", "classes": ["cat", "dog"]})  # of other images
    draw_features(results, tmp_path / "f", formats=["svg"])
    assert "the images have no labels" in (tmp_path / "f" / "projections.svg").read_text()


def test_a_crowd_is_drawn_teaching_by_teaching(folder: Path, tmp_path: Path) -> None:
    keys = ["fs", "clip", "dino", "moco", "mae", "beit", "none", "fs", "fs"]
    assert len(keys) > CROWD
    models: list[Backbone] = [tiny(f"model {i}", seed=i, teaching=key, depth=1) for i, key in enumerate(keys)]
    results = study(models, folder)
    named = [(model.title, model.teaching) for model in models]
    with styled():
        purity = clustering_figure(results.table, {"purity": "purity"}, "Purity")
        depths = depth_figure(results.maps, named, "spatial")
        save_figure(purity, tmp_path, "purity", formats=["svg"])
        save_figure(depths, tmp_path, "depths", formats=["png"])
    svg = (tmp_path / "purity.svg").read_text()
    assert all(title in svg for title in ("MoCo-v3", "BEiT", "Untrained", "model 8"))
    assert len(purity.axes) == 2 * 7  # CLS and spatial tokens of seven teachings
