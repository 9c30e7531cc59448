"""Can everyone read the page? Contrast of every text (WCAG AA), names of controls, nothing wider than the window."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from tests.report.conftest import Opener
from tests.report.constructed import outcome
from tests.report.constructed_attention import Shape
from vitscope.findings.outcome import StudyOutcome

TINY = Shape(depth=4, heads=2, grid=(4, 4))

# Texts whose contrast with what is behind them is too low: 4.5, or 3 for large ones (24 px, or 18.66 px and bold).
# What has an opacity is mixed with its background first; pictures and texts that nobody sees are passed over.
LOW_CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const parse = (text) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const light = (c) => {
    const [r, g, b] = c.slice(0, 3).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const cell = element.matches(".heat-value") && element.previousElementSibling; // a value on its cell of a heat map
    if (cell) return parse(getComputedStyle(cell).fill);
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.unshift(parse(getComputedStyle(e).backgroundColor));
    return layers.reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim(), element = walker.currentNode.parentElement;
    if (!text || element.closest("script, style, noscript, .hear, .skip, [hidden]")) continue;
    if (!element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    let opacity = 1;
    for (let e = element; e; e = e.parentElement) opacity *= Number(getComputedStyle(e).opacity);
    if (opacity === 0) continue;
    const colour = parse(element instanceof SVGElement ? style.fill : style.color);
    const ground = behind(element);
    const [a, b] = [light(over([...colour.slice(0, 3), colour[3] * opacity], ground)), light(ground)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize), bold = Number(style.fontWeight) >= 700;
    if (ratio < (size >= 24 || (bold && size >= 18.66) ? 3 : 4.5))
      found.push(`${text.slice(0, 40)}: ${ratio.toFixed(2)} (${element.getAttribute("class") || element.tagName})`);
  }
  return [...new Set(found)];
}"""

# Elements that reach beyond the window and do not lie in something that scrolls or hides.
TOO_WIDE = """() => [...document.querySelectorAll("main *, header *, .bar")].filter((element) => {
  const box = element.getBoundingClientRect();
  if (!box.width || box.right <= innerWidth + 1) return false;
  for (let e = element.parentElement; e && e !== document.body; e = e.parentElement)
    if (getComputedStyle(e).overflowX !== "visible") return false;
  return true;
}).map((element) => `${element.tagName}.${element.getAttribute("class")}`)"""

# Controls, pictures and regions that a screen reader could not name; ids that stand twice; headings that skip a level.
UNNAMED = """() => {
  const named = (e) => (e.getAttribute("aria-label") || e.getAttribute("alt") || e.title || e.textContent).trim()
    || e.labels?.length || document.getElementById(e.getAttribute("aria-labelledby"));
  const controls = [...document.querySelectorAll("button, a[href], input, select, [role=img], img, [role=region]")];
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  const levels = [...document.querySelectorAll("h1, h2, h3, h4, h5")].map((e) => Number(e.tagName[1]));
  return [
    ...controls.filter((e) => e.checkVisibility() && !named(e)).map((e) => e.outerHTML.slice(0, 100)),
    ...ids.filter((id, i) => ids.indexOf(id) !== i),
    ...levels.filter((level, i) => i && level > levels[i - 1] + 1).map((level) => `a heading h${level} skips a level`),
  ];
}"""


def random_networks() -> StudyOutcome:
    return outcome(TINY, {f"random:vit_tiny_patch16_224 #{seed}": "none" for seed in range(4)})


def one_model_without_labels() -> StudyOutcome:
    study = outcome(TINY, {"my-checkpoint-epoch-300.pth": "other"})
    unlabelled = ("attention_distance", "gini", "head_kind", "effective_rank", "skip_over_branch")
    study.results.table = study.results.table.filter(study.results.table["measure"].is_in(unlabelled))
    study.findings = []
    return study


def two_networks_and_their_twins() -> StudyOutcome:
    """As of photos with masks and a video: no labels, no retrieval, no keypoints."""
    study = outcome(TINY, {"DINOv2 S/14": "dino", "FS B/16": "fs", "Untrained S/14": "none", "Untrained B/16": "none"})
    asked = pl.col("measure").str.contains("knn|probe|retrieval|pck|purity|nmi|ari")
    study.results.table = study.results.table.filter(~asked)
    return study


def series() -> StudyOutcome:
    """Checkpoints of one run, with curves over steps."""
    steps = (30, 60, 90, 120, 150)
    study = outcome(TINY, {f"a run of mine @ {step}": "mae" for step in steps} | {"Untrained vit_tiny": "none"})
    models = [{"name": "x", "title": f"a run of mine @ {step}", "series": "a run", "step": step} for step in steps]
    study.results.settings = {"models": models}
    return study


STUDIES: dict[str, Callable[[], StudyOutcome | None]] = {
    "demo": lambda: None,
    "random networks": random_networks,
    "two networks": two_networks_and_their_twins,
    "series": series,
    "one model": one_model_without_labels,
}

# Marks and curves whose contrast with the page is below 3; what is faded on purpose (chance, bands) is not among them.
PALE_MARKS = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const light = (text) => {
    canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3)
      .map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = light(getComputedStyle(document.body).backgroundColor);
  return [...document.querySelectorAll(".mark, .chart .curve, .chart .symbol, .ring")].filter((element) => {
    const filled = element.matches(".symbol") && !element.closest(".hollow");
    const shown = light(getComputedStyle(element)[filled ? "fill" : "stroke"]);
    return (Math.max(shown, ground) + 0.05) / (Math.min(shown, ground) + 0.05) < 3;
  }).map((element) => element.outerHTML.slice(0, 120));
}"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", STUDIES)
def test_everyone_can_read_it(open_page: Opener, name: str, dark: bool) -> None:
    page = open_page(STUDIES[name](), width=1400, dark=dark)
    for width in (1400, 768, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(150)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(TOO_WIDE) == []
    assert page.evaluate(LOW_CONTRAST) == []
    assert page.evaluate(PALE_MARKS) == []
    assert page.evaluate(UNNAMED) == []


@pytest.mark.skipif("VITSCOPE_AXE" not in os.environ, reason="VITSCOPE_AXE names axe.min.js of `npm pack axe-core`")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", STUDIES)
def test_axe_finds_no_violation(open_page: Opener, name: str, dark: bool) -> None:
    page = open_page(STUDIES[name](), dark=dark)
    page.evaluate(Path(os.environ["VITSCOPE_AXE"]).read_text("utf-8"))
    found = page.evaluate("axe.run()")["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []


def test_random_networks_are_not_recommended_on_the_page(open_page: Opener) -> None:
    page = open_page(random_networks())
    told = page.locator("#overview").inner_text()
    assert "Take " not in told
    assert "Nothing to recommend: no model of this study was taught." in told


def test_a_low_contrast_would_be_noticed(open_page: Opener) -> None:
    page = open_page(one_model_without_labels())
    page.evaluate("document.querySelector('h1').setAttribute('class', 'pale')")
    page.evaluate("document.styleSheets[0].insertRule('.pale { color: #999 !important; opacity: 0.5 }')")
    assert any(": 1." in text for text in page.evaluate(LOW_CONTRAST))
