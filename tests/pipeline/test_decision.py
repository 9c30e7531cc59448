"""Decisions with known truth: random networks, identical ones, a clear winner, ties, four videos, and 10,000 draws."""

from __future__ import annotations

import numpy as np
import pytest

from vitscope.pipeline.decision import Decision, cross_fitted, decide, divisions

UNTRAINED = "untrained"
LAYERS = 4


def answers(generator: np.random.Generator, truth: np.ndarray, n: int) -> dict[str, np.ndarray]:
    """Right or wrong for n queries, some harder than others for everybody. truth: (models, L), the last untrained."""
    alike = generator.random((n, 1, 1))
    own = generator.random((n, *truth.shape))
    luck = np.where(generator.random((n, *truth.shape)) < 0.5, alike, own)  # uniform, and shared half of the time
    hits = (luck < truth).astype(np.float64)
    names = [*"abcdefgh"[: len(truth) - 1], UNTRAINED]
    return {name: hits[:, number] for number, name in enumerate(names)}


def decided(scores: dict[str, np.ndarray], chance: float = 0.1) -> Decision:
    n = len(scores[UNTRAINED])
    found = decide(scores, np.full(n, chance), {name: [UNTRAINED] for name in scores if name != UNTRAINED})
    assert found is not None
    return found


def levels(*means: float) -> np.ndarray:
    """Truth of models whose layers rise to their mean: (models, L)."""
    rise = np.linspace(-0.06, 0, LAYERS)
    return np.array([[mean + step for step in rise] for mean in means])


def test_random_networks_are_never_recommended() -> None:
    for seed in range(40):
        scores = answers(np.random.default_rng(seed), levels(0.2, 0.2, 0.2, 0.2), n=30)
        assert decided(scores).kind == "nothing"


def test_identical_networks_are_tied_whatever_their_number() -> None:
    one = answers(np.random.default_rng(0), levels(0.7, 0.2), n=300)
    found = decided({"a": one["a"], "b": one["a"], "c": one["a"], UNTRAINED: one[UNTRAINED]})
    assert (found.kind, found.leader, {other.name for other in found.others}) == ("tied", "a", {"b", "c"})
    assert all((other.value, other.low, other.high) == (0, 0, 0) for other in found.others)


def test_a_clear_winner_is_taken_at_its_best_layer() -> None:
    found = decided(answers(np.random.default_rng(0), levels(0.8, 0.5, 0.35, 0.2), n=400))
    assert (found.kind, found.leader, found.others) == ("take", "a", ())
    assert found.next is not None
    assert found.next.name == "b"
    assert found.next.low < 0.3 < found.next.high
    assert found.layer in found.as_good


def test_three_models_are_tied_if_their_differences_are_surely_small() -> None:
    """Spread 0.05 of 4,000 units: standard errors of a tenth of the margin."""
    generator = np.random.default_rng(0)
    hard = generator.normal(0, 0.2, (4000, 1))
    scores = {name: 0.6 + hard + generator.normal(0, 0.05, (4000, LAYERS)) for name in "abc"}
    found = decided(scores | {UNTRAINED: 0.2 + hard + generator.normal(0, 0.05, (4000, LAYERS))})
    assert (found.kind, len(found.others), found.more) == ("tied", 2, None)


def test_too_few_queries_say_how_many_more_it_takes() -> None:
    """A difference of 0.1 with a spread of about 0.5 takes hundreds of units; ten times as many do decide."""
    generator = np.random.default_rng(3)
    truth = levels(0.75, 0.6, 0.2)
    found = decided(answers(generator, truth, n=60))
    assert found.kind == "undecided"
    assert found.more is not None
    assert 30 < found.more < 3000
    assert decided(answers(generator, truth, n=3000)).kind == "take"


def test_four_videos_decide_nothing() -> None:
    """Even if one model is better on each of them; four times as many that are like them do."""
    base = np.array([0.3, 0.4, 0.5, 0.6])[:, None] + np.zeros((1, LAYERS))
    found = decided({"a": base + 0.2, "b": base, UNTRAINED: base - 0.2}, chance=0.05)
    assert found.kind in ("nothing", "undecided")
    assert found.n == 4
    assert found.more is not None
    assert 8 <= found.more <= 12
    many = np.tile(base, (4, 1))
    assert decided({"a": many + 0.2, "b": many, UNTRAINED: many - 0.2}, chance=0.05).kind == "take"


def test_three_queries_that_agree_are_not_certainty() -> None:
    found = decided({"a": np.ones((3, LAYERS)), UNTRAINED: np.zeros((3, LAYERS))}, chance=0.1)
    assert found.kind == "nothing"


def test_a_model_no_better_than_its_untrained_twin_is_not_recommended_however_far_above_chance() -> None:
    found = decided(answers(np.random.default_rng(0), levels(0.5, 0.5), n=500))
    assert (found.kind, [other.name for other in found.others]) == ("nothing", [UNTRAINED])


def test_a_rival_that_is_itself_not_above_chance_still_has_to_be_beaten() -> None:
    scores = answers(np.random.default_rng(0), levels(0.5, 0.2), n=60)
    noisy = np.random.default_rng(1).normal(0.5, 6, (60, LAYERS))
    assert decided(scores).kind == "take"
    assert decided(scores | {"b": noisy}).kind != "take"


def test_nothing_to_compare_with_is_no_decision() -> None:
    assert decide({"a": np.ones((9, 2))}, None, {"a": []}) is None
    assert decide({"a": np.ones((9, 2))}, np.zeros(9), {}) is None


def test_choosing_on_the_other_half_does_not_flatter() -> None:
    """Twelve layers of equal truth 0.5: the best of them looks better than that, its cross-fitted score does not.

    The expected largest of 12 normals is 1.629 standard deviations.
    """
    generator = np.random.default_rng(0)
    n, draws = 50, 600
    best, fitted = [], []
    for _ in range(draws):
        scores = 0.5 + generator.normal(0, 0.3, (n, 12))
        best.append(scores.mean(0).max())
        fitted.append(cross_fitted(scores, divisions(n)).mean())
    deviation = 0.3 / np.sqrt(n)
    assert np.mean(best) == pytest.approx(0.5 + 1.629 * deviation, abs=4 * deviation / np.sqrt(draws))
    assert np.mean(fitted) == pytest.approx(0.5, abs=4 * deviation / np.sqrt(draws))


def test_cross_fitting_chooses_on_one_half_and_scores_on_the_other() -> None:
    scores = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    halves = np.array([[True, True, False, False]])
    assert cross_fitted(scores, halves).tolist() == [0, 0, 0, 0]  # each half's layer is the other's wrong one


@pytest.mark.parametrize("truth", ["tied", "nearly tied", "one winner", "like untrained"])
def test_take_is_wrong_in_at_most_one_case_of_twenty(truth: str) -> None:
    """10,000 draws in all, over numbers of units. Wrong: the model taken has no higher best layer than all others."""
    generator = np.random.default_rng(len(truth))
    wrong, draws = 0, 2500
    for draw in range(draws):
        n = (4, 12, 30, 60)[draw % 4]
        means = np.clip(generator.normal(0.4, 0.02, (4, LAYERS)), 0.05, 0.95)
        means[3] = 0.2
        if truth == "tied":
            means[:3] = means[0]
        elif truth == "one winner":
            means[0] += 0.3
        elif truth == "like untrained":
            means[:3] = means[3]
        scores = answers(generator, means, n)
        found = decided(scores)
        taken = list(scores).index(found.leader)
        others = np.delete(means, taken, 0).max()
        wrong += found.kind == "take" and means[taken].max() <= others
    assert wrong <= 0.05 * draws
