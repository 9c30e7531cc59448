"""N1 to N4 on constructed results: true, false, and not testable."""

from __future__ import annotations

import pytest

from tests.findings.constructed import KIND, SIX, Constructed, line
from vitscope.findings.outcome import Verdict
from vitscope.report.page.findings import finding_cards, findings_sentence

HOLDS, FAILS, UNTESTABLE = Verdict.HOLDS, Verdict.FAILS, Verdict.UNTESTABLE
MEASURE = {"N1": "sink_ratio", "N2": "position_share", "N3": "attention_nmi", "N4": "cls_self"}
LAST = {  # of a straight line from .2 at the first layer; late layers are 10 to 12
    "N1": {"explicit": 60.0, "contrastive": 20.0, "reconstruction": 10.0},
    "N2": {"explicit": 0.02, "contrastive": 0.05, "reconstruction": 0.4},
    "N3": {"explicit": 0.1, "contrastive": 0.05, "reconstruction": 0.4},
    "N4": {"explicit": 0.02, "contrastive": 0.05, "reconstruction": 0.6},
}


def study(key: str, models: dict[str, str] = SIX, depth: int = 12, **changed: float) -> Constructed:
    """Curves of the one measure, two heads that differ by nothing where it has heads."""
    made = Constructed(reach=0.01)
    for model, teaching in models.items():
        values = line(0.2, changed.get(model) or LAST[key][KIND[teaching]], depth)
        heads = MEASURE[key] != "position_share"
        made.add(model, teaching, MEASURE[key], [[v, v] for v in values] if heads else values)
    return made


@pytest.mark.parametrize("key", LAST)
def test_it_holds_where_kinds_differ_as_said(key: str) -> None:
    found = study(key).finding(key)
    assert found.verdict is HOLDS
    assert len(found.evidence) == 6
    mean = 0.2 + (LAST[key][KIND["mae"]] - 0.2) * 10 / 11  # of layers 10, 11 and 12 of a line
    shown = next(item for item in found.evidence if item.what.startswith("MAE"))
    assert shown.value == pytest.approx(mean)


@pytest.mark.parametrize("key", LAST)
def test_it_fails_where_they_do_not(key: str) -> None:
    same = dict.fromkeys(SIX, 0.2)
    assert study(key, **same).finding(key).verdict is FAILS


@pytest.mark.parametrize("key", LAST)
def test_it_is_open_without_one_side(key: str) -> None:
    without = {m: t for m, t in SIX.items() if KIND[t] != "reconstruction"}
    found = study(key, without).finding(key)
    assert found.verdict is UNTESTABLE
    assert "o model taught by reconstruction self-supervision (MAE, BEiT)" in found.reason
    assert study(key, depth=2).finding(key).verdict is UNTESTABLE  # no last quarter
    assert Constructed().finding(key).verdict is UNTESTABLE
    untaught = study(key, {"Untrained": "none", "Other": "other"}, Untrained=0.2, Other=0.2)
    assert untaught.finding(key).verdict is UNTESTABLE


@pytest.mark.parametrize("key", LAST)
def test_modern_models_are_not_taken_for_the_studys_methods(key: str) -> None:
    """They are in the table and on the page; what is said of families is decided without them."""
    modern = {
        "SigLIP 2": "image-text",
        "DeiT-III": "labels",
        "DINOv3": "self-distillation",
        "EVA-02": "masked-features",
    }
    against = dict.fromkeys(modern, 0.2)
    both = study(key, SIX | modern, **against).finding(key)
    assert both.verdict is HOLDS
    assert both.reason == study(key).finding(key).reason
    assert study(key, modern, **against).finding(key).verdict is UNTESTABLE


def test_one_of_two_other_kinds_is_enough_and_the_absent_one_is_told() -> None:
    found = study("N2", {"MAE": "mae", "DINO": "dino"}).finding("N2")
    assert found.verdict is HOLDS
    assert "Not tested: no model taught by explicit supervision" in found.reason


def test_the_page_tells_the_papers_from_those_since() -> None:
    found = [study("N2").finding("N2"), study("N2").finding("F1")]
    text = findings_sentence(finding_cards(found, {}))
    assert "The only finding of the paper cannot be tested" in text
    assert "Of 1 finding since then, 1 holds" in text
