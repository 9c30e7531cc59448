"""Figures for papers: exactly as wide as a column or a page, nothing cut off, letters that can be read."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from tests.report.constructed import outcome
from tests.report.constructed_attention import Shape
from vitscope.cli import main
from vitscope.pipeline.study import read_study
from vitscope.report.growing_up import draw_growing
from vitscope.report.style import figure_width
from vitscope.report.tasks_figures import draw_tasks

MODELS = ["random:vit_tiny_patch16_224", "random:deit_tiny_patch16_224"]
INCHES = {"column": 3.25, "page": 6.75}


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    random = np.random.default_rng(0)
    for number in range(16):
        photo = folder / ("cat", "dog")[number % 2] / f"{number}.png"
        photo.parent.mkdir(exist_ok=True)
        Image.fromarray(random.integers(0, 256, (40, 40, 3), dtype=np.uint8)).save(photo)
    return folder


def check(folder: Path, inches: float, least: int) -> None:
    pdfs = list(folder.glob("*.pdf"))
    assert len(pdfs) >= least
    for path in pdfs:
        box = re.search(rb"/MediaBox \[ ?([0-9. ]+)\]", path.read_bytes())
        assert box, path
        left, _, right, _ = (float(number) for number in box[1].split())
        assert (right - left) / 72 == pytest.approx(inches, abs=0.01), path.name
        edges = np.asarray(Image.open(path.with_suffix(".png")).convert("L"))[:, [0, 1, -2, -1]]
        assert edges.min() == 255, f"{path.name} is cut off"
        for part in ElementTree.parse(path.with_suffix(".svg")).iter("{http://www.w3.org/2000/svg}text"):
            size = re.search(r"font(?:-size)?: (?:[a-z0-9]+ )?([0-9.]+)px", part.get("style", ""))
            assert size, part.attrib
            assert float(size[1]) >= 5.5, (path.name, part.text)


@pytest.mark.parametrize("width", INCHES)
def test_every_figure_of_a_command_is_as_wide_as_asked(photos: Path, tmp_path: Path, width: str) -> None:
    words = [*MODELS, "--images", str(photos), "--size", "32", "--no-page", "--figures", "all", "--width", width]
    main(["attention", *words, "--importance", "--out", str(tmp_path / "attention")])
    check(tmp_path / "attention" / "figures", INCHES[width], 6)
    main(["features", *words, "--out", str(tmp_path / "features")])
    check(tmp_path / "features" / "figures", INCHES[width], 10)
    photo, *more = (str(path) for path in sorted(photos.glob("*/*.png"))[:2])
    point = ["--model", MODELS[0], "--size", "32", "--at", "20,20", "--width", width]
    main(["look", photo, *more, *point, "--out", str(tmp_path / "look")])
    check(tmp_path / "look", INCHES[width], 3)


@pytest.mark.parametrize("width", INCHES)
def test_tasks_and_series_are_as_wide_as_asked(tmp_path: Path, width: str) -> None:
    steps = (30, 60, 90)
    study = outcome(Shape(depth=4, heads=2, grid=(4, 4)), {f"a long name of a run @ {step}": "mae" for step in steps})
    entries = [
        {"name": "x", "title": f"a long name of a run @ {step}", "series": "run", "step": step} for step in steps
    ]
    study.results.settings = {"models": entries}
    with figure_width(width):  # type: ignore[arg-type]
        draw_tasks(study.results, tmp_path)
        draw_growing(study.results, tmp_path)
    check(tmp_path, INCHES[width], 2)


def test_a_study_file_can_ask_for_it(tmp_path: Path) -> None:
    text = 'title = "x"\nwidth = "page"\n[[models]]\nname = "zoo/fs"\n[[data.images]]\npath = "."\n'
    (tmp_path / "study.toml").write_text(text)
    assert read_study(tmp_path / "study.toml").width == "page"
