"""A run over time: series in study files, and curves over steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import timm
import torch
from PIL import Image
from safetensors.torch import save_file

from tests.findings.constructed import Constructed, line
from vitscope.api import load_results
from vitscope.cli import main
from vitscope.core.errors import VitscopeError
from vitscope.pipeline.study import parse_study
from vitscope.report.growing_up import CURVES, growing_figure, points, series_of

STEPS = (20, 100, 3)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Three checkpoints of a tiny network, and some images."""
    (tmp_path / "run").mkdir()
    for step in STEPS:
        torch.manual_seed(step)
        network = timm.create_model("vit_tiny_patch16_224", img_size=32)
        save_file(network.state_dict(), tmp_path / f"run/epoch-{step}.safetensors")
    generator = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    for number in range(24):
        pixels = generator.integers(0, 256, (32, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"photos/{number}.png")
    return tmp_path


def values(**model: Any) -> dict[str, Any]:
    entry = {"name": "mine", "arch": "vit_tiny_patch16_224", "size": 32, "series": "run/epoch-*.safetensors"}
    return {"title": "t", "models": [entry | model], "data": {"images": {"path": "photos"}}}


def test_a_pattern_is_its_files_in_order_of_steps(run: Path) -> None:
    study = parse_study(values(title="Mine"), run)
    assert [(m.title, m.step) for m in study.models] == [("Mine @ 3", 3), ("Mine @ 20", 20), ("Mine @ 100", 100)]
    assert series_of(study.settings()) == {"Mine": [(3, "Mine @ 3"), (20, "Mine @ 20"), (100, "Mine @ 100")]}


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({"series": "run/nothing-*.pth"}, "0 files match"),
        ({"series": "nowhere/*.pth"}, "nowhere cannot be read"),
        ({"series": "/**/*.pth"}, "use it in files' names"),
        ({"series": "run/epoch-*.safetensors", "step": 4}, "leave out weights and step"),
        ({"series": "mine"}, "needs its step"),
    ],
)
def test_what_is_no_series_is_told(run: Path, model: dict[str, Any], said: str) -> None:
    with pytest.raises(VitscopeError, match=said):
        parse_study(values(**model), run)


def test_two_files_of_one_step_are_told(run: Path) -> None:
    (run / "run/epoch-old-20.safetensors").write_bytes(b"")
    with pytest.raises(VitscopeError, match="no step of its own"):
        parse_study(values(), run)


def test_points_are_read_off_the_table() -> None:
    made = Constructed(reach=0.01)
    for step, height in ((1, 0.2), (5, 0.6), (9, 0.9)):
        made.add(f"run @ {step}", "dino", "knn_top1", [0.1, height, 0.15], variant="cls k=20")
        made.add(f"run @ {step}", "dino", "rankme", line(10, 100 * height, 3), variant="cls")
        made.add(f"run @ {step}", "dino", "head_kind", [[1, 0], [0, 0], [0, height > 0.5]], variant="offset local")
    made.add("run @ 1", "dino", "cka", [0.3], variant="cls", other="run @ 9")
    made.add("run @ 5", "dino", "cka", [0.7], variant="cls", other="run @ 9")
    steps = [(1, "run @ 1"), (5, "run @ 5"), (9, "run @ 9")]
    curves = {curve.measure: [p[:2] for p in points(made.results.table, curve, steps)] for curve in CURVES}
    assert curves["knn_top1"] == [(1, 0.2), (5, 0.6), (9, 0.9)]  # at the best layer
    assert curves["rankme"] == [(1, 20), (5, 60), (9, 90)]  # at the last
    assert [v for _, v in curves["head_kind"]] == pytest.approx([1 / 6, 2 / 6, 2 / 6])
    assert curves["cka"] == [(1, 0.3), (5, 0.7)]
    assert growing_figure(made.results) is None  # a study without a series
    made.results.settings = {"models": [{"name": t, "title": t, "series": "run", "step": s} for s, t in steps]}
    figure = growing_figure(made.results)
    assert figure is not None
    assert [axes.get_title(loc="left") or axes.get_title() for axes in figure.axes if axes.get_visible()]


def test_a_study_of_a_series_has_its_chapter(run: Path) -> None:
    text = (
        'title = "t"\nout = "out"\nbaselines = false\nanalyses = ["tokens", "features"]\n[[models]]\nname = "mine"\n'
        'arch = "vit_tiny_patch16_224"\nsize = 32\nseries = "run/epoch-*.safetensors"\n[data.images]\npath = "photos"\n'
    )
    (run / "s.toml").write_text(text)
    main(["run", str(run / "s.toml")])
    page = (run / "out/report.html").read_text()
    assert 'id="growing"' in page
    table = load_results(run / "out").table
    assert set(table.filter(pl.col("measure") == "position_share")["model"]) == {"mine @ 3", "mine @ 20", "mine @ 100"}
