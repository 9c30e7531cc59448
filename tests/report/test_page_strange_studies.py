"""Studies that are hostile, incomplete, mixed or empty still make a page that opens, and says what it is."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.report.conftest import Opener
from tests.report.constructed import outcome
from tests.report.constructed_attention import EXAMPLES, Shape
from vitscope.core.results import Coverage, Results
from vitscope.findings.outcome import Finding, StudyOutcome, Verdict

TINY = Shape(depth=4, heads=2, grid=(4, 4))
IMAGE = "<img src=x onerror=alert(1)>"
SCRIPT = "</script><script>document.title='owned'</script>"


def test_hostile_names_are_shown_not_run(open_page: Opener) -> None:
    study = outcome(TINY, {IMAGE: "fs", SCRIPT: "dino", "'\"&{{7*7}}": "other"})
    study.results.title = SCRIPT
    study.findings = [Finding("F1", IMAGE, Verdict.HOLDS, SCRIPT, rule=IMAGE, figure=SCRIPT)]
    study.results.coverage = [Coverage(IMAGE, SCRIPT, "images", 1, 2, {IMAGE: SCRIPT})]
    study.results.settings = {IMAGE: SCRIPT}
    study.results.notes.append(SCRIPT)
    page = open_page(study)
    assert page.title() == f"{SCRIPT} (incomplete) – vitscope"
    assert page.locator("img").count() == EXAMPLES  # the study's own pictures
    assert page.locator("body script").count() == 2  # the study as data, and the page's script
    assert page.locator("h1").inner_text() == SCRIPT
    page.locator("#atlas-grids .cell").first.click()
    expect(page.locator("#head h3")).to_contain_text(IMAGE)
    page.locator("#atlas-grids .cell").first.hover()
    expect(page.locator("#tooltip")).to_contain_text(IMAGE)
    assert "49" not in page.locator("#chart-table").inner_text().split("{{7*7}}")[0][-3:]
    expect(page.locator("#chart-table")).to_contain_text("'\"&{{7*7}}")


def test_incomplete_study_says_so_at_the_top_and_below_its_charts(open_page: Opener) -> None:
    study = outcome(TINY, {"MAE": "mae", "FS": "fs"})
    study.results.coverage = [
        Coverage("MAE", "photos", "images", 320, 640),
        Coverage("FS", "photos", "images", 640, 640),
        Coverage("MAE", "pairs", "keypoints", 0, 90),
    ]
    study.results.failures = ["keypoints of MAE on pairs: the disk is full"]
    page = open_page(study)
    expect(page.locator("#incomplete")).to_be_visible()
    expect(page.locator("#incomplete")).to_contain_text(
        "Could not be done: keypoints of MAE on pairs: the disk is full"
    )
    expect(page.locator("#incomplete")).to_contain_text("MAE, photos: 320 of 640")
    expect(page.locator("#chart-distance .short")).to_have_text("Incomplete: MAE 320 of 640 (photos).")
    expect(page.locator("#chart-tasks .short")).to_have_text("Incomplete: MAE 0 of 90 (pairs).")
    expect(page.locator(".coverage .partial")).to_have_count(2)
    assert "incomplete" in page.title()


def test_complete_study_has_no_warning(open_page: Opener) -> None:
    page = open_page()
    assert page.locator("#incomplete, .short, .partial").count() == 0
    assert "incomplete" not in page.title()


def test_long_names_that_begin_alike_are_told_apart_and_not_cut_off(open_page: Opener) -> None:
    names = [f"Untrained vit_small_patch14_{rest}dinov2" for rest in ("", "reg4_", "reg4_wide_")]
    page = open_page(outcome(TINY, dict.fromkeys([*names, "Mine"], "none")))
    labels = page.locator("#chart-distance .chart g[data-model] text.label")
    expect(labels).to_have_count(4)
    assert len(set(labels.all_text_contents())) == 4
    chart = page.locator("#chart-distance .chart").bounding_box()
    boxes = [label.bounding_box() for label in labels.all()]
    assert chart is not None
    assert all(box is not None and box["x"] + box["width"] <= chart["x"] + chart["width"] for box in boxes)
    expect(page.locator("#atlas-grids")).to_contain_text(names[1])


def test_models_of_different_shapes_share_axes_of_relative_depth(open_page: Opener) -> None:
    study = outcome(TINY, {"Small": "dino", "Small too": "dino"})
    deep = outcome(Shape(depth=6, heads=3, grid=(3, 5)), {"Deep": "moco"})
    for name in [name for name in deep.results.maps if name.endswith("/cls")]:
        del deep.results.maps[name]  # a model without CLS
    study.results.join(deep.results)
    page = open_page(study)
    expect(page.locator("#chart-distance .chart")).to_contain_text("100 %")
    assert page.locator("#atlas-grids .panel").count() == 3
    page.locator(".legend").get_by_role("button", name="Small too").click()  # models of one teaching can be told apart
    expect(page.locator("#atlas-grids .panel:visible")).to_have_count(1)
    chart = page.locator("#chart-distance .chart")
    chart.focus()
    page.keyboard.press("End")
    expect(page.locator("#tooltip")).to_contain_text("100 % of the depth")


def test_study_without_results_makes_a_page(open_page: Opener) -> None:
    page = open_page(StudyOutcome(Results(title="Nothing yet")))
    expect(page.locator("header .lead").first).to_have_text("This study has no results yet.")
    assert page.locator("#how, #what, #why, #atlas, #findings").count() == 0  # chapters without data
