"""F1 to F4 on constructed results: true, false, and not testable."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.findings.constructed import KIND, SIX, Constructed, line
from vitscope.attention.kinds import KINDS, LATE_KINDS
from vitscope.findings.outcome import Verdict

HOLDS, FAILS, UNTESTABLE = Verdict.HOLDS, Verdict.FAILS, Verdict.UNTESTABLE
LOOK = {"explicit": "sparse-repeating", "contrastive": "object-centred", "reconstruction": "diverse"}
COMPACT = {"explicit": 0.3, "contrastive": 0.7, "reconstruction": 0.4}
REPEAT = {"explicit": 0.6, "contrastive": 0.6, "reconstruction": 0.1}


# -- F1: late patterns ---------------------------------------------------------------------------------------


def late(study: Constructed, model: str, teaching: str, look: str, *, depth: int = 12, share: int = 3) -> None:
    """Of four heads in each of the last quarter of the layers, `share` look one way, the others another."""
    kind, first = KIND[teaching], depth - depth // 4
    other = LATE_KINDS[(LATE_KINDS.index(look) + 1) % 3]
    for name in LATE_KINDS:
        heads = torch.tensor([float(name == look)] * share + [float(name == other)] * (4 - share))
        values = torch.full((depth, 4), torch.nan, dtype=torch.float64)
        values[first:] = heads
        study.add(model, teaching, "late_kind", values, variant=name)
    study.add(model, teaching, "compactness", torch.full((depth, 4), COMPACT[kind]), variant="cls")
    repetition = torch.full((depth, 4), torch.nan, dtype=torch.float64)
    repetition[first:] = REPEAT[kind]
    study.add(model, teaching, "repetition", repetition, variant="cls")


def late_study(models: dict[str, str] = SIX, **looks: str) -> Constructed:
    study = Constructed()
    for model, teaching in models.items():
        late(study, model, teaching, looks.get(model, LOOK[KIND[teaching]]))
    return study


def test_f1_holds_where_each_kind_looks_as_the_paper_says() -> None:
    study = late_study()
    study.add("FS", "fs", "knn_top1", line(0.1, 0.8), variant="cls k=20")
    study.add("CLIP", "clip", "knn_top1", line(0.1, 0.7), variant="cls k=20")
    found = study.finding("F1")
    assert found.verdict is HOLDS
    assert "75% of FS's late heads" in found.reason  # three heads of four
    gained = next(item for item in found.evidence if item.what.startswith("FS: k-NN"))
    assert gained.value == pytest.approx(3 / 11 * 0.7)  # from layer 9 to layer 12 of the line
    assert found.other_protocol is None  # nothing here depends on the protocol


def test_f1_fails_if_explicit_models_are_not_sparse() -> None:
    found = late_study(FS="diverse", CLIP="diverse").finding("F1")
    assert found.verdict is FAILS
    assert "25% of FS's late heads, 25% of CLIP's late heads are sparse-repeating" in found.reason


def test_f1_fails_if_contrastive_maps_are_as_scattered_as_explicit_ones() -> None:
    study = Constructed()
    for model, teaching in {"FS": "fs", "DINO": "dino"}.items():
        late(study, model, teaching, LOOK[KIND[teaching]])
    table = study.results.table
    study.results.table = table.filter(table["measure"] != "compactness")
    for model, teaching in {"FS": "fs", "DINO": "dino"}.items():
        study.add(model, teaching, "compactness", torch.full((12, 4), 0.3), variant="cls")
    assert study.finding("F1").verdict is FAILS


def test_f1_fails_if_explicit_features_stop_improving() -> None:
    study = late_study()
    study.add("FS", "fs", "knn_top1", [*line(0.1, 0.8, 9), 0.8, 0.8, 0.8], variant="cls k=20")
    found = study.finding("F1")
    assert found.verdict is FAILS
    assert "k-NN of FS does not clearly keep improving" in found.reason


def test_f1_needs_explicit_models_and_another_kind() -> None:
    alone = late_study({"DINO": "dino", "MAE": "mae"}).finding("F1")
    assert alone.verdict is UNTESTABLE
    assert alone.reason.startswith("No model taught by explicit supervision (FS, CLIP)")
    assert late_study({"FS": "fs", "CLIP": "clip"}).finding("F1").verdict is UNTESTABLE
    assert late_study({"FS": "fs", "DINO": "dino"}).finding("F1").verdict is HOLDS  # two models are enough
    assert Constructed().finding("F1").verdict is UNTESTABLE


def test_f1_lets_one_size_in_three_be_an_exception() -> None:
    models = {"FS-S": "fs", "FS-B": "fs", "FS-L": "fs", "DINO": "dino"}
    assert late_study(models, **{"FS-S": "diverse"}).finding("F1").verdict is HOLDS
    assert late_study(models, **{"FS-S": "diverse", "FS-B": "diverse"}).finding("F1").verdict is FAILS


def test_f1_reads_the_last_quarter_of_any_depth() -> None:
    study = Constructed()
    for model, teaching, depth in (("FS", "fs", 24), ("DINO", "dino", 8)):
        late(study, model, teaching, LOOK[KIND[teaching]], depth=depth)
    assert study.finding("F1").verdict is HOLDS


def test_f1_tells_repetition_three_ways() -> None:
    study = late_study({"FS": "fs", "DINO": "dino"})
    for model, teaching, within, across in (("FS", "fs", 0.7, 0.5), ("DINO", "dino", 0.6, 0.1)):
        study.add(model, teaching, "repetition_in_layer", torch.full((12, 4), within), variant="cls")
        values = torch.full((12, 4), across)
        values[:9] = 0.9  # early layers do not count
        study.add(model, teaching, "repetition_across_images", values, variant="cls")
    told = {item.what: item.value for item in study.finding("F1").evidence}
    assert told["FS: correlation of late maps of one image"] == pytest.approx(0.6)
    assert told["FS: correlation of the heads of a late layer"] == pytest.approx(0.7)
    assert told["FS: correlation of a late head's maps of two images"] == pytest.approx(0.5)
    assert told["DINO: correlation of a late head's maps of two images"] == pytest.approx(0.1)


# -- F2: offset heads ----------------------------------------------------------------------------------------


def with_heads(
    study: Constructed, model: str, teaching: str, offset: list[tuple[int, int]], stability: float = 1.0
) -> None:
    """Four layers of three heads; those listed (1-based) look one token to the right."""
    is_offset = torch.zeros(4, 3)
    for layer, head in offset:
        is_offset[layer - 1, head - 1] = 1
    study.add(model, teaching, "head_kind", is_offset, variant="offset local")
    study.add(model, teaching, "head_kind", 1 - is_offset, variant="global")
    study.add(model, teaching, "head_kind_stability", torch.full((4, 3), stability))
    study.add(model, teaching, "peak", 0.1 + 0.6 * is_offset)
    study.add(model, teaching, "self_attention", torch.full((4, 3), 0.05))
    study.add(model, teaching, "peak_down", torch.zeros(4, 3))
    study.add(model, teaching, "peak_across", is_offset)


def test_f2_holds_if_every_taught_model_has_an_offset_head() -> None:
    study = Constructed()
    for model, teaching in SIX.items():
        with_heads(study, model, teaching, [(2, 1), (3, 3)])
    with_heads(study, "Untrained", "none", [])  # not taught: no exception
    found = study.finding("F2")
    assert found.verdict is HOLDS
    clearest = next(item for item in found.evidence if "MAE: attention" in item.what)
    assert clearest.what == "MAE: attention of layer 2, head 1 on the token right (0.05 on itself)"
    assert clearest.value == pytest.approx(0.7)


def test_f2_fails_at_one_exception_and_at_unstable_heads() -> None:
    study = Constructed()
    with_heads(study, "FS", "fs", [(2, 1)])
    with_heads(study, "DINO", "dino", [])
    found = study.finding("F2")
    assert found.verdict is FAILS
    assert found.reason.startswith("DINO: no head")
    shaky = Constructed()
    with_heads(shaky, "FS", "fs", [(2, 1)], stability=0.5)
    assert shaky.finding("F2").verdict is FAILS


def test_f2_cannot_be_tested_without_kinds_of_heads() -> None:
    found = Constructed().add("FS", "fs", "entropy", line(1, 2)).finding("F2")
    assert found.verdict is UNTESTABLE
    assert "head_kind" in found.reason


def test_f2_under_the_published_normalisation_can_differ() -> None:
    """A head that looks two tokens to the right: half the sources of a 4 x 4 grid reach that far."""
    grid = 4
    aligned = torch.zeros(1, 1, 2 * grid - 1, 2 * grid - 1)
    aligned[..., grid - 1, grid + 1] = 1.0  # of the sources that reach it, all attention
    aligned[..., grid - 1, grid - 1] = 0.5  # of all sources, half (border sources attend themselves)
    counts = (grid - 2) * grid / grid**2  # share of sources that reach the offset: 0.5
    study = Constructed()
    study.add("FS", "fs", "head_kind", [[1.0]], variant="offset local")
    study.add("FS", "fs", "offset", [[0.3]], variant="across", protocol="paper")
    published = aligned.clone()
    published[..., grid - 1, grid + 1] *= counts  # 0.5: no longer 1.5 times the token itself
    study.results.maps["FS/aligned.paper"] = published
    study.results.maps["FS/prefix"] = torch.zeros(1, 1, 1)
    found = study.finding("F2")
    assert found.verdict is HOLDS
    assert found.other_protocol is FAILS
    published[..., grid - 1, grid - 1] = 0.1
    assert study.finding("F2").other_protocol is HOLDS
    assert KINDS[1] == "offset local"


# -- F3: local and global ------------------------------------------------------------------------------------

COURSE = {"explicit": line(0.2, 0.5), "contrastive": line(0.5, 0.3), "reconstruction": line(0.3, 0.3)}


def distances(study: Constructed, model: str, teaching: str, course: list[float], spread: float = 0.2) -> None:
    """Three heads around the course of the layer: nearer, on it, farther."""
    heads = torch.tensor(course, dtype=torch.float64).unsqueeze(1) + torch.tensor([-spread, 0.0, spread])
    study.add(model, teaching, "attention_distance", heads, variant="patch_free")
    study.add(model, teaching, "attention_distance", heads * 100, variant="pixels")


def test_f3_holds_if_courses_differ_by_kind_and_early_layers_are_mixed() -> None:
    study = Constructed()
    for model, teaching in SIX.items():
        distances(study, model, teaching, COURSE[KIND[teaching]])
    found = study.finding("F3")
    assert found.verdict is HOLDS
    swing = next(item for item in found.evidence if item.what.startswith("explicit against contrastive"))
    assert swing.value == pytest.approx(0.5)  # from -0.3 at the first layer to +0.2 at the last
    within = next(item for item in found.evidence if "same kind" in item.what)
    assert within.value == pytest.approx(0)


def test_f3_compares_models_of_different_depth_at_relative_depth() -> None:
    study = Constructed()
    distances(study, "FS", "fs", line(0.2, 0.5, 24))
    distances(study, "CLIP", "clip", line(0.2, 0.5, 12))
    distances(study, "DINO", "dino", line(0.5, 0.3, 8))
    found = study.finding("F3")
    assert found.verdict is HOLDS
    within = next(item for item in found.evidence if "same kind" in item.what)
    assert within.value == pytest.approx(0, abs=1e-12)  # the same line, whatever the depth


def test_f3_fails_if_all_curves_run_alike_or_levels_alone_differ() -> None:
    study = Constructed()
    distances(study, "FS", "fs", line(0.2, 0.5))
    distances(study, "DINO", "dino", line(0.25, 0.55))
    found = study.finding("F3")
    assert found.verdict is FAILS
    assert "does not clearly differ for explicit and contrastive models (by 0.00 over depth)" in found.reason


def test_f3_fails_if_families_do_not_explain_it_or_early_heads_are_all_local() -> None:
    study = Constructed()
    for (model, teaching), course in zip(SIX.items(), list(COURSE.values()) * 2, strict=True):
        distances(study, model, teaching, course)  # FS is to MoCo as CLIP to MAE
    assert study.finding("F3").verdict is FAILS
    local = Constructed()
    distances(local, "FS", "fs", line(0.1, 0.5), spread=0.02)
    distances(local, "DINO", "dino", line(0.1, 0.3), spread=0.02)
    found = local.finding("F3")
    assert found.verdict is FAILS
    assert "arly layers of FS and DINO do not mix" in found.reason


def test_f3_cannot_be_tested_with_one_kind_of_teaching() -> None:
    study = Constructed()
    distances(study, "FS", "fs", line(0.2, 0.5))
    distances(study, "CLIP", "clip", line(0.2, 0.5))
    found = study.finding("F3")
    assert found.verdict is UNTESTABLE
    assert "only explicit supervision" in found.reason


# -- F4: foreground ------------------------------------------------------------------------------------------

KEEPS = [0.2, 0.3, 0.4, 0.45, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
LOSES = [0.2, 0.3, 0.4, 0.45, 0.5, 0.5, 0.5, 0.5, 0.4, 0.3, 0.3, 0.3]


def saliency(
    study: Constructed, curves: dict[str, list[float]], chance: float | None = 0.25, **options: Any
) -> Constructed:
    for model, values in curves.items():
        study.add(model, SIX[model], "saliency_best_head", values, variant="cls", **options)
        study.add(model, SIX[model], "saliency_best_head", [0.9] * 12, variant="centre", **options)
    if chance is not None:
        study.add("Untrained", "none", "saliency_best_head", [chance] * 12, variant="cls", **options)
    return study


def test_f4_holds_if_explicit_models_alone_lose_the_foreground() -> None:
    curves = {model: LOSES if KIND[key] == "explicit" else KEEPS for model, key in SIX.items()}
    found = saliency(Constructed(), curves).finding("F4")
    assert found.verdict is HOLDS
    lost = next(item for item in found.evidence if item.what.startswith("FS: share of peak"))
    assert lost.value == pytest.approx((0.5 - 0.3) / 0.5)  # mean of layers 10-12 against the peak
    assert lost.low is not None
    assert lost.low < lost.value
    assert found.figure == "saliency_best_head"


def test_f4_fails_if_explicit_models_keep_it_or_self_supervised_lose_as_much() -> None:
    assert saliency(Constructed(), {"FS": KEEPS, "DINO": KEEPS}).finding("F4").verdict is FAILS
    found = saliency(Constructed(), {"FS": LOSES, "DINO": LOSES}).finding("F4")
    assert found.verdict is FAILS
    assert "lose not far less (40% against 40%)" in found.reason


def test_f4_fails_if_a_model_is_no_better_than_chance_early() -> None:
    found = saliency(Constructed(), {"FS": LOSES, "DINO": KEEPS}, chance=0.45).finding("F4")
    assert found.verdict is FAILS
    assert "not well above chance (0.45)" in found.reason


def test_f4_does_not_call_a_difference_inside_the_intervals_a_decline() -> None:
    assert saliency(Constructed(reach=0.2), {"FS": LOSES, "DINO": KEEPS}, chance=0.1).finding("F4").verdict is FAILS


def test_f4_needs_masks_a_baseline_and_both_sides() -> None:
    assert "masks" in Constructed().finding("F4").reason
    without = saliency(Constructed(), {"FS": LOSES, "DINO": KEEPS}, chance=None).finding("F4")
    assert without.verdict is UNTESTABLE
    assert "untrained or random network" in without.reason
    alone = saliency(Constructed(), {"FS": LOSES}).finding("F4")
    assert alone.verdict is UNTESTABLE
    assert "no self-supervised model" in alone.reason.lower()


def test_f4_tells_where_the_published_protocol_says_otherwise() -> None:
    study = saliency(Constructed(), {"FS": LOSES, "DINO": KEEPS})
    saliency(study, {"FS": KEEPS, "DINO": KEEPS}, protocol="paper")
    found = study.finding("F4")
    assert found.verdict is HOLDS
    assert found.other_protocol is FAILS


def test_f4_reads_spatial_saliency_of_a_model_without_cls() -> None:
    study = saliency(Constructed(), {"FS": LOSES})
    study.add("SigLIP", "other", "saliency_best_head", KEEPS, variant="spatial")
    study.add("DINO", "dino", "saliency_best_head", KEEPS, variant="spatial")
    assert study.finding("F4").verdict is HOLDS


def ranked(study: Constructed, curves: dict[str, list[float]], chance: float, variant: str = "cls") -> Constructed:
    for model, values in curves.items():
        study.add(model, SIX[model], "saliency_ap_best_head", values, variant=variant)
    return study.add("Untrained", "none", "saliency_ap_best_head", [chance] * 12, variant=variant)


def test_f4_is_found_by_average_precision_where_iou_favours_even_maps() -> None:
    """The untrained network masks most of the image: its IoU is the highest, its average precision the lowest."""
    curves = {"FS": LOSES, "DINO": KEEPS}
    study = saliency(Constructed(), curves, chance=0.6)
    assert study.finding("F4").verdict is FAILS
    found = ranked(study, curves, chance=0.2).finding("F4")
    assert found.verdict is HOLDS
    assert "best-head average precision reaches 0.50 or more in early-to-mid layers (chance: 0.20)" in found.reason
    poor = ranked(saliency(Constructed(), curves), curves, chance=0.45).finding("F4")  # IoU 0.5 of 0.25
    assert poor.verdict is FAILS
    assert "average precision not well above chance (0.45)" in poor.reason


def test_f4_asks_patch_tokens_of_models_whose_cls_is_untaught() -> None:
    study = saliency(Constructed(), {"FS": LOSES, "MAE": [0.1] * 12})  # CLS of MAE looks nowhere
    assert study.finding("F4").verdict is FAILS
    study.add("MAE", "mae", "saliency_best_head", KEEPS, variant="spatial")
    study.add("Untrained", "none", "saliency_best_head", [0.3] * 12, variant="spatial")
    found = study.finding("F4")
    assert found.verdict is HOLDS
    told = {item.what: item.value for item in found.evidence}
    assert told["untaught: best-head IoU from spatial, early to mid layers"] == pytest.approx(0.3)
    assert told["untaught: best-head IoU from cls, early to mid layers"] == pytest.approx(0.25)
    assert "MAE: best-head IoU from spatial at layer 5" in told
