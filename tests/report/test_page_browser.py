"""The page as a reader meets it: opened in Chromium, hovered, clicked, walked by keys."""

from __future__ import annotations

import io
import re
from contextlib import suppress
from importlib import resources
from xml.etree import ElementTree

import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from tests.report.conftest import Opener
from tests.report.constructed import outcome
from tests.report.constructed_attention import Shape


def hover_layer(page: Page, chart: Locator, layer: int) -> str:
    """Put the pointer above a layer's number on a chart of curves; returns what the tooltip says."""
    tooltip = page.locator("#tooltip")
    for nudge in range(5):  # the page may still be laying itself out while the pointer comes
        chart.scroll_into_view_if_needed()
        tick = chart.locator("text[text-anchor=middle]").filter(has_text=re.compile(f"^{layer}$")).bounding_box()
        box = chart.bounding_box()
        assert tick
        assert box
        page.mouse.move(tick["x"] + tick["width"] / 2 + nudge, box["y"] + 0.72 * box["height"])
        with suppress(AssertionError):
            expect(tooltip).to_be_visible(timeout=1000)
            break
    expect(tooltip).to_be_visible()
    return tooltip.inner_text()


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (390, True)])
def test_opens_quietly_and_fits_its_window(open_page: Opener, width: int, dark: bool) -> None:
    page = open_page(width=width, dark=dark)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for chapter in ("overview", "how", "atlas", "what", "why", "findings", "methods"):
        expect(page.locator(f"#{chapter} h2")).to_be_visible()
    assert page.locator(".drawing svg.chart").count() >= 7 + 6 + 2  # curves, tasks, heat maps
    assert page.locator("#overview [data-task] svg").count() == 6
    expect(page.locator("#overview .advice.take").first).to_contain_text("Take FS at layer 12 of 12")
    expect(page.locator("#overview .scores").first).to_contain_text("MAE 45.00")  # without hovering


def test_hovering_tells_the_planted_value_with_its_interval(open_page: Opener) -> None:
    page = open_page()
    told = hover_layer(page, page.locator("[data-task='0'] svg"), 12)
    assert "Layer 12" in told
    assert "FS\t84.0\t82.8–85.2" in told.replace("\n\t", "\t")
    assert "CLIP\t76.0" in told


def test_picking_a_token_redraws_the_chart(open_page: Opener) -> None:
    page = open_page()
    figure = page.locator("#chart-clusters")
    expect(figure.locator(".reading")).to_contain_text("FS at layer 12: 0.756")  # 0.9 * 0.84
    figure.get_by_role("radio", name="objects or parts").check()
    expect(figure.locator(".reading")).to_contain_text("FS at layer 12: 0.504")  # 0.6 * 0.84


def test_isolating_a_teaching_fades_all_others_everywhere(open_page: Opener) -> None:
    page = open_page()
    page.get_by_role("button", name="DINO").first.click()
    for place in ("#overview", "#chart-distance", "#chart-kinds", "#chart-views", "#atlas", "#chart-similarity",
                  "#chart-depth", "#chart-spaces", "#chart-table", "#chart-tasks"):  # fmt: skip
        expect(page.locator(f"{place} [data-model='2']")).not_to_have_count(0)
        expect(page.locator(f"{place} [data-model='2'].away")).to_have_count(0)
        expect(page.locator(f"{place} [data-model].away")).not_to_have_count(0)
        expect(page.locator(f"{place} [data-model]:not([data-model='2']):not(.away)")).to_have_count(0)
    told = hover_layer(page, page.locator("[data-task='0'] svg"), 12)
    assert "DINO" in told
    assert "CLIP" not in told
    expect(page.locator("#head h3")).to_contain_text("DINO")  # the picked head follows
    page.keyboard.press("Escape")
    expect(page.locator("[data-model].away")).to_have_count(0)
    expect(page.locator("#show-all")).to_be_hidden()


def test_two_teachings_can_be_compared(open_page: Opener) -> None:
    page = open_page()
    page.get_by_role("button", name="FS").first.click()
    page.get_by_role("button", name="MAE").first.click()
    expect(page.locator("#atlas-grids .panel:visible")).to_have_count(2)
    page.get_by_role("button", name="Show all").click()
    expect(page.locator("#atlas-grids .panel:visible")).to_have_count(7)


def test_picking_a_head_shows_it_large_with_its_numbers(open_page: Opener) -> None:
    page = open_page()
    page.locator("#atlas-grids .panel[data-model='5'] .cell[data-index='4']").click()  # layer 2, head 1 of 4
    head = page.locator("#head")
    expect(head).to_contain_text("BEiT")
    expect(head).to_contain_text("layer 2, head 1")
    expect(head).to_contain_text("offset local: left")
    for number in ("distance", "entropy", "attention on CLS", "object IoU", "stability"):
        expect(head.locator("dt", has_text=number).first).to_be_visible()
    box = head.locator("canvas").first.bounding_box()
    assert box
    cells = 13  # 6 steps each way: three quarters of 8
    page.mouse.move(box["x"] + box["width"] * 5.5 / cells, box["y"] + box["height"] * 6.5 / cells)
    told = page.locator("#tooltip").inner_text()
    assert "left" in told
    assert 49 < float(told.split()[0]) < 51  # half of the attention was planted there, and a little noise


def test_squares_and_sliders_pick_heads_too(open_page: Opener) -> None:
    page = open_page()
    page.locator("#kinds .panel[data-model='1'] .unit").first.click()
    expect(page.locator("#head h3")).to_contain_text("CLIP")
    page.locator("#view-pickers input[type=range]").first.fill("7")
    expect(page.locator("#head h3")).to_contain_text("layer 7")
    assert page.locator("#views canvas:visible").count() == 7


def test_a_picture_lights_up_where_a_head_looks(open_page: Opener) -> None:
    page = open_page()
    tile = page.locator("#views .view-tile").nth(1)
    page.locator("#view-pickers input[type=radio][value='2']").check()
    expect(tile.locator("canvas")).to_have_class("lit")
    expect(page.get_by_text("Attention from")).to_be_hidden()
    extremes = """c => {
      const copy = new OffscreenCanvas(c.width, c.height).getContext("2d", { willReadFrequently: true });
      copy.drawImage(c, 0, 0);
      const values = copy.getImageData(0, 0, c.width, c.height).data.filter((_, i) => i % 4 < 3);
      return [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
    }"""
    opacity = page.get_by_label("Opacity")
    opacity.fill("0")
    expect(tile.locator("canvas")).to_have_js_property("width", 448)
    low, high = tile.locator("canvas").evaluate(extremes)
    assert abs(low - 160) <= 3  # the third picture's grey, and nothing else
    assert abs(high - 160) <= 3
    opacity.fill("100")
    assert abs(tile.locator("canvas").evaluate(extremes)[1] - 0xFD) <= 2  # the ramp's last colour, where attention is
    expect(page.locator("#views .ramp")).to_contain_text("most attended patch of each map, at least")
    page.get_by_label("one for a row").check()
    expect(page.locator("#views .ramp")).to_contain_text("% on one patch, in all models")
    page.locator("#view-pickers input[type=radio][value='-1']").check()
    expect(tile.locator("canvas")).not_to_have_class("lit")


def test_every_head_of_a_model_can_be_seen_over_a_picture(open_page: Opener) -> None:
    page = open_page()
    page.locator("#view-pickers input[type=radio][value='1']").check()
    page.get_by_label("every head of the picked model").check()
    mosaic = page.locator("#views .mosaic canvas")
    expect(mosaic).to_be_visible()
    expect(page.locator("#views .view-tile").first).to_be_hidden()
    box = mosaic.bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] * 2.5 / 4, box["y"] + box["height"] * 4.5 / 12)  # 12 layers, 4 heads
    expect(page.locator("#head h3")).to_contain_text("layer 5, head 3")


def saved(page: Page, button: Locator) -> tuple[str, bytes]:
    """Press a button that hands over a file; its name and content."""
    with page.expect_download() as handed:
        button.click()
    return handed.value.suggested_filename, handed.value.path().read_bytes()


def test_charts_can_be_taken_along(open_page: Opener) -> None:
    page = open_page()
    task = page.locator(".multiple").first
    name, rows = saved(page, task.get_by_role("button", name="CSV"))
    assert name == "k-nn-menagerie.csv"
    lines = rows.decode().splitlines()
    assert lines[0] == "model,dataset,layer,head,measure,variant,protocol,value,ci_low,ci_high,n"
    assert [line.split(",")[7:9] for line in lines if line.startswith("FS,menagerie,12,")] == [["84", "82.8"]]
    name, drawing = saved(page, task.get_by_role("button", name="SVG"))
    root = ElementTree.fromstring(drawing)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"k-NN, menagerie", "FS", "MAE", "layer"} <= texts
    assert b"var(" not in drawing  # it stands on its own
    name, image = saved(page, task.get_by_role("button", name="PNG"))
    opened = Image.open(io.BytesIO(image))
    assert opened.width > 2000
    assert len(opened.convert("RGB").getcolors(1 << 20) or []) > 20
    for figure in ("#chart-depth", "#chart-similarity", "#chart-distance", "#chart-spaces"):
        assert saved(page, page.locator(figure).get_by_role("button", name="SVG"))[1].startswith(b"<svg")
    for figure in ("#chart-kinds", "#chart-table", "#chart-distance", "#chart-spaces"):
        assert len(saved(page, page.locator(figure).get_by_role("button", name="CSV"))[1].splitlines()) > 7
    for figure in ("#chart-views", "#chart-spaces"):
        assert saved(page, page.locator(figure).get_by_role("button", name="PNG"))[1].startswith(b"\x89PNG")
    page.locator("#cite summary").click()
    assert saved(page, page.get_by_role("button", name="Save as .bib"))[1].startswith(b"@software{vitscope")


def test_a_run_over_time_can_be_taken_along(open_page: Opener) -> None:
    steps = (30, 60, 90)
    study = outcome(Shape(depth=4, heads=2, grid=(4, 4)), {f"a run @ {step}": "mae" for step in steps})
    entries = [{"name": "x", "title": f"a run @ {step}", "series": "a run", "step": step} for step in steps]
    study.results.settings = {"models": entries}
    chart = (page := open_page(study)).locator("#chart-growing")
    name, drawing = saved(page, chart.get_by_role("button", name="SVG"))
    assert name == "growing-up.svg"
    assert ElementTree.fromstring(drawing).tag == "{http://www.w3.org/2000/svg}svg"
    assert saved(page, chart.get_by_role("button", name="PNG"))[1].startswith(b"\x89PNG")
    lines = saved(page, chart.get_by_role("button", name="CSV"))[1].decode().splitlines()
    assert lines[0] == "series,curve,measure,step,value,ci_low,ci_high"
    assert {line.split(",")[-4] for line in lines[1:]} == {"30", "60", "90"}


@pytest.mark.parametrize("width", [768, 390])
def test_on_a_small_screen_nothing_covers_what_is_read(open_page: Opener, width: int) -> None:
    page = open_page(width=width)
    cell = page.locator("#atlas-grids .panel[data-model='2'] .cell[data-index='40']")
    cell.scroll_into_view_if_needed()
    cell.click()
    head = page.locator("#head")
    expect(head).to_contain_text("DINO")
    panel, grids = head.bounding_box(), page.locator("#atlas-grids .heads")
    assert panel
    for number in range(grids.count()):
        grid = grids.nth(number).bounding_box()
        assert grid
        above, below = grid["y"] + grid["height"] <= panel["y"], grid["y"] >= panel["y"] + panel["height"]
        beside = grid["x"] >= panel["x"] + panel["width"] or grid["x"] + grid["width"] <= panel["x"]
        assert above or below or beside
    expect(page.locator("#chart-table .scrolls")).to_be_visible()
    chart = page.locator("[data-task='0'] svg")
    hover_layer(page, chart, 12)
    tick = chart.locator("text[text-anchor=middle]").filter(has_text=re.compile("^12$")).bounding_box()
    tooltip = page.locator("#tooltip").bounding_box()
    assert tick
    assert tooltip
    middle = tick["x"] + tick["width"] / 2
    on_top = tooltip["x"] < middle < tooltip["x"] + tooltip["width"]
    pointer = chart.bounding_box()
    assert pointer
    y = pointer["y"] + 0.72 * pointer["height"]
    assert not (on_top and tooltip["y"] < y < tooltip["y"] + tooltip["height"])


def test_heat_map_tells_planted_similarity(open_page: Opener) -> None:
    page = open_page()
    chart = page.locator("#chart-similarity svg.heatmap")
    chart.scroll_into_view_if_needed()
    cell = chart.locator("rect").nth(1).bounding_box()  # FS with CLIP
    assert cell
    page.mouse.move(cell["x"] + cell["width"] / 2, cell["y"] + cell["height"] / 2)
    told = page.locator("#tooltip").inner_text()
    assert "FS and CLIP" in told
    assert "0.720 (0.690–0.750)" in told
    page.locator("#chart-depth .thumb").nth(4).click()
    expect(page.locator("#chart-depth .note")).to_contain_text("layers of MAE")


def test_everything_can_be_reached_by_keys(open_page: Opener) -> None:
    page = open_page()
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator(".bar nav a").first).to_be_focused()
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"

    page.locator("#atlas-grids .panel[data-model='0'] .cell[tabindex='0']").focus()  # the head picked at first
    walk = {
        "Home": "layer 2, head 1",
        "ArrowRight": "layer 2, head 2",
        "ArrowDown": "layer 3, head 2",
        "End": "layer 3, head 4",
        "ArrowUp": "layer 2, head 4",
        "ArrowLeft": "layer 2, head 3",
    }
    for key, where in walk.items():
        page.keyboard.press(key)
        expect(page.locator("#head h3")).to_contain_text(where)
        expect(page.locator(".cell:focus")).to_have_attribute("aria-selected", "true")

    chart = page.locator("[data-task='0'] svg")
    chart.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#tooltip")).to_contain_text("Layer 11")

    theme = page.get_by_role("button", name="Dark colours")
    theme.focus()
    page.keyboard.press("Enter")
    expect(theme).to_have_attribute("aria-pressed", "true")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 20, 27)"


def test_findings_show_verdict_evidence_and_where_the_protocol_matters(open_page: Opener) -> None:
    page = open_page()
    assert page.locator(".card").count() == 9
    card = page.locator("#finding-F4")
    expect(card).to_contain_text("does not hold")
    expect(card).to_contain_text("Under the paper's protocol: holds.")
    card.locator("summary").click()
    expect(card.locator(".evidence")).to_contain_text("0.401–0.461")
    card.get_by_role("link").click()  # the chart opens on the measure that the finding rests on
    expect(page.locator("#chart-saliency input:checked").first).to_have_value("saliency_merged")
    page.get_by_text("What it would take to test the other 1").click()
    expect(page.locator("li#finding-F10")).to_be_visible()


def test_prints_light_and_without_controls(open_page: Opener) -> None:
    page = open_page(dark=True)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    expect(page.locator(".bar nav")).to_be_hidden()
    expect(page.locator(".pickers").first).to_be_hidden()
    expect(page.locator("#finding-F1 .evidence")).to_be_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_zero_stays_inside_a_chart_with_a_logarithmic_axis(open_page: Opener) -> None:
    """The paper's noise carries nothing past its first block: that point once lay two screens below its chart."""
    script = resources.files("vitscope.report.page").joinpath("js/axes.js").read_text(encoding="utf-8")
    scale = "verticalScale([0, 1, 100], {floor: null, log: true, line: null}, 30, 300)"
    zero, one, hundred = open_page().evaluate(f"(() => {{ {script}\n return [0, 1, 100].map({scale}.y); }})()")
    assert zero == 300
    assert 30 <= hundred < one <= 300
