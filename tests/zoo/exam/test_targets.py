"""From scores to figures, and from figures to what is met."""

from __future__ import annotations

import polars as pl
import pytest
import torch

from zoo.exam.marks import Figure, Scores, curves, difference, figure
from zoo.exam.measures import MEASURES, looks_of
from zoo.exam.targets import TARGETS, Target, judge, judge_all


def about(mean: float, half: float = 0.02) -> Figure:
    return Figure(mean, mean - half, mean + half, (mean,) * 3)


def test_the_layer_of_a_seed_is_chosen_on_the_other_seeds() -> None:
    # a maximum over layers would report 0.9 for every seed; each seed's lucky layer is bad on the others
    lucky = torch.full((3, 1, 3), 0.2) + 0.7 * torch.eye(3).unsqueeze(1)
    assert figure(Scores(lucky)).mean < 0.5
    steady = torch.tensor([[0.1, 0.5], [0.1, 0.6], [0.1, 0.7]]).unsqueeze(1)
    found = figure(Scores(steady))
    assert found.seeds == pytest.approx((0.5, 0.6, 0.7))
    assert found.at == "layer 2"
    # Student's factor for two degrees of freedom is 4.303
    assert found.high - found.mean == pytest.approx(4.303 * 0.1 / 3**0.5, rel=1e-3)


def test_kinds_compete_and_keep_their_curves() -> None:
    scores = Scores(torch.tensor([[[0.1, 0.2], [0.4, 0.3]]] * 2), ("CLS", "patches"))
    assert figure(scores).at == "patches, layer 1"
    assert figure(scores).mean == pytest.approx(0.4)
    assert curves(scores) == {"CLS": [0.1, 0.2], "patches": [0.4, 0.3]}
    heads = Scores(torch.tensor([[[0.1, 0.6], [0.5, 0.2], [0.3, 0.3]]] * 2), ("head 1", "head 2", "head 3"))
    assert curves(heads) == {"best": [0.5, 0.6]}


BASELINES = {
    "unc": {"pixels": about(0.3), "colours": about(0.1)},
    "iou": {"disc": about(0.4), "everything": about(0.2)},
}


@pytest.mark.parametrize(
    ("target", "mean", "untaught", "met"),
    [
        (Target("fs", "unc", least=0.85), 0.85, 0.1, True),
        (Target("fs", "unc", least=0.85), 0.849, 0.1, False),
        (Target("fs", "unc", times=2.5), 0.26, 0.1, True),
        (Target("fs", "unc", times=2.5), 0.24, 0.1, False),
        (Target("fs", "unc", times=2.5, above=("pixels", "colours")), 0.26, 0.1, False),  # below the pixels
        (Target("fs", "unc", surely_above=("pixels",)), 0.33, 0.1, True),
        (Target("fs", "unc", surely_above=("pixels",)), 0.31, 0.1, False),  # the lower bound is 0.29
        (Target("fs", "pck", clearly=True), 0.25, 0.2, True),  # intervals of +-0.02 each
        (Target("fs", "pck", clearly=True), 0.23, 0.2, False),
        (Target("fs", "iou", above_untaught=True, above=("disc",)), 0.41, 0.40, True),
        (Target("fs", "iou", above_untaught=True, above=("disc",)), 0.39, 0.30, False),
    ],
)
def test_a_target_is_met_when_every_condition_holds(target: Target, mean: float, untaught: float, met: bool) -> None:
    figures = {"fs": {target.measure: about(mean)}, "none": {target.measure: about(untaught)}}
    verdict = judge(target, figures, BASELINES)
    assert verdict is not None
    assert verdict.met is met
    assert bool(verdict.missed) is not met


def test_differences_are_taken_seed_by_seed() -> None:
    """Seeds that differ a lot from each other, but alike for both networks, do not hide a difference."""
    one, other = Figure(0.55, 0.0, 1.0, (0.34, 0.55, 0.76)), Figure(0.5, 0.0, 1.0, (0.3, 0.5, 0.7))
    # +0.04, +0.05, +0.06: 0.05 -+ 4.303 * 0.01 / sqrt(3)
    assert difference(one, other) == pytest.approx((0.05, 0.02516, 0.07484), abs=1e-5)
    found = judge(Target("mae", "jf", clearly=True), {"mae": {"jf": one}, "none": {"jf": other}}, {})
    assert found is not None
    assert not found.met  # the intervals overlap all the same
    assert found.asked == "interval above untrained's, 1.000 (seed by seed +0.050, +0.025 to +0.075)"


def test_every_network_is_judged_for_itself() -> None:
    figures = {"dino": {"iou": about(0.3)}, "moco": {"iou": about(0.45)}, "none": {"iou": about(0.35)}}
    for network, met in (("dino", False), ("moco", True)):
        (target,) = (target for target in TARGETS if (target.network, target.measure) == (network, "iou"))
        verdict = judge(target, figures, BASELINES)
        assert verdict is not None
        assert verdict.met is met
    assert judge(Target("fs", "iou", above_untaught=True), figures, BASELINES) is None  # was not examined


def test_the_targets_of_the_zoo() -> None:
    scores = ("unc", "pck", "jf", "purity", "iou")
    looks = {"local": about(0.3), "offset": about(2), "nearest": about(0.3), "mixed": about(2), "rise": about(9)}
    taught = ("fs", "clip", "dino", "moco", "mae", "beit")
    figures = {key: dict.fromkeys(scores, about(0.9)) | looks for key in taught}
    figures["none"] = (
        dict.fromkeys(scores, about(0.2)) | {name: about(0, 0) for name in looks} | {"nearest": about(0.6)}
    )
    verdicts = judge_all(figures, BASELINES)
    assert all(verdict.met for verdict in verdicts)
    assert len(verdicts) == len(TARGETS) == 4 + 4 + 6 + 2 + (6 + 6 + 1 + 6 + 2 + 4)
    figures["mae"] = figures["none"]
    failed = {verdict.target.name for verdict in judge_all(figures, BASELINES) if not verdict.met}
    assert failed == {
        f"MAE: {MEASURES[name]}" for name in ("pck", "jf", "purity", "local", "offset", "nearest", "mixed")
    }
    assert {v.target.network for v in judge_all({"fs": figures["fs"], "none": figures["none"]}, BASELINES)} == {
        "fs",
        "none",
    }


def test_what_attention_is_like_is_read_off_the_table_of_heads() -> None:
    """Six layers of two heads: of the first two layers one is mixed; one offset-local head of two is stable."""
    kinds = [
        "global soft_local",
        "soft_local soft_local",
        "offset_local global",
        "offset_local global",
        *["global global"] * 2,
    ]
    rows: list[dict[str, object]] = []
    for layer, names in enumerate(kinds, 1):
        for head, kind in enumerate(names.split(), 1):
            place = {"layer": layer, "head": head}
            rows += [
                {**place, "measure": "head_kind", "variant": other, "value": float(other == kind.replace("_", " "))}
                for other in ("global", "soft local", "offset local")
            ]
            rows.append(
                {**place, "measure": "head_kind_stability", "variant": "", "value": 0.95 if layer == 3 else 0.5}
            )
            rows.append(
                {**place, "measure": "attention_distance", "variant": "grid", "value": 0.1 * layer + 0.1 * head}
            )
            rows.append({**place, "measure": "attention_distance", "variant": "pixels", "value": 0.0})
    found = looks_of(pl.DataFrame(rows))
    assert found == pytest.approx({"local": 5 / 12, "offset": 1, "nearest": 0.25, "mixed": 1})
