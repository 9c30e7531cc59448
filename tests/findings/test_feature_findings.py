"""F5, F6, F7 and F11 on constructed similarities and purities: true, false, and not testable."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch

from tests.findings.constructed import KIND, SIX, Constructed, line, peak_at
from vitscope.core.results import Label, tidy
from vitscope.findings.depth_blocks import shape_of
from vitscope.findings.outcome import Verdict

HOLDS, FAILS, UNTESTABLE = Verdict.HOLDS, Verdict.FAILS, Verdict.UNTESTABLE


# -- F5 and F6: last layers ----------------------------------------------------------------------------------


def similar(
    cls: dict[tuple[str, str], float] | None = None,
    spatial: dict[tuple[str, str], float] | None = None,
    *,
    models: dict[str, str] = SIX,
    within: float = 0.8,
    between: float = 0.3,
    protocol: str = "corrected",
    study: Constructed | None = None,
) -> Constructed:
    """CLS CKA `within` and `between` kinds, spatial CKA 0.3 throughout; single pairs can be given."""
    study = study or Constructed(reach=0.02)
    for model, teaching in models.items():
        study.add(model, teaching, "skip_over_branch", line(5, 1))  # what makes a model known
    for a, b in combinations(models, 2):
        same = KIND[models[a]] == KIND[models[b]]
        for tokens, given, usual in (("cls", cls, within if same else between), ("spatial", spatial, 0.3)):
            value = (given or {}).get((a, b), usual)
            study.add(a, models[a], "cka", [value], variant=tokens, protocol=protocol, other=b)
    return study


def test_f5_holds_if_cls_features_group_by_kind_and_spatial_ones_of_fs_and_clip_do_not() -> None:
    found = similar().finding("F5")
    assert found.verdict is HOLDS
    means = {item.what: item.value for item in found.evidence}
    assert means["CLS CKA, models of the same kind of teaching"] == pytest.approx(0.8)
    assert means["CLS CKA, models of different kinds"] == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("cls", "spatial", "says"),
    [
        ({("FS", "CLIP"): 0.3, ("DINO", "MoCo"): 0.3, ("MAE", "BEiT"): 0.3}, {}, "does not clearly group"),
        ({("FS", "CLIP"): 0.32}, {}, "FS and CLIP are not alike for CLS tokens"),
        ({}, {("FS", "CLIP"): 0.7}, "FS and CLIP are alike for spatial tokens"),
    ],
)
def test_f5_fails(cls: dict[tuple[str, str], float], spatial: dict[tuple[str, str], float], says: str) -> None:
    found = similar(cls, spatial).finding("F5")
    assert found.verdict is FAILS
    assert says in found.reason.split("What does hold")[0]


def test_f5_needs_two_methods_of_one_kind_not_two_sizes() -> None:
    sizes = similar(models={"FS-S": "fs", "FS-B": "fs", "DINO": "dino"}).finding("F5")
    assert sizes.verdict is UNTESTABLE
    assert "two methods of one kind of teaching" in sizes.reason
    assert similar(models={"FS": "fs", "CLIP": "clip"}).finding("F5").verdict is UNTESTABLE
    assert Constructed().finding("F5").verdict is UNTESTABLE
    assert similar(models={"DINO": "dino", "MoCo": "moco", "MAE": "mae"}).finding("F5").verdict is HOLDS  # without FS


def test_f5_does_not_count_a_difference_inside_the_intervals() -> None:
    study = Constructed(reach=0.3)
    assert similar(within=0.6, study=study).finding("F5").verdict is FAILS


def test_f5_counts_a_teaching_once_however_many_sizes_it_has() -> None:
    """Three CLIP models unlike FS, averaged first, weigh as much as the one pair of contrastive models."""
    models = {"FS": "fs", "CLIP-B32": "clip", "CLIP-B16": "clip", "CLIP-L14": "clip", "DINO": "dino", "MoCo": "moco"}
    unlike = {("FS", name): 0.4 for name in models if name.startswith("CLIP")}
    found = similar(unlike, models=models).finding("F5")
    within = next(item for item in found.evidence if item.what == "CLS CKA, models of the same kind of teaching")
    assert within.value == pytest.approx((0.4 + 0.8) / 2)


def test_f5_and_f6_under_the_published_protocol() -> None:
    study = similar()
    similar(within=0.3, study=study, protocol="paper")
    assert study.finding("F5").other_protocol is FAILS


ELEVATED = {("DINO", "MAE"): 0.6, ("MoCo", "MAE"): 0.6}


def test_f6_holds_if_mae_is_like_the_contrastive_models() -> None:
    found = similar(ELEVATED).finding("F6")
    assert found.verdict is HOLDS
    assert "(0.60) is elevated against MAE with explicit models (0.30)" in found.reason


def test_f6_fails_if_mae_is_as_unlike_them_as_others() -> None:
    assert similar().finding("F6").verdict is FAILS
    also_explicit = {**ELEVATED, ("FS", "MAE"): 0.6, ("CLIP", "MAE"): 0.6}
    assert similar(also_explicit).finding("F6").verdict is FAILS


def test_f6_says_who_is_missing() -> None:
    assert "no MAE model" in similar(models={"FS": "fs", "DINO": "dino"}).finding("F6").reason.replace("No", "no")
    found = similar(models={"FS": "fs", "MAE": "mae"}).finding("F6")
    assert found.verdict is UNTESTABLE
    assert "contrastive self-supervision (DINO, MoCo-v3)" in found.reason
    alone = similar(models={"DINO": "dino", "MAE": "mae"}).finding("F6")
    assert alone.verdict is UNTESTABLE
    assert "nothing to compare with" in alone.reason.lower()


# -- F7: purity ----------------------------------------------------------------------------------------------


def purities(**changed: list[float]) -> Constructed:
    """Rising lines for all, a tent for BEiT; spatial purity of FS rises at once. Names: MODEL or MODEL_spatial."""
    study = Constructed()
    for model, teaching in SIX.items():
        usual = peak_at(7, 0.5, 0.1) if model == "BEiT" else line(0.1, 0.8)
        study.add(model, teaching, "purity", changed.get(model, usual), variant="cls")
        early = [0.1, 0.4, 0.6, *[0.7] * 9]
        study.add(model, teaching, "purity", changed.get(f"{model}_spatial", early), variant="spatial")
    return study


def test_f7_holds_if_purity_rises_but_for_beit_and_spatial_purity_comes_first() -> None:
    found = purities().finding("F7")
    assert found.verdict is HOLDS
    when = {item.what: item.value for item in found.evidence if "half-way" in item.what}
    # half-way is 0.45 for CLS: layer 6 has 0.1 + 5/11 * 0.7 = 0.42, layer 7 0.48; for spatial it is 0.4
    assert when == {
        "FS: layer at which cls purity is half-way up": 7,
        "FS: layer at which spatial purity is half-way up": 2,
    }


def test_f7_fails_if_purity_falls_or_stays_or_beit_rises() -> None:
    assert purities(MAE=line(0.5, 0.2)).finding("F7").verdict is FAILS
    assert purities(MAE=[0.5] * 11 + [0.505]).finding("F7").verdict is FAILS  # within the intervals
    found = purities(BEiT=line(0.1, 0.5)).finding("F7")
    assert found.verdict is FAILS
    assert "BEiT's CLS purity does not clearly fall back" in found.reason


def test_f7_fails_if_spatial_purity_comes_later() -> None:
    found = purities(FS_spatial=[*[0.1] * 10, 0.7, 0.7]).finding("F7")
    assert found.verdict is FAILS
    assert "half-way at layer 11 against 7" in found.reason


def test_f7_cannot_be_tested_without_labels_or_with_beit_alone() -> None:
    assert Constructed().finding("F7").verdict is UNTESTABLE
    alone = Constructed().add("BEiT", "beit", "purity", peak_at(7, 0.5, 0.1), variant="cls")
    assert alone.finding("F7").verdict is UNTESTABLE
    two = Constructed()
    for model, teaching in (("DINO", "dino"), ("MAE", "mae")):
        two.add(model, teaching, "purity", line(0.1, 0.8), variant="cls")
    found = two.finding("F7")
    assert found.verdict is HOLDS
    assert "Not tested: no BEiT model" in found.reason


# -- F8's part level -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("layout", "seen"), [("PartImageNet", True), ("", False)])
def test_f8_counts_clusters_of_parts_but_not_of_objects(layout: str, seen: bool) -> None:
    study = Constructed()
    for model, teaching, knn, parts in (("FS", "fs", 0.8, 0.3), ("DINO", "dino", 0.7, 0.6)):
        study.add(model, teaching, "knn_top1", line(0.1, knn), variant="cls k=20")
        study.results.provenance.append({"digest": model, "layout": layout})
        value = torch.tensor(line(0.1, parts))
        label = Label(model, teaching, "masks", model)
        study.results.extend([tidy(label, "purity", value, axes=("layer",), variant="regions")])
    found = study.finding("F8")
    assert found.verdict is HOLDS
    assert ("DINO is superior at clusters of parts" in found.reason) is seen


# -- F11: similarity over depth ------------------------------------------------------------------------------


def two_stages(sites: int = 24, split: int = 12) -> np.ndarray:
    stage = np.arange(sites) < split
    return np.where(stage[:, None] == stage[None, :], 0.9, 0.3) + 0.1 * np.eye(sites)


def steady(sites: int = 24) -> np.ndarray:
    place = np.arange(sites) / (sites - 1)
    return 1 - np.abs(place[:, None] - place[None, :])


def cross(sites: int = 24) -> np.ndarray:
    """Sites are alike if they are equally far from the middle: the ends resemble each other."""
    out = np.abs(2 * np.arange(sites) / (sites - 1) - 1)
    return 1 - 0.8 * np.abs(out[:, None] - out[None, :])


def test_the_shape_of_two_stages() -> None:
    shape = shape_of(two_stages(split=10))
    assert (shape.split, shape.staged) == (10, True)
    assert shape.contrast == pytest.approx(0.6)
    # first six sites: 0.3 with the last six; with sites 7-18, 0.9 for 4 and 0.3 for 8 of them
    assert shape.cross == pytest.approx(0.3 - (4 * 0.9 + 8 * 0.3) / 12)


def test_a_steady_decline_is_not_two_stages_and_an_x_is_told_by_its_corner() -> None:
    assert not shape_of(steady()).staged
    assert shape_of(steady()).cross < 0
    # in steps of 2/23 from the middle, six early sites are 35/18 apart from six late ones on average; the mean of the
    # early ones is 18/23 from the middle, that of the twelve middle ones 6/23
    assert shape_of(cross()).cross == pytest.approx(0.8 * (12 / 23 - 35 / 18 * 2 / 23))


@pytest.mark.parametrize(("split", "staged"), [(2, False), (3, False), (4, True), (12, True), (20, True), (21, False)])
def test_a_block_or_two_at_an_end_are_no_stage(split: int, staged: bool) -> None:
    """Of 24 sites, a sixth are 4."""
    shape = shape_of(two_stages(split=split))
    assert (shape.split, shape.staged) == (split, staged)


def depths(**matrices: np.ndarray) -> Constructed:
    study = Constructed()
    for model, matrix in matrices.items():
        study.add(model, SIX[model], "skip_over_branch", line(5, 1))
        study.results.maps[f"{model}/cka.depth.all"] = torch.from_numpy(matrix)
    return study


def test_f11_holds_for_stages_and_an_x() -> None:
    found = depths(FS=two_stages(), DINO=two_stages(split=16), MAE=cross(), BEiT=cross()).finding("F11")
    assert found.verdict is HOLDS
    assert found.other_protocol is None


@pytest.mark.parametrize(
    ("matrices", "says"),
    [
        ({"FS": steady(), "MAE": cross()}, "explicit supervision do not all have two stages"),
        ({"FS": cross(), "MAE": cross()}, "explicit supervision do not all have two stages"),
        ({"DINO": two_stages(), "MAE": two_stages()}, "do not all resemble late ones"),
        ({"FS": two_stages(split=2), "MAE": cross()}, "explicit supervision do not all have two stages"),
    ],
)
def test_f11_fails(matrices: dict[str, np.ndarray], says: str) -> None:
    found = depths(**matrices).finding("F11")
    assert found.verdict is FAILS
    assert says in found.reason


def test_f11_needs_both_sides_and_depth() -> None:
    assert Constructed().finding("F11").verdict is UNTESTABLE
    assert "reconstruction" in depths(FS=two_stages()).finding("F11").reason
    assert depths(MAE=cross()).finding("F11").verdict is UNTESTABLE
    shallow = Constructed()
    for model in ("FS", "MAE"):
        shallow.add(model, SIX[model], "skip_over_branch", [3.0, 2.0, 1.0])
        shallow.results.maps[f"{model}/cka.depth.all"] = torch.from_numpy(two_stages(6, 3))
    assert shallow.finding("F11").verdict is UNTESTABLE


def test_f11_leaves_out_constant_sites_and_matrices_of_the_other_protocol() -> None:
    broken = two_stages(26, 14)
    broken[0] = broken[:, 0] = np.nan
    broken[1] = broken[:, 1] = np.nan
    assert depths(FS=broken, MAE=cross()).finding("F11").verdict is HOLDS
    published = Constructed()
    for model, matrix in (("FS", two_stages()), ("MAE", cross())):
        published.add(model, SIX[model], "skip_over_branch", line(5, 1), protocol="paper")
        published.results.maps[f"{model}/cka.depth.all.paper"] = torch.from_numpy(matrix)
    found = published.finding("F11")
    assert (found.verdict, found.other_protocol) == (UNTESTABLE, HOLDS)
    assert found.reason.endswith("Under the paper's protocol there are numbers.")
