"""What goes onto the page, checked without a browser: maps, sentences, similarities, coverage, size."""

from __future__ import annotations

import base64
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image

from tests.report.constructed import MODELS, outcome
from tests.report.constructed_attention import Shape
from vitscope.core.results import Coverage, Label, Results, tidy
from vitscope.findings.outcome import Finding, StudyOutcome, Verdict
from vitscope.report.page import write_page
from vitscope.report.page.cite import bibtex
from vitscope.report.page.findings import finding_cards, findings_sentence
from vitscope.report.page.maps import aligned_reach, crop, decode, encode, pooled, pooling_factor
from vitscope.report.page.methods import coverage_table, shortfall
from vitscope.report.page.models import legend, models_of
from vitscope.report.page.payload import gather
from vitscope.report.page.write import as_json, render

TINY = Shape(depth=4, heads=2, grid=(4, 4))


def test_maps_survive_packing_to_half_a_step_of_the_square_root_scale() -> None:
    maps = torch.rand(3, 2, 9, 5, generator=torch.Generator().manual_seed(0)).double() ** 3
    packed = encode(maps)
    found = decode(packed)
    top = maps.flatten(0, 1).flatten(1).max(1).values.numpy()[:, None, None]
    values = maps.flatten(0, 1).numpy()
    assert packed["size"] == (9, 5)
    assert np.abs(np.sqrt(found / top) - np.sqrt(values / top)).max() <= 0.5 / 255 + 1e-5


def test_constant_and_missing_maps_pack_to_zero() -> None:
    assert decode(encode(torch.zeros(1, 1, 2, 2))).max() == 0
    assert decode(encode(torch.full((1, 1, 2, 2), torch.nan))).max() == 0


def test_aligned_maps_are_cropped_around_the_token() -> None:
    aligned = torch.zeros(1, 1, 15, 15)  # grid 8 x 8
    aligned[0, 0, 7, 7], aligned[0, 0, 7, 6] = 1, 2
    cropped = crop(aligned, 0.75)  # 6 steps each way
    assert cropped.shape == (1, 1, 13, 13)
    assert (cropped[0, 0, 6, 6], cropped[0, 0, 6, 5]) == (1, 2)


def test_very_many_maps_are_shown_to_a_shorter_reach() -> None:
    study = [(24, 16, 55, 55)] * 20  # twenty large models with patches of 8 pixels: 23 MB of cells
    reach = aligned_reach(study, budget=3_600_000)
    assert 0.1 < reach < 0.75
    assert sum(crop(torch.empty(shape, device="meta"), reach).numel() for shape in study) <= 3_600_000


def test_plain_maps_are_averaged_where_there_are_many() -> None:
    assert pooling_factor([100] * 4, budget=100) == 2
    maps = torch.arange(9.0).reshape(1, 1, 3, 3)
    assert pooled(maps, 2)[0, 0].tolist() == [[2.0, 3.5], [6.5, 8.0]]  # (0+1+3+4)/4, (2+5)/2, (6+7)/2, 8


def test_each_task_has_its_sentence_and_the_table_its_headline() -> None:
    page = gather(outcome())
    sentences = {(column.title, column.protocol): column.sentence for column in page.columns}
    assert sentences["k-NN", "corrected"].startswith("Take FS at layer 12 of 12: 84.00\u00a0% (untrained 8.00, ")
    assert sentences["keypoints", "corrected"].startswith("DINO and MoCo-v3 are tied at about 31.00\u00a0%")
    assert page.headline == (
        "Take FS for k-NN, linear probe and retrieval; DINO for video segmentation. "
        "Tied: DINO and MoCo-v3 for keypoints."
    )


def test_winner_and_equals_are_marked_in_the_table() -> None:
    text = render(gather(outcome()))
    table = text[text.index('<table class="best">') :]
    rows = dict(zip(MODELS, re.findall(r"<tr data-model.*?</tr>", table, re.DOTALL), strict=False))
    keypoints = {model: re.findall(r'<td class="([^"]*)"', row)[-1].split() for model, row in rows.items()}
    assert keypoints["DINO"] == ["best-cell", "tied"]
    assert keypoints["MoCo-v3"] == ["tied"]
    assert keypoints["FS"] == []


def test_models_stand_in_the_order_of_teachings_and_differ_in_line() -> None:
    results = outcome(TINY, {"late": "beit", "first": "fs", "second": "fs", "mine": "unheard-of"}).results
    models = models_of(results)
    assert [model.title for model in models] == ["first", "second", "late", "mine"]
    assert models[0].style.dash != models[1].style.dash
    assert models[0].style.colour != models[1].style.colour
    assert models[3].teaching.key == "other"


def test_the_legend_names_own_models_and_the_steps_of_a_series() -> None:
    named = {"run @ 10": "mae", "run @ 20": "mae", "mine": "unheard-of", "DINO": "dino", "first": "fs", "second": "fs"}
    chips = [(chip.title, chip.members, chip.small) for chip in legend(models_of(outcome(TINY, named).results))]
    assert chips == [
        ("FS", (0, 1), False), ("first", (0,), True), ("second", (1,), True),
        ("DINO", (2,), False),
        ("run", (3, 4), False), ("10", (3,), True), ("20", (4,), True),
        ("mine", (5,), False),  # not "Other"
    ]  # fmt: skip


def test_findings_about_teachings_need_models_that_were_taught_in_different_ways() -> None:
    alone = gather(outcome(TINY, {"run @ 10": "mae", "run @ 20": "mae", "Untrained": "none"}))
    assert alone.tested == []
    assert "taught by filling in only" in alone.beyond
    both = gather(outcome(TINY, {"FS": "fs", "MAE": "mae"}))
    assert len(both.tested) == 9
    assert both.beyond == ""


def test_everybody_is_cited_once() -> None:
    study = outcome(TINY, {"dinov2-s14": "dino", "mine": "mae", "again": "mae"})
    found = re.findall(r"^@(\w+)\{([a-z0-9]+),", bibtex(study.results), re.MULTILINE)
    assert found == [
        ("software", "vitscope"), ("inproceedings", "walmer2023teaching"), ("inproceedings", "dosovitskiy2021image"),
        ("inproceedings", "caron2021emerging"), ("article", "oquab2024dinov2"), ("inproceedings", "he2022masked"),
    ]  # fmt: skip


def test_the_page_brings_an_icon_and_a_picture_for_links(tmp_path: Path) -> None:
    page = write_page(outcome(TINY, {"FS": "fs"}), tmp_path / "report.html").read_text("utf-8")
    assert '<meta property="og:image" content="report.png">' in page
    assert '<link rel="icon" href="data:image/svg+xml,' in page
    assert Image.open(tmp_path / "report.png").size == (1200, 630)


def test_similarity_reads_pairs_in_either_order() -> None:
    study = outcome(TINY, {"MAE": "mae", "FS": "fs"})  # studied in this order, shown as FS, MAE
    found = gather(study).data["similarity"]
    cls = next(matrix for matrix in found["last"] if matrix["tokens"] == "cls")
    assert cls["value"] == [[None, 0.22], [0.22, None]]
    assert cls["low"][0][1] == pytest.approx(0.19)
    stored = study.results.maps["MAE/cka.depth.cls.FS"]
    packed = found["depth"]["cls"]["0/1"]  # rows: FS
    assert packed["size"] == (8, 8)
    raw = np.frombuffer(base64.b64decode(packed["data"]), dtype=np.uint8).reshape(8, 8)
    assert np.abs(raw / 254 - stored.T.numpy()).max() < 0.5 / 254 + 1e-9


def test_coverage_is_told_where_it_falls_short() -> None:
    coverage = [
        Coverage("A", "photos", "images", 10, 10),
        Coverage("B", "photos", "images", 4, 10),
        Coverage("B", "films", "video", 0, 3),
    ]
    assert coverage_table(coverage).rows == (
        ("A", (("10", True), None)),
        ("B", (("4 of 10", False), ("0 of 3", False))),
    )
    assert shortfall(coverage, ["images"]) == "Incomplete: B 4 of 10 (photos)."
    assert shortfall(coverage[:1], ["images"]) == ""


def test_two_kinds_of_data_from_one_folder_have_columns_of_their_own() -> None:
    found = coverage_table([Coverage("A", "coco", "images", 10, 10), Coverage("A", "coco", "masks", 7, 8)])
    assert found.datasets == ("coco, images", "coco, masks")
    assert found.rows == (("A", (("10", True), ("7 of 8", False))),)


def test_a_skipped_image_is_listed_once() -> None:
    study = outcome(TINY, {"FS": "fs"})
    study.results.coverage = [
        Coverage("FS", "menagerie", "images", 639, 640, {"cats/broken.png": "cannot identify image file"})
    ]
    assert gather(study).skipped == [("menagerie/cats/broken.png", "cannot identify image file")]


def test_similarities_of_two_datasets_do_not_mix() -> None:
    study = outcome(TINY, {"MAE": "mae", "FS": "fs"})
    alike = study.results.table.filter(pl.col("measure").is_in(["cka", "cka_null"]))
    study.results.extend([alike.with_columns(dataset=pl.lit("photos"), value=pl.col("value") / 2)])
    last = gather(study).data["similarity"]["last"]
    found = {(m["tokens"], m["dataset"]): (m["value"][0][1], m["null"][0][1]) for m in last}
    assert found == {
        ("cls", "menagerie"): (0.22, 0.01),
        ("cls", "photos"): (0.11, 0.005),
        ("spatial", "menagerie"): (0.176, 0.01),  # 0.8 * 0.22
        ("spatial", "photos"): (0.088, 0.005),
    }


def test_data_cannot_leave_its_element() -> None:
    hostile = "</script><!--\u2028 & <b>"
    text = as_json({"title": hostile})
    assert not set(text) & set("<>&\u2028")
    assert json.loads(text)["title"] == hostile


def test_page_of_seven_base_models_is_small_and_holds_everything(tmp_path: Path) -> None:
    path = write_page(outcome(Shape(depth=12, heads=12, grid=(14, 14))), tmp_path / "new" / "report.html")
    assert path.stat().st_size < 10_000_000
    text = path.read_text("utf-8")
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", text)
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text


def test_rows_without_numbers_leave_gaps_not_errors() -> None:
    study = outcome(TINY, {"FS": "fs"})
    study.results.table = study.results.table.with_columns(value=math.nan, ci_low=math.nan, ci_high=math.nan)
    assert "NaN" not in as_json(gather(study).data)


def test_nothing_at_all_is_said_plainly() -> None:
    page = gather(StudyOutcome(Results(title="empty")))
    assert page.subtitle == "This study has no results yet."
    assert page.findings == "No finding was checked in this study."


def test_saliency_stands_beside_taking_every_patch_for_the_object() -> None:
    study = outcome(TINY, {"FS": "fs", "DINO": "dino"})
    label = Label("FS", "fs", "menagerie", "p")
    study.results.extend([tidy(label, "object_share", torch.tensor(0.31), axes=())])
    found = gather(study).data["curves"]["saliency"]["measures"]["saliency_merged"]
    assert (found["line"], found["lineTitle"]) == (pytest.approx(0.31), "all patches")
    study.results.extend([tidy(label, "saliency_disc", torch.tensor(0.36), axes=())])
    found = gather(study).data["curves"]["saliency"]["measures"]["saliency_merged"]
    assert (found["line"], found["lineTitle"]) == (pytest.approx(0.36), "centred disc; all patches 0.31")
    for measure in ("object_share", "saliency_disc"):
        study.results.extend([tidy(replace(label, dataset="other"), measure, torch.tensor(0.5), axes=())])
    assert gather(study).data["curves"]["saliency"]["measures"]["saliency_merged"]["line"] is None  # not one for all


def told_without_tasks(measures: dict[tuple[str, str], list[float]]) -> list[str]:
    """What the first screen tells of a study that has only these numbers, layer by layer."""
    study = outcome(TINY, {"mine": "mae", "Untrained": "none"})
    some = study.results.table.filter((pl.col("model") == "mine") & pl.col("head").is_null()).head(1)
    rows = [
        some.with_columns(
            pl.lit("mine").alias("model"), pl.lit(measure).alias("measure"), pl.lit(variant).alias("variant"),
            pl.lit(layer, pl.Int32).alias("layer"), pl.lit(value).alias("value"), pl.lit("corrected").alias("protocol"),
            pl.lit(value - 0.1).alias("ci_low"), pl.lit(value + 0.1).alias("ci_high"),
        )
        for (measure, variant), values in measures.items()
        for layer, value in enumerate(values, 1)
    ]  # fmt: skip
    study.results.table = pl.concat(rows)
    return [told for _, told in gather(study).facts]


def test_without_tasks_the_first_screen_says_what_can_be_said() -> None:
    cues = {("shape_share", "cls"): [0.1, 0.25], ("shape_share", "mean"): [0.3, 0.9]}
    assert told_without_tasks(cues) == [
        "At its last layer, shape rather than texture decides 25 % of decided images (15 to 35 %)."
    ]
    numbers = {("patch_patch_cosine", ""): [0.5, 0.25, 0.75], ("norm_outliers", ""): [0.0, 0.0, 0.04]}
    assert told_without_tasks(numbers) == [
        "Patches are most alike at layer 3 (cosine 0.750) and least at layer 2 (0.250). At layer 3, 4.0 % of patch "
        "tokens are outliers by their norm."
    ]
    assert told_without_tasks({("norm_outliers", ""): [0.0, 0.0]}) == ["No token grows out of proportion."]


def test_findings_are_counted_in_words_that_fit() -> None:
    cards = finding_cards([Finding("F1", "x", Verdict.HOLDS, ""), Finding("F2", "x", Verdict.FAILS, "")], {})
    assert findings_sentence(cards) == "Of 2 findings of the paper, 1 holds here and 1 does not."
    untested = finding_cards([Finding("N1", "x", Verdict.UNTESTABLE, "")], {})
    assert findings_sentence(untested) == "The only finding since then cannot be tested with what this study has."
