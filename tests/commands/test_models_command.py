"""`vitscope models` shows the zoo's cards so that a person can read them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from vitscope.commands.zoo_cards import card_page, cards_table
from vitscope.models.card import ModelCard

FIGURE = {"mean": 0.8123, "low": 0.79, "high": 0.83, "at": "CLS, layer 2"}
EXAM = {
    "measures": {"unc": "species, k-NN, appearance-free"},
    "interval": "95 %, over seeds",
    "layer_choice": "the best",
    "figures": {"unc": FIGURE},
    "beside": {"unc": {"untrained": 0.11}},
    "layers": {"unc": {"CLS": [0.1, 0.8], "patches": [0.2, 0.3]}},
    "targets": [
        {"name": "FS: species", "asked": "at least 0.80", "met": True},
        {"name": "FS: parts", "asked": "at least 0.90; above 0.10", "met": False, "missed": "at least 0.90"},
    ],
}
CURVE = [{"images": 1000 * i, "cpu_seconds": 60 * i, "loss": 2.0, "knn_UNC": i / 100} for i in range(1, 31)]


def card(**provenance: object) -> ModelCard:
    return ModelCard(name="zoo/fs", architecture="vit", weights=Path("fs.safetensors"), teaching="fs",
                     options={"depth": 2}, provenance=provenance)  # fmt: skip


def shown(what: RenderableType, width: int = 100) -> list[str]:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(what)
    return console.export_text().splitlines()


def test_a_line_says_what_it_saw_what_it_can_do_and_what_it_missed() -> None:
    examined = card(images_seen=812_000, cpu_seconds=9000, exam=EXAM)
    row = next(line for line in shown(cards_table([examined], 100)) if "zoo/fs" in line)
    assert row.split() == ["zoo/fs", "FS", "812k", "2.5", "h", "0.81", "-", "-", "-", "-", "-", "-", "1/2"]


@pytest.mark.parametrize("width", [60, 80])
def test_no_line_is_cut_in_a_narrow_terminal(width: int) -> None:
    examined = card(images_seen=1_812_000, cpu_seconds=90000, exam=EXAM | {"figures": dict.fromkeys(
        ("unc", "nat", "pck", "jf", "purity", "iou"), FIGURE)})  # fmt: skip
    lines = shown(cards_table([examined], width), width)
    row = next(line for line in lines if "zoo/fs" in line)
    assert "…" not in row
    assert row.split()[-1] == "1/2"


def test_a_page_shows_the_curve_the_exam_and_the_targets() -> None:
    page = "\n".join(shown(card_page(card(images_seen=30_000, cpu_seconds=1800, learning_curve=CURVE, exam=EXAM))))
    assert "30,000 images seen in 30 min" in page
    assert page.count(" min ") <= 8  # the curve is thinned out
    assert "0.300" in page  # its last point is there
    assert "▁█" in page  # the CLS curve, which is the better one
    assert "0.110 untrained" in page
    assert "not met  FS: parts: at least 0.90; above 0.10; missed: at least 0.90" in page


def test_a_card_without_an_exam_says_so() -> None:
    assert any("not examined" in line for line in shown(card_page(card(images_seen=10, cpu_seconds=1))))
