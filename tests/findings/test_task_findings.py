"""F8 to F10 on constructed scores: true, false, not testable; and on the best layers that the paper reports."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.findings.constructed import SIX, Constructed, line, peak_at
from vitscope.findings.outcome import Verdict

HOLDS, FAILS, UNTESTABLE = Verdict.HOLDS, Verdict.FAILS, Verdict.UNTESTABLE
VARIANT = {"knn_top1": "cls k=20", "retrieval_map": "cls medium", "video_j&f": "", "pck@0.1": ""}
# the paper's table: best score and layer
PAPER = {
    "FS": {"knn_top1": (0.8379, 12), "retrieval_map": (0.45, 12), "video_j&f": (0.59, 8), "pck@0.1": (0.2856, 9)},
    "CLIP": {"knn_top1": (0.7575, 12), "retrieval_map": (0.40, 12), "video_j&f": (0.60, 9), "pck@0.1": (0.3070, 8)},
    "DINO": {"knn_top1": (0.7606, 12), "retrieval_map": (0.37, 12), "video_j&f": (0.60, 12), "pck@0.1": (0.2828, 9)},
    "MoCo": {"knn_top1": (0.7159, 12), "retrieval_map": (0.31, 12), "video_j&f": (0.61, 11), "pck@0.1": (0.2585, 9)},
    "MAE": {"knn_top1": (0.4519, 12), "retrieval_map": (0.15, 10), "video_j&f": (0.54, 12), "pck@0.1": (0.2274, 11)},
    "BEiT": {"knn_top1": (0.2684, 8), "retrieval_map": (0.14, 8), "video_j&f": (0.58, 9), "pck@0.1": (0.2411, 8)},
}


def scores(study: Constructed, measure: str, bests: dict[str, tuple[float, int]], **options: Any) -> Constructed:
    """Each model's curve is a tent with its best score at its best layer."""
    for model, (best, layer) in bests.items():
        values = peak_at(layer, best, best / 4)
        study.add(model, SIX[model], measure, values, variant=VARIANT[measure], dataset=measure, **options)
    return study


def papers(*measures: str, reach: float = 0.005) -> Constructed:
    study = Constructed(reach)
    for measure in measures:
        scores(study, measure, {model: row[measure] for model, row in PAPER.items()})
    return study


@pytest.mark.parametrize("key", ["F8", "F9", "F10"])
def test_the_papers_own_numbers_bear_out_its_findings(key: str) -> None:
    found = papers(*VARIANT).finding(key)
    assert found.verdict is HOLDS, found.reason
    assert found.evidence
    assert found.rule


# -- F8: global tasks ----------------------------------------------------------------------------------------


def test_f8_quotes_winner_layers_and_ratio() -> None:
    found = papers("knn_top1").finding("F8")
    assert "FS 83.79 %, DINO 76.06 %" in found.reason
    ratio = next(item for item in found.evidence if "best contrastive over" in item.what)
    assert ratio.value == pytest.approx(0.7606 / 0.8379)


def test_f8_fails_if_a_self_supervised_model_wins_or_the_difference_is_not_clear() -> None:
    study = scores(Constructed(), "knn_top1", {"FS": (0.7, 12), "DINO": (0.8, 12)})
    assert study.finding("F8").verdict is FAILS
    close = papers("knn_top1", reach=0.08).finding("F8")  # 0.077 apart, intervals of 0.08 each way
    assert close.verdict is FAILS
    assert "does not clearly win" in close.reason


def test_f8_fails_if_explicit_models_are_best_in_the_middle_or_contrastive_ones_far_behind() -> None:
    middle = scores(Constructed(), "knn_top1", {"FS": (0.8, 6), "DINO": (0.7, 12)}).finding("F8")
    assert middle.verdict is FAILS
    assert "FS 6 of 12" in middle.reason
    behind = scores(Constructed(), "knn_top1", {"FS": (0.8, 12), "DINO": (0.4, 12)}).finding("F8")
    assert behind.verdict is FAILS
    assert "50% of the best explicit score" in behind.reason


def test_f8_must_hold_on_every_dataset() -> None:
    study = papers("knn_top1")
    scores(study, "retrieval_map", {"FS": (0.3, 12), "DINO": (0.4, 12)})
    found = study.finding("F8")
    assert found.verdict is FAILS
    assert "retrieval" in found.reason.split(".")[0]


def test_f8_judges_every_knn_dataset_and_names_its_bank() -> None:
    study = Constructed()
    for dataset, bank, dino in (("seen", 1000, 0.7), ("unseen", 200, 0.9)):
        for model, best in (("FS", 0.8), ("DINO", dino)):
            study.add(model, SIX[model], "knn_top1", peak_at(12, best, 0.1), variant="cls k=20", dataset=dataset)
            study.add(model, SIX[model], "knn_bank", torch.tensor(float(bank)), dataset=dataset)
    found = study.finding("F8")
    assert found.verdict is FAILS
    refuted, _, held = found.reason.partition("What does hold")
    assert "k-NN (unseen, 200 labelled images) (FS 80.00 %, DINO 90.00 %)" in refuted
    assert "wins at k-NN (seen, 1,000 labelled images)" in held


def test_f8_says_what_is_missing() -> None:
    assert Constructed().finding("F8").reason.startswith("No k-NN or retrieval scores")
    alone = scores(Constructed(), "knn_top1", {"FS": (0.8, 12)}).finding("F8")
    assert alone.verdict is UNTESTABLE
    assert "no self-supervised model" in alone.reason
    without = scores(Constructed(), "knn_top1", {"DINO": (0.8, 12), "MAE": (0.5, 12)}).finding("F8")
    assert without.verdict is UNTESTABLE
    assert "no model taught by explicit supervision" in without.reason


def test_f8_adds_a_part_level_task_at_which_a_contrastive_model_is_superior() -> None:
    study = papers("knn_top1")
    assert "was not seen here" in study.finding("F8").reason
    scores(study, "pck@0.1", {"FS": (0.3, 9), "DINO": (0.4, 9)})
    found = study.finding("F8")
    assert found.verdict is HOLDS
    assert "DINO is superior at keypoints" in found.reason


def test_f8_under_the_published_protocol() -> None:
    study = papers("retrieval_map")
    scores(study, "retrieval_map", {"FS": (0.3, 12), "DINO": (0.4, 12)}, protocol="paper")
    found = study.finding("F8")
    assert (found.verdict, found.other_protocol) == (HOLDS, FAILS)


# -- F9: local tasks -----------------------------------------------------------------------------------------


def test_f9_counts_only_clear_best_layers() -> None:
    found = papers("video_j&f", "pck@0.1").finding("F9")
    assert found.verdict is HOLDS
    # of twelve best layers in the paper's table, DINO's and MAE's for video are the last
    assert "10 clearly before the last layer, 2 clearly at it, 0 undecided" in found.reason
    blurred = papers("video_j&f", reach=0.5).finding("F9")
    assert blurred.verdict is UNTESTABLE
    assert "6 undecided" in blurred.reason


def test_f9_fails_if_the_last_layer_is_best() -> None:
    bests = {"FS": (0.6, 12), "DINO": (0.6, 12), "MAE": (0.55, 12)}
    found = scores(Constructed(), "pck@0.1", bests).finding("F9")
    assert found.verdict is FAILS
    assert "3 clearly at it" in found.reason


def test_f9_fails_if_reconstruction_stays_behind_or_gains_nothing_on_global_tasks() -> None:
    behind = scores(Constructed(), "pck@0.1", {"FS": (0.6, 8), "MAE": (0.3, 8)}).finding("F9")
    assert behind.verdict is FAILS
    assert "50% at keypoints" in behind.reason
    study = scores(Constructed(), "pck@0.1", {"FS": (0.6, 8), "MAE": (0.5, 8)})
    assert study.finding("F9").verdict is HOLDS
    scores(study, "knn_top1", {"FS": (0.6, 12), "MAE": (0.59, 12)})  # as good at global tasks already
    assert study.finding("F9").verdict is FAILS


def test_f9_says_what_is_missing() -> None:
    assert Constructed().finding("F9").verdict is UNTESTABLE
    found = scores(Constructed(), "pck@0.1", {"FS": (0.6, 8), "DINO": (0.6, 8)}).finding("F9")
    assert found.verdict is UNTESTABLE
    assert "No model taught by reconstruction self-supervision (MAE, BEiT)" in found.reason
    shallow = Constructed().add("FS", "fs", "pck@0.1", [0.1, 0.3, 0.2]).add("MAE", "mae", "pck@0.1", [0.1, 0.3, 0.2])
    assert shallow.finding("F9").verdict is UNTESTABLE


# -- F10: no single best -------------------------------------------------------------------------------------


def test_f10_holds_if_every_model_is_beaten_somewhere_and_no_layer_serves_all() -> None:
    study = scores(Constructed(), "knn_top1", {"FS": (0.8, 12), "DINO": (0.6, 12)})
    scores(study, "pck@0.1", {"FS": (0.3, 8), "DINO": (0.4, 8)})
    found = study.finding("F10")
    assert found.verdict is HOLDS
    assert "FS at k-NN (knn_top1), DINO at keypoints (pck@0.1)" in found.reason


def test_f10_fails_if_one_model_is_unbeaten() -> None:
    study = scores(Constructed(), "knn_top1", {"FS": (0.8, 12), "DINO": (0.6, 12)})
    scores(study, "pck@0.1", {"FS": (0.4, 8), "DINO": (0.4, 8)})
    found = study.finding("F10")
    assert found.verdict is FAILS
    assert "FS is clearly beaten at no task" in found.reason


def test_f10_fails_if_one_layer_serves_everything() -> None:
    study = scores(Constructed(), "knn_top1", {"FS": (0.8, 12), "DINO": (0.6, 12)})
    scores(study, "pck@0.1", {"FS": (0.3, 12), "DINO": (0.4, 12)})
    found = study.finding("F10")
    assert found.verdict is FAILS
    assert "ayer 12 of 12 is, for every model and task, not clearly worse" in found.reason


def test_f10_compares_depths_not_numbers_of_layers() -> None:
    """Both are best at the end of their layers, whatever their number."""
    study = Constructed()
    for model, teaching, depth, good in (("FS", "fs", 12, 0.8), ("DINO", "dino", 6, 0.6)):
        study.add(model, teaching, "knn_top1", line(0.1, good, depth), variant="cls k=20")
        study.add(model, teaching, "pck@0.1", line(0.1, 1 - good, depth))
    assert "ayer 12 of 12" in study.finding("F10").reason


def test_f10_needs_two_tasks_and_two_models_on_them() -> None:
    assert Constructed().finding("F10").verdict is UNTESTABLE
    one = papers("knn_top1").finding("F10")
    assert one.verdict is UNTESTABLE
    assert "here: k-NN (knn_top1)" in one.reason
    apart = scores(Constructed(), "knn_top1", {"FS": (0.8, 12), "DINO": (0.6, 12)})
    scores(apart, "pck@0.1", {"MAE": (0.3, 12), "MoCo": (0.4, 12)})
    assert apart.finding("F10").verdict is UNTESTABLE
