"""The table of best layers: what is chosen, what is marked, what the paper says, in every format."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import polars as pl
import pytest
import torch
from rich.console import Console

from vitscope.core.results import SCHEMA, Label, tidy
from vitscope.pipeline.best_layers import BestLayers, best_layers, published
from vitscope.report.table_formats import to_csv, to_latex, to_markdown, to_terminal


def rows(
    model: str,
    values: list[float],
    *,
    measure: str = "knn_top1",
    variant: str = "cls k=20",
    dataset: str = "ImageNet",
    half: float = 0.02,
    protocol: str = "corrected",
    teaching: str = "fs",
) -> pl.DataFrame:
    value = torch.tensor(values, dtype=torch.float64)
    label = Label(model, teaching, dataset, "p")
    low, high = value - half, value + half
    return tidy(label, measure, value, axes=("layer",), low=low, high=high, n=100, variant=variant, protocol=protocol)


@pytest.fixture
def results() -> pl.DataFrame:
    return pl.concat(
        [
            rows("FS B/16", [0.5, 0.7, 0.6]),
            rows("FS B/16", [0.9, 0.9, 0.9], variant="mean k=20"),  # not in the paper's form
            rows("DINO B/16", [0.2, 0.685, 0.3], teaching="dino"),  # within the interval of the best
            rows("MAE B/16", [0.1, 0.2, 0.67], teaching="mae"),  # below it
            rows("FS B/16", [0.3, 0.31, 0.31], measure="video_j&f", variant="", dataset="walks"),
            rows("FS B/16", [0.9, 0.9, 0.9], measure="video_j&f", variant="bear 1", dataset="walks"),  # one object's
            rows("MAE B/16", [0.4, 0.2, 0.1], measure="video_j&f", variant="", dataset="walks", teaching="mae"),
        ]
    )


def test_best_layers_and_the_highest_scores(results: pl.DataFrame) -> None:
    table = best_layers(results)
    assert [column.task.key for column in table.columns] == ["knn", "video"]
    assert [model for model, _ in table.models] == ["FS B/16", "DINO B/16", "MAE B/16"]
    fs, dino, mae = (table.cells[model, 0] for model in ("FS B/16", "DINO B/16", "MAE B/16"))
    assert (fs.layer, fs.value, fs.best) == (2, pytest.approx(0.7), True)
    assert (dino.layer, dino.best) == (2, False)
    assert (mae.layer, mae.best) == (3, False)
    assert table.cells["FS B/16", 1].layer == 2  # of equal layers the first
    assert table.cells["MAE B/16", 1].best
    assert ("DINO B/16", 1) not in table.cells


def test_the_papers_values_only_beside_the_papers_model_and_data(results: pl.DataFrame) -> None:
    table = best_layers(results)
    assert table.cells["FS B/16", 0].paper == (0.8379, 12)
    assert table.cells["FS B/16", 1].paper is None  # not DAVIS
    assert published("MoCo-v3 B/16", "video", "DAVIS-2017 val") == (0.61, 11)
    assert published("BEiT B/16", "keypoints", "SPair-71k test") == (0.2411, 8)
    assert published("MAE B/16", "retrieval", "ROxford5k") == (0.15, 10)
    assert published("MAE B/16", "retrieval", "RParis6k") is None
    assert published("MAE L/16", "knn", "ImageNet") is None
    assert published("CLIP B/16", "probe", "ImageNet") is None
    assert published("Noise (published) vit_base_patch16_224", "knn", "ImageNet") == (0.001, None)


def test_a_model_without_cls_is_told_by_its_mean_token() -> None:
    table = best_layers(pl.concat([rows("S", [0.1, 0.4], variant="mean k=20"), rows("T", [0.3, 0.2])]))
    assert table.cells["S", 0].value == pytest.approx(0.4)
    assert table.cells["T", 0].value == pytest.approx(0.3)


def test_small_sets_have_fewer_neighbours() -> None:
    table = best_layers(
        pl.concat([rows("T", [0.3, 0.2], variant="cls k=10"), rows("T", [0.5, 0.2], variant="cls k=9")])
    )
    assert table.cells["T", 0].value == pytest.approx(0.3)
    assert table.columns[0].score == "top-1 % (k=10)"


def test_protocols_and_datasets_have_their_own_columns() -> None:
    parts = [
        rows("T", [0.3], measure="retrieval_map", variant="cls medium", dataset=dataset, protocol=protocol)
        for dataset in ("ROxford5k", "RParis6k")
        for protocol in ("corrected", "paper")
    ]
    table = best_layers(pl.concat(parts))
    assert [(c.dataset, c.protocol, c.score) for c in table.columns] == [
        ("ROxford5k", "corrected", "mAP (medium)"),
        ("ROxford5k", "paper", "mAP (medium)"),
        ("RParis6k", "corrected", "mAP (medium)"),
        ("RParis6k", "paper", "mAP (medium)"),
    ]


def test_without_an_interval_only_the_best_is_marked() -> None:
    table = best_layers(pl.concat([rows("A", [0.3], half=float("nan")), rows("B", [0.29], half=float("nan"))]))
    assert (table.cells["A", 0].best, table.cells["B", 0].best) == (True, False)
    assert "nan" not in to_markdown(table) + to_latex(table)


def with_a_tie(results: pl.DataFrame) -> BestLayers:
    """As the advice would mark it: the first column's FS and DINO cannot be told apart."""
    table = best_layers(results)
    tied = {(name, 0): replace(table.cells[name, 0], tied=True) for name in ("FS B/16", "DINO B/16")}
    return replace(table, cells=table.cells | tied)


def test_csv(results: pl.DataFrame) -> None:
    lines = list(csv.DictReader(io.StringIO(to_csv(best_layers(results)))))
    assert len(lines) == 5
    first = lines[0]
    assert (first["model"], first["task"], first["best_layer"]) == ("FS B/16", "knn", "2")
    assert float(first["value"]) == pytest.approx(0.7)
    assert (first["paper_value"], first["paper_layer"], first["best"]) == ("0.8379", "12", "true")


def test_markdown(results: pl.DataFrame) -> None:
    text = to_markdown(with_a_tie(results))
    lines = text.splitlines()
    assert lines[0] == "| model | k-NN<br>ImageNet<br>top-1 % | video segmentation<br>walks<br>J&F |"
    assert lines[2] == "| FS B/16 | **70.00 (2)**<br>68.00–72.00<br>paper 83.79 (12) | 0.31 (2)<br>0.29–0.33 |"
    assert lines[3] == "| DINO B/16 | 68.50 (2) ≈<br>66.50–70.50<br>paper 76.06 (12) | - |"
    assert lines[4] == "| MAE B/16 | 67.00 (3)<br>65.00–69.00<br>paper 45.19 (12) | **0.40 (1)**<br>0.38–0.42 |"


def test_latex(results: pl.DataFrame) -> None:
    text = to_latex(with_a_tie(results))
    assert r"\begin{tabular}{lrr}" in text
    assert r"\makecell[r]{k-NN \\ ImageNet \\ top-1 \%}" in text
    assert r"\cellcolor{gray!18}\textbf{70.00 (2)} {\scriptsize\color{gray}paper 83.79 (12)}" in text
    assert r"J\&F" in text
    assert r"\cellcolor{gray!18}68.50 (2)" in text
    assert text.count(r"\\" + "\n") == 4  # the head and three models
    assert text.count("{") == text.count("}")


@pytest.mark.parametrize("width", [40, 80, 140])
def test_the_terminal_cuts_nothing_off(results: pl.DataFrame, width: int) -> None:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(to_terminal(best_layers(results), width))
    text = console.export_text()
    for word in ("FS B/16", "70.00 (2)", "68.00–72.00", "paper 83.79 (12)", "0.40 (1)", "ImageNet", "J&F"):
        assert word in text
    assert "…" not in text


def test_no_results_are_no_table() -> None:
    table = best_layers(pl.DataFrame(schema=SCHEMA))
    assert table.columns == ()
    assert table.models == ()
